package user

import (
	"time"

	"ramp/protocol"
	"ramp/protocol/reserve"
)

// restore resumes every purchase, run and exchange that was not over.
func (r *Role) restore(t protocol.Tables, now time.Time) (protocol.Output, error) {
	if err := r.sweeps.Restore(t); err != nil {
		return protocol.Output{}, err
	}
	out, err := r.runs.restore(t, now) // before purchases that programs wait for
	if err != nil {
		return out, err
	}
	listed, err := r.purchases.restoreList(t, now)
	if out = out.Join(listed); err != nil {
		return out, err
	}
	jobs, err := r.jobs.restore(t, now)
	if out = out.Join(jobs); err != nil {
		return out, err
	}
	failed, err := r.purchases.failures.restore(now, t)
	if out = out.Join(failed); err != nil {
		return out, err
	}
	exchanges, err := r.Exchanges.restore(now, t)
	if out = out.Join(exchanges); err != nil {
		return out, err
	}
	var waiting []*Row // for the scan to end, as they need the table of bundles
	err = t.Each(TablePurchases, func(_ string, value []byte) error {
		row, err := ReadRow(value)
		if row.Live() || row.Settled && contractEnds(&row.Purchase).After(now) {
			waiting = append(waiting, &row)
		}
		if err == nil && !row.Live() {
			r.purchases.end(row.ID)
			out = out.Join(r.sweepBought(now, &row))
			r.rebuys.restore(&row)
			out = out.Join(r.usage.follow(now, &row, true)).Join(r.cancels.restore(now, &row))
		}
		return err
	})
	for _, row := range waiting {
		if err != nil {
			return out, err
		}
		var o protocol.Output
		o, err = r.restoreBundle(now, t, row)
		out = out.Join(o)
	}
	return out.Join(r.rebuys.resume(now)).Join(r.rebuys.wake(now)).Join(r.sweeps.Resume(now)), err
}

// restoreBundle resumes a live purchase with its signed bundle, or makes a settled
// one's available to its sellers.
func (r *Role) restoreBundle(now time.Time, t protocol.Tables, row *Row) (protocol.Output, error) {
	value, err := t.Get(reserve.TableBundles, row.ID)
	var saved reserve.Saved
	if err == nil && value != nil {
		saved, err = reserve.ReadSaved(value)
	}
	switch {
	case err != nil:
		return protocol.Output{}, err
	case row.Live():
		return r.purchases.restore(now, row, saved, value != nil && saved.State < reserve.Settled)
	case value != nil:
		r.contracts.add(now, &row.Purchase, saved.Bundle, saved.SignedAt)
	}
	return protocol.Output{}, nil
}

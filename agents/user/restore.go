package user

import (
	"fmt"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/reserve"
)

// sign signs a bundle with the agent's own key.
func (r *Role) sign(b protocol.Bundle, now time.Time) (contract.Verified, error) {
	return contract.SignVerified(r.cfg.Credential, b, r.cfg.Trust, now)
}

// restore goes on with every purchase that was not over.
func (r *Role) restore(t protocol.Tables, now time.Time) (protocol.Output, error) {
	bundles := map[string]reserve.Saved{}
	err := t.Each(reserve.TableBundles, func(key string, value []byte) error {
		s, err := reserve.ReadSaved(value)
		if err == nil && s.State < reserve.Settled {
			bundles[key] = s
		}
		return err
	})
	if err != nil {
		return protocol.Output{}, err
	}
	out, err := r.restoreRuns(t, now) // before purchases that programs wait for
	if err != nil {
		return out, err
	}
	ends := map[string]keptContract{}
	err = t.Each(TablePurchases, func(key string, value []byte) error {
		row, err := ReadRow(value)
		if err != nil {
			return err
		}
		if row.Purchase.Settled {
			noteEnds(ends, now, row.Purchase)
		}
		o, err := r.restoreRow(now, row, bundles)
		out = out.Join(o)
		return err
	})
	if err != nil {
		return out, err
	}
	if err := r.restoreKept(now, t, ends); err != nil {
		return out, err
	}
	return out.Join(r.resumeLost(now)).Join(r.wakeLost(now)), nil
}

func (r *Role) restoreRow(now time.Time, row Row, bundles map[string]reserve.Saved) (protocol.Output, error) {
	if !live(row.Purchase.State) {
		r.end(row.Purchase.ID)
		out := r.await(now, &row, true).Join(r.restoreCancels(now, &row))
		r.restoreLost(&row)
		return out, nil
	}
	p := &purchase{view: row.Purchase, row: row}
	saved, signed := bundles[p.view.ID]
	if !signed {
		return r.fail(now, p, StateInterrupted, "the agent stopped before anything was signed; nothing was bought"), nil
	}
	opened, err := r.reopen(saved)
	if err != nil {
		return protocol.Output{}, fmt.Errorf("purchase %s: %w", p.view.ID, err)
	}
	var out protocol.Output
	p.coord, out = reserve.Resume(now, r.coordinatorConfig(p), saved, opened)
	r.purchases[p.view.ID] = p
	r.order = append(r.order, p.view.ID)
	return r.advance(now, p, out), nil
}

// reopen verifies saved signatures as of when they were made: a certificate may
// have expired since.
func (r *Role) reopen(s reserve.Saved) (o reserve.Reopened, err error) {
	if o.Bundle, err = contract.OpenBundle(s.Bundle, r.cfg.Trust, s.SignedAt); err != nil {
		return o, err
	}
	for _, der := range s.Sales {
		sale, err := contract.OpenSale(der, r.cfg.Trust, s.SignedAt)
		if err != nil {
			return o, err
		}
		o.Sales = append(o.Sales, sale)
	}
	if len(s.Receipt) > 0 {
		receipt, err := contract.OpenReceipt(s.Receipt, r.cfg.Trust, s.SignedAt)
		if err != nil {
			return o, err
		}
		o.Receipt = &receipt
	}
	return o, nil
}

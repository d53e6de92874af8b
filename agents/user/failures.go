package user

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// TableFailures has one row per seller that has kept silent instead of holding or signing what it
// had offered. It is this agent's own experience: it tells no other agent.
const TableFailures = "failures"

// Rules and bounds of failures.
const (
	failuresHalve = 6 * time.Hour // after this time half as many count
	mostFailures  = 8             // of one seller that count: none does after a day
	askedLast     = 2             // failures from which a seller is bought from only if no other set is offered
	maxFailing    = 1 << 12       // sellers; beyond, the one whose last failure is the oldest is forgotten
	maxOwed       = 1 << 12       // votes that may still come in time; further ones are not counted
)

// failures counts how often sellers have kept silent, across purchases.
type failures struct {
	by   map[protocol.AgentID]failing
	owed []owed
}

type failing struct {
	Count int       `json:"count"`
	At    time.Time `json:"at"` // of the last failure
}

// owed is a vote that its purchase no longer waits for.
type owed struct {
	conversation string
	reserve.Silence
}

// counts returns how many of a seller's failures count now.
func (f failing) counts(now time.Time) int {
	return f.Count >> min(max(0, now.Sub(f.At)/failuresHalve), 62)
}

// of returns how many failures of a seller count now.
func (f *failures) of(now time.Time, id protocol.AgentID) int { return f.by[id].counts(now) }

// atLeast reports of each seller whether at least n of its failures count.
func (f *failures) atLeast(now time.Time, n int) func(protocol.AgentID) bool {
	return func(id protocol.AgentID) bool { return f.of(now, id) >= n }
}

// note takes the silences of a purchase. A seller that votes in time after all has not failed.
func (f *failures) note(now time.Time, conversation string, list []reserve.Silence) protocol.Output {
	for _, s := range list {
		if len(f.owed) < maxOwed {
			f.owed = append(f.owed, owed{conversation, s})
		}
	}
	return f.wake(now)
}

func (f *failures) heard(m protocol.Message) {
	switch m.Body.(type) {
	case message.Vote, message.Refusal:
		f.owed = slices.DeleteFunc(f.owed, func(o owed) bool { return o.Seller == m.Sender && o.conversation == m.Conversation })
	}
}

// wake counts votes that have not come in time.
func (f *failures) wake(now time.Time) (out protocol.Output) {
	failed := map[owed]bool{}
	f.owed = slices.DeleteFunc(f.owed, func(o owed) bool {
		if now.Before(o.Until) {
			out.WakeAt = protocol.Earlier(out.WakeAt, o.Until)
			return false
		}
		key := owed{o.conversation, reserve.Silence{Seller: o.Seller}}
		if !failed[key] { // once in a purchase, however many of its units
			failed[key] = true
			n := 1
			if o.Unsigned { // it has cost all the time until settle-by
				n = askedLast
			}
			out.Save = append(out.Save, f.add(now, o.Seller, n)...)
		}
		return true
	})
	return out
}

func (f *failures) add(now time.Time, id protocol.AgentID, n int) (save []protocol.Record) {
	if _, known := f.by[id]; !known && len(f.by) >= maxFailing {
		save = append(save, f.forget(f.oldest()))
	}
	row := failing{min(f.of(now, id)+n, mostFailures), now}
	f.by[id] = row
	return append(save, record(TableFailures, string(id), row))
}

// oldest returns the seller whose last failure is the oldest; ties go to the smaller ID.
func (f *failures) oldest() (oldest protocol.AgentID) {
	for id, row := range f.by { // any order: the rule is total
		if at := f.by[oldest].At; oldest == "" || row.At.Before(at) || row.At.Equal(at) && id < oldest {
			oldest = id
		}
	}
	return oldest
}

func (f *failures) forget(id protocol.AgentID) protocol.Record {
	delete(f.by, id)
	return protocol.Record{Table: TableFailures, Key: string(id)}
}

// restore reads the rows, and deletes those that no longer count.
func (f *failures) restore(now time.Time, t protocol.Tables) (out protocol.Output, err error) {
	err = t.Each(TableFailures, func(key string, value []byte) error {
		var row failing
		if err := json.Unmarshal(value, &row); err != nil {
			return fmt.Errorf("failures of %s: %w", key, err)
		}
		id := protocol.AgentID(key)
		if f.by[id] = row; row.counts(now) == 0 {
			out.Save = append(out.Save, f.forget(id))
		}
		return nil
	})
	return out, err
}

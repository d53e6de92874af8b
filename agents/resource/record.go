package resource

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// TablePromises has a row for each promise of a site that overbooks.
const TablePromises = "seller-kept"

// Bounds of a site's record of its promises.
const (
	// MaxEnded is how many promises, those whose slots began last, the rate of broken
	// promises is taken from.
	MaxEnded = 1000
	// DefaultBroken is how many promises in a thousand may be broken before a site
	// stops overbooking.
	DefaultBroken = 10
	// keptAfter is how long after its start a reservation that still exists counts as kept.
	keptAfter = PollPeriod
)

// promise is a slot that is sold, or held for a buyer. The JSON names are stored.
type promise struct {
	Start      time.Time `json:"start"`
	Overbooked bool      `json:"sharp,omitempty"` // only the optimistic view allowed it
	Released   bool      `json:"given,omitempty"` // it is not reserved over jobs again
	End        string    `json:"end,omitempty"`   // endKept or endBroken; empty: not known yet
}

const (
	endKept   = "kept"
	endBroken = "broken"
)

// record owns the site's track record: which promises it kept, and which it broke.
type record struct {
	bound    int // broken promises in a thousand beyond which overbooking stops
	promises map[string]promise
}

func (r *record) read(id string, value []byte) error {
	var p promise
	if err := json.Unmarshal(value, &p); err != nil {
		return fmt.Errorf("journal: table %s: %s: %w", TablePromises, id, err)
	}
	r.promises[id] = p
	return nil
}

// put changes a promise, or forgets it if it has no start. It returns the row to save.
func (r *record) put(id string, p promise) protocol.Record {
	if p.Start.IsZero() {
		delete(r.promises, id)
		return protocol.Record{Table: TablePromises, Key: id}
	}
	r.promises[id] = p
	return row(TablePromises, id, p)
}

func row(table, key string, v any) protocol.Record {
	value, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("resource: %T cannot be encoded: %v", v, err)) // only our own types come here
	}
	return protocol.Record{Table: table, Key: key, Value: value}
}

// update compares the promises with the journal, and returns the rows to save.
func (r *record) update(now time.Time, lines []message.ReservationLine) (save []protocol.Record) {
	there := make(map[string]bool, len(lines))
	since := r.since()
	for _, l := range lines {
		there[l.ID] = true
		was, known := r.promises[l.ID]
		if !known && !l.Slot.Start.After(since) {
			continue
		}
		if is := was.now(now, l); is != was {
			save = append(save, r.put(l.ID, is))
		}
	}
	for _, id := range r.inOrder() {
		if !there[id] && r.promises[id].End == "" {
			save = append(save, r.put(id, promise{})) // it was never sold
		}
	}
	return append(save, r.trim()...)
}

// now is a promise as the journal shows it; the zero value drops it.
func (p promise) now(now time.Time, l message.ReservationLine) promise {
	switch state := reserve.ClaimState(l.State); {
	case state == reserve.ClaimBroken:
		p.End = endBroken
	case state == reserve.ClaimSold && now.Sub(l.Slot.Start) >= keptAfter:
		p.End = endKept
	case state == reserve.ClaimFreed || state == reserve.ClaimCancelled, !p.Overbooked: // for others only the end counts
		return promise{}
	}
	p.Start = l.Slot.Start
	return p
}

// since is the start of the oldest ended promise if there are MaxEnded of them: older
// ones were forgotten.
func (r *record) since() time.Time {
	if ended := r.ended(); len(ended) >= MaxEnded {
		return r.promises[ended[0]].Start
	}
	return time.Time{}
}

// ended returns the promises that were kept or broken, in order.
func (r *record) ended() []string {
	return slices.DeleteFunc(r.inOrder(), func(id string) bool { return r.promises[id].End == "" })
}

// inOrder sorts the promises by start, and by ID if equal.
func (r *record) inOrder() []string {
	return slices.SortedFunc(maps.Keys(r.promises), func(a, b string) int {
		return cmp.Or(r.promises[a].Start.Compare(r.promises[b].Start), cmp.Compare(a, b))
	})
}

// trim forgets the oldest ended promises beyond MaxEnded.
func (r *record) trim() (save []protocol.Record) {
	ended := r.ended()
	for _, id := range ended[:max(0, len(ended)-MaxEnded)] {
		save = append(save, r.put(id, promise{}))
	}
	return save
}

// count counts the ended and the broken promises, and likewise the overbooked ones,
// some of these have not ended.
func (r *record) count() (ended, broken, overbooked, overbookedBroken int) {
	for _, p := range r.promises { // in any order: these are counts
		if p.End != "" {
			ended++
		}
		if p.End == endBroken {
			broken++
		}
		if p.Overbooked {
			overbooked++
		}
		if p.Overbooked && p.End == endBroken {
			overbookedBroken++
		}
	}
	return ended, broken, overbooked, overbookedBroken
}

// tooManyBroken reports whether more promises were broken than the owner allows.
func (r *record) tooManyBroken() bool {
	ended, broken, _, _ := r.count()
	return broken*1000 > r.bound*ended
}

// status reports the track record to the site's owner.
func (r *record) status() *message.OverbookStatus {
	s := &message.OverbookStatus{Selling: !r.tooManyBroken(), BoundPerMille: r.bound}
	s.Ended, s.Broken, s.Overbooked, s.OverbookedBroken = r.count()
	if s.Ended > 0 {
		rate := float64(s.Broken) / float64(s.Ended)
		s.Rate = &rate
	}
	return s
}

package resource

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// TableKept has a row for each promise of a site that sharpens: whether it was kept.
const TableKept = "seller-kept"

// Bounds of what a site remembers of its promises.
const (
	// MaxJudged is of how many promises the rate of broken ones is taken: those whose
	// slots began last.
	MaxJudged = 1000
	// DefaultBroken is how many of a thousand promises may be broken before a site
	// stops selling by the sharpened view.
	DefaultBroken = 10
	// keptAfter is how long after its start a slot that is still there counts as kept.
	keptAfter = PollPeriod
)

// promise is a sold slot, or one that may become one.
type promise struct {
	Start time.Time `json:"start"`
	Sharp bool      `json:"sharp,omitempty"` // only the sharpened view allowed it
	Given bool      `json:"given,omitempty"` // up: it is not asked for over jobs again
	End   string    `json:"end,omitempty"`   // kept or broken; not known yet
}

const (
	endKept   = "kept"
	endBroken = "broken"
)

// kept is how the site's promises have held.
type kept struct {
	bound    int // broken ones of a thousand beyond which it stops
	promises map[string]promise
}

func newKept(bound int) kept { return kept{bound: bound, promises: map[string]promise{}} }

func (k *kept) read(id string, value []byte) error {
	var p promise
	if err := json.Unmarshal(value, &p); err != nil {
		return fmt.Errorf("journal: table %s: %s: %w", TableKept, id, err)
	}
	k.promises[id] = p
	return nil
}

// put changes a promise, or forgets it if it has no start, and returns what to save.
func (k *kept) put(id string, p promise) protocol.Record {
	r := protocol.Record{Table: TableKept, Key: id}
	if p.Start.IsZero() {
		delete(k.promises, id)
		return r
	}
	k.promises[id] = p
	value, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("resource: %T cannot be encoded: %v", p, err)) // a time, a bool and a word
	}
	r.Value = value
	return r
}

// dare notes a promise that the sharpened view alone allowed.
func (k *kept) dare(id string, slot protocol.Slot) protocol.Record {
	return k.put(id, promise{Start: slot.Start, Sharp: true})
}

// look compares the promises with the journal and returns what to save.
func (k *kept) look(now time.Time, lines []message.ReservationLine) (save []protocol.Record) {
	there := make(map[string]bool, len(lines))
	since := k.since()
	for _, l := range lines {
		there[l.ID] = true
		was, known := k.promises[l.ID]
		if !known && !l.Slot.Start.After(since) {
			continue
		}
		if is := was.now(now, l); is != was {
			save = append(save, k.put(l.ID, is))
		}
	}
	for _, id := range k.inOrder() {
		if !there[id] && k.promises[id].End == "" {
			save = append(save, k.put(id, promise{})) // never sold
		}
	}
	return append(save, k.trim()...)
}

// now is a promise as the journal shows it; its zero value is none.
func (p promise) now(now time.Time, l message.ReservationLine) promise {
	switch state := reserve.ClaimState(l.State); {
	case state == reserve.ClaimBroken:
		p.End = endBroken
	case state == reserve.ClaimSold && now.Sub(l.Slot.Start) >= keptAfter:
		p.End = endKept
	case state == reserve.ClaimFreed || state == reserve.ClaimCancelled:
		return promise{}
	case !p.Sharp:
		return promise{} // of others the end is enough
	}
	p.Start = l.Slot.Start
	return p
}

// since is when the oldest promise began that counts, if MaxJudged do: what began
// before was forgotten.
func (k *kept) since() time.Time {
	if over := k.over(); len(over) >= MaxJudged {
		return k.promises[over[0]].Start
	}
	return time.Time{}
}

// over are the promises that have ended, in order.
func (k *kept) over() []string {
	return slices.DeleteFunc(k.inOrder(), func(id string) bool { return k.promises[id].End == "" })
}

// inOrder are the promises by their start, equal ones by name.
func (k *kept) inOrder() []string {
	ids := make([]string, 0, len(k.promises))
	for id := range k.promises { // in any order: sorted below
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(k.promises[a].Start.Compare(k.promises[b].Start), cmp.Compare(a, b))
	})
	return ids
}

// trim forgets the oldest ends beyond MaxJudged.
func (k *kept) trim() (save []protocol.Record) {
	over := k.over()
	for _, id := range over[:max(0, len(over)-MaxJudged)] {
		save = append(save, k.put(id, promise{}))
	}
	return save
}

// count is how many promises have ended, and how many of them were broken; sharp
// are those that the sharpened view alone allowed, ended or not.
func (k *kept) count() (ended, broken, sharp, sharpBroken int) {
	for _, p := range k.promises { // in any order: these are counts
		if p.End != "" {
			ended++
		}
		if p.End == endBroken {
			broken++
		}
		if p.Sharp {
			sharp++
		}
		if p.Sharp && p.End == endBroken {
			sharpBroken++
		}
	}
	return ended, broken, sharp, sharpBroken
}

// tooMany reports whether more promises were broken than the owner allows.
func (k *kept) tooMany() bool {
	ended, broken, _, _ := k.count()
	return broken*1000 > k.bound*ended
}

// status is how the sharpened view does, for the site's owner.
func (k *kept) status() *message.SharpenStatus {
	s := &message.SharpenStatus{Selling: !k.tooMany(), BoundPerMille: k.bound}
	s.Ended, s.Broken, s.Sharpened, s.SharpenedBroken = k.count()
	if s.Ended > 0 {
		rate := float64(s.Broken) / float64(s.Ended)
		s.Rate = &rate
	}
	return s
}

package ledger

import (
	"bytes"
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"time"

	"ramp/protocol"
)

// deadline is when a hold (if its number is set), a quote (if it has an ID) or
// an undecided bundle ends.
type deadline struct {
	at       int64
	hold     uint64
	quote    quoteKey
	contract contractKey
}

// deadlines is a heap, soonest first. Those at the same instant go by number
// and contract, so that every replay of a ledger writes the same entries.
type deadlines []deadline

func (d deadlines) Len() int      { return len(d) }
func (d deadlines) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d deadlines) Less(i, j int) bool {
	x, y := &d[i], &d[j]
	order := cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.hold, y.hold),
		strings.Compare(x.quote.String(), y.quote.String()), bytes.Compare(x.contract[:], y.contract[:]))
	return order < 0
}

// Push is called by package heap.
func (d *deadlines) Push(x any) { *d = append(*d, x.(deadline)) }

// Pop is called by package heap.
func (d *deadlines) Pop() any {
	last := len(*d) - 1
	x := (*d)[last]
	*d = (*d)[:last]
	return x
}

// maxStale is how many deadlines of what is decided already may wait for their
// time besides as many as are open; beyond, they are taken out.
const maxStale = 1 << 10

// mostDeadlines bounds the heap: a bundle settles in seconds, but its deadline
// may be an hour ahead.
func (l *Ledger) mostDeadlines() int {
	return 2*(len(l.gathering)+len(l.holds)+len(l.quotes)) + maxStale
}

// awaitEnd has something open end at its time.
func (l *Ledger) awaitEnd(x deadline) {
	if len(l.deadlines) >= l.mostDeadlines() {
		l.deadlines = slices.DeleteFunc(l.deadlines, func(d deadline) bool { return !l.awaits(&d) })
		heap.Init(&l.deadlines)
	}
	heap.Push(&l.deadlines, x)
}

// Expired is what ended because its time was over.
type Expired struct {
	Voided []Voided
	Holds  []Hold
	Ended  []Ended
}

// Voided is a bundle whose time was over, and who was to sell.
type Voided struct {
	protocol.Receipt
	Sellers []protocol.AgentID
}

// Ended is a unit that was paid, or not, because somebody was silent.
type Ended struct {
	Contract     protocol.ContractID
	User, Seller protocol.AgentID
	Unit         int
	Paid         protocol.Credits
	How          protocol.End
}

// Expire voids the bundles whose settle-by is over and frees the holds whose
// time is over: nothing before the grace after a restart has passed, and at
// most MaxExpire at once.
func (l *Ledger) Expire(now time.Time) (Expired, []protocol.Record) {
	var done Expired
	c := l.change()
	for range MaxExpire {
		at, ok := l.soonest()
		if !ok || nanos(now) < max(at, l.graceEnds) {
			break
		}
		l.expire(now, c, heap.Pop(&l.deadlines).(deadline), &done)
	}
	return done, c.recs
}

func (l *Ledger) expire(now time.Time, c *change, d deadline, done *Expired) {
	h := l.holds[d.hold]
	switch {
	case d.quote.id != "":
		c.dropQuote(d.quote)
		return
	case h != nil && h.deal != nil:
		c.expireDeal(now, h, done)
		return
	case h != nil:
		c.end(now, h, Entry{Kind: KindExpire, Ref: h.ref}, h.free(0)...)
		done.Holds = append(done.Holds, h.view())
		return
	}
	g := l.gathering[d.contract]
	v := Voided{Receipt: c.void(now, d.contract, g, protocol.CodeSettleBy)}
	for _, p := range g.pays {
		v.Sellers = append(v.Sellers, p.To)
	}
	done.Voided = append(done.Voided, v)
}

// awaits reports whether a deadline is still one: a hold's may have been moved.
func (l *Ledger) awaits(d *deadline) bool {
	h := l.holds[d.hold]
	q, quoted := l.quotes[d.quote]
	return h != nil && h.until == d.at || quoted && nanos(q.Until) == d.at || l.gathering[d.contract] != nil
}

// soonest is the first deadline of something still open. What was decided
// earlier leaves the heap here.
func (l *Ledger) soonest() (at int64, ok bool) {
	if l.recovery {
		return 0, false
	}
	for len(l.deadlines) > 0 {
		d := &l.deadlines[0]
		if l.awaits(d) {
			return d.at, true
		}
		heap.Pop(&l.deadlines)
	}
	return 0, false
}

// NextDeadline is when Expire next has something to do; zero: never, as things
// stand. It may lie in the past.
func (l *Ledger) NextDeadline() time.Time {
	at, ok := l.soonest()
	if !ok {
		return time.Time{}
	}
	return fromNanos(max(at, l.graceEnds))
}

package ledger

import (
	"container/heap"
	"time"

	"ramp/bank/row"
	"ramp/protocol"
)

// Expired is what ended because its time was over.
type Expired struct {
	Voided []Voided
	Holds  []Hold
	Ended  []Ended
}

// Voided is the receipt of a bundle that expired, and its sellers.
type Voided struct {
	protocol.Receipt
	Sellers []protocol.AgentID
}

// Ended is a unit whose hold ended because a party stayed silent.
type Ended struct {
	Contract     protocol.ContractID
	User, Seller protocol.AgentID
	Unit         int
	Paid         protocol.Credits
	How          protocol.End
}

// Expire voids the bundles whose settle-by is over and frees the holds whose
// time is over: nothing before the grace after a restart has passed, nothing
// while the bank recovers, and at most MaxExpire at once.
func (l *Ledger) Expire(now time.Time) (Expired, []protocol.Record) {
	var done Expired
	c := l.books.change()
	for range MaxExpire {
		at, ok := l.deadlines.next()
		if !ok || row.Nanos(now) < at || l.recovery.on {
			break
		}
		l.expire(now, c, heap.Pop(&l.deadlines.queue).(deadline), &done)
	}
	l.Orders.expire(c, now)
	return done, c.recs
}

func (l *Ledger) expire(now time.Time, c *change, d deadline, done *Expired) {
	h := l.holds.open[d.hold]
	switch {
	case d.quote.id != "":
		l.Exchange.drop(c, d.quote)
		return
	case h != nil && h.deal != nil:
		l.deals.expire(c, now, h, done)
		return
	case h != nil:
		l.holds.end(c, now, h, Entry{Kind: KindExpire, Ref: h.ref}, h.free(0)...)
		done.Holds = append(done.Holds, h.view())
		return
	}
	g := l.bundles.byContract[d.contract]
	v := Voided{Receipt: l.bundles.lapse(c, now, d.contract, g)}
	for _, p := range g.pays {
		v.Sellers = append(v.Sellers, p.To)
	}
	done.Voided = append(done.Voided, v)
}

// current reports whether something open ends at a deadline; that of a hold may have moved.
func (l *Ledger) current(d *deadline) bool {
	h := l.holds.open[d.hold]
	q, quoted := l.Exchange.quotes[d.quote]
	return h != nil && h.until == d.at || quoted && q.forgottenAt() == d.at || l.bundles.byContract[d.contract] != nil
}

// NextDeadline is when Expire next has something to do; zero: never, as things
// stand. It may lie in the past.
func (l *Ledger) NextDeadline() time.Time {
	at, ok := l.deadlines.next()
	if !ok || l.recovery.on {
		return time.Time{}
	}
	return row.Instant(at)
}

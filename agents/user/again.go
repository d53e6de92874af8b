package user

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// A unit whose seller has lost its slot, and has given its price back, is bought
// again, if its slot has not begun: a purchase of its own for that unit, within what
// the first order allowed and has not spent. The order is in the record that says
// that the money is back. One that buys nothing is given again, under the next
// number; so is one that a crash has ended before anything was signed. One that was
// signed goes on by itself, so no unit is bought twice.

// Bounds of what is bought again.
const (
	MaxAgain = 8       // orders in the place of one unit
	maxLost  = 1 << 12 // units waiting to be bought again
	// againFirst is between two orders, and doubles; againMarket is between two looks
	// while no seller is known, as after a start.
	againFirst  = 30 * time.Second
	againMarket = 5 * time.Second
)

// againMark is in the IDs of orders that the agent gives by itself; the number
// follows.
const againMark = ".again"

// lostUnit is a unit that is to be bought again. Its row is that of all who change
// the purchase.
type lostUnit struct {
	row    *Row
	unit   int
	number int       // of the order
	at     time.Time // it is given then
	given  bool
}

func (l *lostUnit) bought() *message.PurchasedUnit { return unitOf(l.row, l.unit) }

// first is the unit that its owner ordered.
func (l *lostUnit) first() (purchase string, unit, units int) {
	if q := l.row.Order.Replaces; q != nil {
		return q.First, q.Unit, q.Units
	}
	return l.row.Purchase.ID, l.unit, len(l.row.Purchase.Units)
}

// id is that of the order: of the first purchase, of the unit if that has several,
// and the number.
func (l *lostUnit) id() string {
	first, unit, units := l.first()
	if units > 1 {
		first += "." + strconv.Itoa(unit+1)
	}
	return first + againMark + strconv.Itoa(l.number)
}

// loseUnit plans the order in the place of a unit whose price was given back just
// now, or says why there is none. The caller saves the row.
func (r *Role) loseUnit(now time.Time, row *Row, u *message.PurchasedUnit) protocol.Output {
	l := &lostUnit{row: row, unit: u.Unit, at: now}
	if q := row.Order.Replaces; q != nil {
		l.number = q.Number
	}
	why := r.whyNotAgain(now, l)
	if why == "" {
		u.AgainMost = unspent(row)
		why = r.plan(l)
	}
	if why != "" {
		row.Purchase.Why += "; it is not bought again: " + why
		return protocol.Output{}
	}
	return r.runWaits(now, l)
}

// runs reports whether a program is to run in it.
func (l *lostUnit) runs() bool {
	q := l.row.Order.Replaces
	return l.row.Order.Program != nil || q != nil && q.Program
}

// whyNotAgain is why a unit that was lost is not bought again; "" if it is.
func (r *Role) whyNotAgain(now time.Time, l *lostUnit) string {
	o, u := l.row.Order.Options, l.bought()
	switch {
	case o.NoReplace:
		return "its order says so"
	case o.Approve:
		return "its order is to be approved"
	case !now.Before(u.Start):
		return "its slot has begun"
	case len(r.lost) >= maxLost:
		return fmt.Sprintf("%d units are being bought again", maxLost)
	case o.MaxCost > 0 && unspent(l.row) <= 0:
		return "nothing is left of what it may cost"
	case l.runs() && !r.runCanWait(l):
		return "its program has begun, or is over"
	}
	return ""
}

// unspent is what is left of the most that a purchase may cost, less what was set
// apart for other units that were lost; 0 if there is no such limit.
func unspent(row *Row) protocol.Credits {
	if row.Order.Options.MaxCost == 0 {
		return 0
	}
	p := row.Purchase
	left := row.Order.Options.MaxCost - (p.Total - p.RefundTotal)
	for _, u := range p.Units {
		left -= u.AgainMost
	}
	return left
}

// plan names the next order of a unit, and has it given at its time. It says why
// there is none.
func (r *Role) plan(l *lostUnit) string {
	for l.number++; l.number <= MaxAgain; l.number++ {
		if id := l.id(); r.purchases[id] == nil && !r.ended[id] && r.lost[id] == nil {
			break // no ID that was used
		}
	}
	id := l.id()
	switch {
	case l.number > MaxAgain:
		return fmt.Sprintf("it was ordered %d times", MaxAgain)
	case len(id) > protocol.MaxConversation:
		return "the ID of the purchase is too long"
	}
	l.given = false
	l.bought().Again = id
	r.lost[id] = l
	return ""
}

// wakeLost gives the orders whose time has come.
func (r *Role) wakeLost(now time.Time) protocol.Output {
	var out protocol.Output
	for _, id := range slices.Sorted(maps.Keys(r.lost)) {
		l := r.lost[id]
		if l == nil || l.given {
			continue
		}
		if !now.Before(l.at) {
			out = out.Join(r.giveAgain(now, l))
		}
		if r.lost[id] == l && !l.given {
			out.WakeAt = protocol.Earlier(out.WakeAt, l.at)
		}
	}
	return out
}

// giveAgain gives an order. Without any seller, as after a start, it waits.
func (r *Role) giveAgain(now time.Time, l *lostUnit) protocol.Output {
	order, err := againOrder(now, l)
	if err != nil {
		return r.endLost(now, l, err.Error())
	}
	switch {
	case len(r.Known(now, protocol.KindResource)) == 0:
		l.at = now.Add(againMarket)
		return protocol.Output{}
	case r.purchases[order.ID] != nil || r.ended[order.ID]: // its owner has used the ID since
		return r.tryAgain(l, now, func(why string) protocol.Output { return r.endLost(now, l, why) })
	}
	l.given = true
	return r.buy(now, order)
}

// againOrder is the first order, cut to the unit that was lost and to what is left
// of its limits.
func againOrder(now time.Time, l *lostUnit) (message.Buy, error) {
	o, u, p := l.row.Order, l.bought(), l.row.Purchase
	draft, _, err := rfql.Read(o.Document)
	if err != nil || l.unit >= len(draft.Requests) {
		return message.Buy{}, fmt.Errorf("its document cannot be read")
	}
	q := draft.Requests[l.unit]
	doc, err := rfql.Check(rfql.Draft{Objective: draft.Objective, Requests: []rfql.DraftRequest{q}}, now)
	if err != nil {
		return message.Buy{}, fmt.Errorf("it can no longer be had in the time that was asked for")
	}
	opt := o.Options
	opt.MaxCost, opt.Terms, opt.Mode = u.AgainMost, []protocol.Terms{l.row.Terms}, p.Mode
	if opt.MaxWait > 0 {
		last := later(p.Created, q.NotBefore).Add(opt.MaxWait)
		if opt.MaxWait = last.Sub(later(now, q.NotBefore)); opt.MaxWait <= 0 {
			return message.Buy{}, fmt.Errorf("it can no longer begin in the time that was asked for")
		}
	}
	first, unit, units := l.first()
	return message.Buy{ID: l.id(), Name: p.RFQ, Document: doc.XML(), Options: opt, Replaces: &message.Replaces{
		First: first, Unit: unit, Units: units, Number: l.number, Of: p.ID, Lost: l.unit, Program: l.runs(), Launch: l.row.Order.Launch(),
	}}, nil
}

// lostOver carries on when a purchase in the place of a unit is over: the program
// goes on there, or the order is given again.
func (r *Role) lostOver(now time.Time, p *purchase) protocol.Output {
	l := r.lost[p.view.ID]
	switch {
	case l == nil:
		return protocol.Output{}
	case p.view.State == StateSettled:
		delete(r.lost, p.view.ID)
		return r.runMoves(now, l, &p.view)
	case p.stopped:
		return r.endLost(now, l, "it was cancelled")
	}
	return r.tryAgain(l, now.Add(againFirst<<(l.number-1)), func(why string) protocol.Output {
		return r.endLost(now, l, why+"; the last of them: "+p.view.Why)
	})
}

// tryAgain plans the next order of a unit; or ends it.
func (r *Role) tryAgain(l *lostUnit, at time.Time, end func(why string) protocol.Output) protocol.Output {
	delete(r.lost, l.bought().Again)
	l.at = at
	if why := r.plan(l); why != "" {
		return end(why)
	}
	out := protocol.Output{Save: []protocol.Record{saveRow(*l.row)}, WakeAt: at}
	return out.Join(tellRow(*l.row, "again"))
}

// endLost gives a unit up.
func (r *Role) endLost(now time.Time, l *lostUnit, why string) protocol.Output {
	delete(r.lost, l.bought().Again)
	l.bought().Again, l.bought().AgainMost = "", 0
	l.row.Purchase.Why += "; it is not bought again: " + why
	out := protocol.Output{Save: []protocol.Record{saveRow(*l.row)}}
	return out.Join(tellRow(*l.row, "ended")).Join(r.runLoses(now, l, why))
}

// stopLost stops buying units of a purchase again, at its owner's word; unit -1:
// all.
func (r *Role) stopLost(now time.Time, id string, unit int) protocol.Output {
	var out protocol.Output
	for _, key := range slices.Sorted(maps.Keys(r.lost)) {
		l := r.lost[key]
		if l == nil || l.row.Purchase.ID != id || unit >= 0 && unit != l.unit {
			continue
		}
		if p := r.purchases[key]; p != nil {
			out = out.Join(r.stop(now, p))
		} else {
			out = out.Join(r.endLost(now, l, "it was cancelled"))
		}
	}
	return out
}

// lostRow is the row of a purchase of which a unit is being bought again.
func (r *Role) lostRow(id string) *Row {
	for _, l := range r.lost { // in any order: they share one
		if l.row.Purchase.ID == id {
			return l.row
		}
	}
	return nil
}

// restoreLost remembers the orders that a settled purchase names, until the rows of
// those are read: by their IDs they come after it.
func (r *Role) restoreLost(row *Row) {
	if !row.Purchase.Settled {
		return
	}
	delete(r.lost, row.Purchase.ID) // it is bought
	if other := r.awaitedRow(row.Purchase.ID); other != nil {
		row = other
	}
	for _, u := range row.Purchase.Units {
		if at := strings.LastIndex(u.Again, againMark); at >= 0 {
			n, _ := strconv.Atoi(u.Again[at+len(againMark):]) // our own
			r.lost[u.Again] = &lostUnit{row: row, unit: u.Unit, number: n, given: true}
		}
	}
}

// resumeLost goes on with the orders that do not go on by themselves: those that a
// crash has ended before their first record.
func (r *Role) resumeLost(now time.Time) protocol.Output {
	var out protocol.Output
	for _, id := range slices.Sorted(maps.Keys(r.lost)) {
		l := r.lost[id]
		if !l.given || r.purchases[id] != nil {
			continue
		}
		out = out.Join(r.tryAgain(l, now.Add(againMarket), func(why string) protocol.Output { return r.endLost(now, l, why) }))
	}
	return out
}

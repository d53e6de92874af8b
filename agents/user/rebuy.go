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

// Bounds of buying again.
const (
	MaxAgain  = 8       // orders that replace one unit
	maxRebuys = 1 << 12 // units waiting to be bought again
	// againFirst is between two orders, and doubles; againMarket is between two tries
	// while no seller is known, as after a start.
	againFirst  = 30 * time.Second
	againMarket = 5 * time.Second
)

// againMark is in the IDs of orders that the agent gives by itself; the number follows.
const againMark = ".again"

// rebuys holds the units that are being bought again.
//
// A unit whose seller has lost its slot and refunded it is bought again if its slot has not begun:
// as a purchase of its own, within what the first order allowed and has not spent. The record of
// the refund names the new order. An order that buys nothing is given again under the next number;
// so is one that a crash has ended before anything was signed. A signed one resumes by itself, so
// no unit is bought twice.
type rebuys struct {
	directory *directory
	purchases *purchases
	runs      *runs
	by        map[string]*rebuy // by the ID of the order
}

// rebuy is a unit that is to be bought again. Its row is the one that all others change too.
type rebuy struct {
	row    *Row
	unit   int
	number int       // of the order
	at     time.Time // it is given then
	given  bool
}

func (l *rebuy) lost() *Unit { return l.row.unit(l.unit) }

// first is the unit that its owner ordered.
func (l *rebuy) first() (purchase string, unit, units int) {
	if q := l.row.Order.Replaces; q != nil {
		return q.First, q.Unit, q.Units
	}
	return l.row.ID, l.unit, len(l.row.Units)
}

// id is the order's: the first purchase, the unit if there are several, and the number.
func (l *rebuy) id() string {
	first, unit, units := l.first()
	if units > 1 {
		first += "." + strconv.Itoa(unit+1)
	}
	return first + againMark + strconv.Itoa(l.number)
}

// hasProgram reports whether a program is to run in the unit.
func (l *rebuy) hasProgram() bool {
	q := l.row.Order.Replaces
	return l.row.Order.Program != nil || q != nil && q.Program
}

// lose plans the order that replaces a unit which was refunded just now, or records
// why it is not bought again. The caller saves the row.
func (r *rebuys) lose(now time.Time, row *Row, u *Unit) protocol.Output {
	l := &rebuy{row: row, unit: u.Unit, at: now}
	if q := row.Order.Replaces; q != nil {
		l.number = q.Number
	}
	why := r.obstacle(now, l)
	if why == "" {
		u.AgainMost = unspent(row)
		why = r.plan(l)
	}
	if why != "" {
		row.Why += "; it is not bought again: " + why
		return protocol.Output{}
	}
	return r.runs.wait(now, l)
}

// obstacle is why a lost unit is not bought again; "" if it is.
func (r *rebuys) obstacle(now time.Time, l *rebuy) string {
	o := l.row.Order.Options
	switch {
	case o.NoReplace:
		return "its order says so"
	case o.Approve:
		return "its order needs approval"
	case !now.Before(l.lost().Start):
		return "its slot has begun"
	case len(r.by) >= maxRebuys:
		return fmt.Sprintf("%d units are being bought again", maxRebuys)
	case o.MaxCost > 0 && unspent(l.row) <= 0:
		return "nothing is left of its maximum cost"
	case l.hasProgram() && !r.runs.canWait(l):
		return "its program has begun, or is over"
	}
	return ""
}

// unspent is what is left of the most that a purchase may cost, without the parts
// reserved for its other lost units; 0 if there is no such limit.
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

// plan names the next order of a unit, to be given at its time; or says why there cannot be one.
func (r *rebuys) plan(l *rebuy) string {
	for l.number++; l.number <= MaxAgain; l.number++ {
		if id := l.id(); !r.purchases.used(id) && r.by[id] == nil {
			break
		}
	}
	id := l.id()
	switch {
	case l.number > MaxAgain:
		return fmt.Sprintf("it was bought again %d times, which is the most", MaxAgain)
	case len(id) > protocol.MaxConversation:
		return "the ID of the purchase is too long"
	}
	l.given = false
	l.lost().Again = id
	r.by[id] = l
	return ""
}

func (r *rebuys) wake(now time.Time) protocol.Output {
	var out protocol.Output
	for _, id := range slices.Sorted(maps.Keys(r.by)) {
		l := r.by[id]
		if l == nil || l.given {
			continue
		}
		if !now.Before(l.at) {
			out = out.Join(r.order(now, l))
		}
		if r.by[id] == l && !l.given {
			out.WakeAt = protocol.Earlier(out.WakeAt, l.at)
		}
	}
	return out
}

// order gives an order. Without any seller, as after a start, it waits.
func (r *rebuys) order(now time.Time, l *rebuy) protocol.Output {
	order, err := l.order(now)
	if err != nil {
		return r.giveUp(now, l, err.Error())
	}
	switch {
	case len(r.directory.list(now, protocol.KindResource)) == 0:
		l.at = now.Add(againMarket)
		return protocol.Output{}
	case r.purchases.used(order.ID): // its owner has used the ID since
		return r.retry(now, l, now, "")
	}
	l.given = true
	return r.purchases.buy(now, order)
}

// order is the first order, cut to the unit that was lost and to what is left of its limits.
func (l *rebuy) order(now time.Time) (message.Buy, error) {
	o, p := l.row.Order, l.row.Purchase
	draft, _, err := rfql.Read(o.Document)
	if err != nil || l.unit >= len(draft.Requests) {
		return message.Buy{}, fmt.Errorf("its request cannot be read")
	}
	q := draft.Requests[l.unit]
	if u := l.lost(); draft.SameStart && len(draft.Requests) > 1 {
		q.NotBefore, q.End, q.Wall = u.Start, u.End, 0 // beside the other units
	}
	doc, err := rfql.Check(rfql.Draft{Objective: draft.Objective, Requests: []rfql.DraftRequest{q}}, now)
	if err != nil {
		return message.Buy{}, fmt.Errorf("it can no longer run in the requested time")
	}
	opt := o.Options
	opt.MaxCost, opt.Terms, opt.Mode, opt.Confirm = l.lost().AgainMost, []protocol.Terms{l.row.Terms}, p.Mode, false
	if opt.MaxWait > 0 {
		last := protocol.Later(p.Created, q.NotBefore).Add(opt.MaxWait)
		if opt.MaxWait = last.Sub(protocol.Later(now, q.NotBefore)); opt.MaxWait <= 0 {
			return message.Buy{}, fmt.Errorf("it can no longer begin in the requested time")
		}
	}
	first, unit, units := l.first()
	return message.Buy{ID: l.id(), Name: p.RFQ, Document: doc.XML(), Options: opt, Replaces: &message.Replaces{
		First: first, Unit: unit, Units: units, Number: l.number, Of: p.ID, Lost: l.unit, Program: l.hasProgram(), Launch: o.Launch(),
	}}, nil
}

// purchaseOver continues when a purchase that replaces a unit has ended: the program
// moves there, or the unit is ordered again.
func (r *rebuys) purchaseOver(now time.Time, p *purchase) protocol.Output {
	l := r.by[p.row.ID]
	switch {
	case l == nil:
		return protocol.Output{}
	case p.row.State == StateSettled:
		delete(r.by, p.row.ID)
		return r.runs.move(now, l, &p.row.Purchase)
	case p.stopped:
		return r.giveUp(now, l, "it was cancelled")
	}
	return r.retry(now, l, now.Add(againFirst<<(l.number-1)), "; the last of them: "+p.row.Why)
}

// retry plans the next order of a unit at a time. If there cannot be one it gives
// the unit up; last is the reason of the order before.
func (r *rebuys) retry(now time.Time, l *rebuy, at time.Time, last string) protocol.Output {
	delete(r.by, l.lost().Again)
	l.at = at
	if why := r.plan(l); why != "" {
		return r.giveUp(now, l, why+last)
	}
	return l.row.saveAndReport("again").Join(protocol.Output{WakeAt: at})
}

func (r *rebuys) giveUp(now time.Time, l *rebuy, why string) protocol.Output {
	u := l.lost()
	delete(r.by, u.Again)
	u.Again, u.AgainMost = "", 0
	l.row.Why += "; it is not bought again: " + why
	return l.row.saveAndReport("ended").Join(r.runs.lose(now, l, why))
}

// stop stops buying units of a purchase again, for its owner; unit -1: all.
func (r *rebuys) stop(now time.Time, id string, unit int) protocol.Output {
	var out protocol.Output
	for _, key := range slices.Sorted(maps.Keys(r.by)) {
		l := r.by[key]
		if l == nil || l.row.ID != id || unit >= 0 && unit != l.unit {
			continue
		}
		if p := r.purchases.by[key]; p != nil {
			out = out.Join(r.purchases.stop(now, p))
		} else {
			out = out.Join(r.giveUp(now, l, "it was cancelled"))
		}
	}
	return out
}

// stopFor stops seeking the slot that a unit of a run waits for.
func (r *Role) stopFor(now time.Time, run string, unit int) protocol.Output {
	if j := r.jobs.by[run]; j != nil {
		return r.jobs.withdraw(now, j)
	}
	return r.rebuys.stopFor(now, run, unit)
}

// stopFor stops buying it.
func (r *rebuys) stopFor(now time.Time, first string, unit int) protocol.Output {
	for _, l := range r.by { // in any order: there is one
		if id, u, _ := l.first(); id == first && u == unit {
			return r.stop(now, l.row.ID, l.unit)
		}
	}
	return protocol.Output{}
}

// row is the row of a purchase with a unit that is being bought again; nil for others.
func (r *rebuys) row(id string) *Row {
	for _, l := range r.by { // in any order: they share one
		if l.row.ID == id {
			return l.row
		}
	}
	return nil
}

// restore takes the orders that a settled purchase names, until their own rows are
// read: by their IDs they come after it.
func (r *rebuys) restore(row *Row) {
	if !row.Settled {
		return
	}
	delete(r.by, row.ID) // it is bought
	for _, u := range row.Units {
		if at := strings.LastIndex(u.Again, againMark); at >= 0 {
			n, _ := strconv.Atoi(u.Again[at+len(againMark):]) // our own
			r.by[u.Again] = &rebuy{row: row, unit: u.Unit, number: n, given: true}
		}
	}
}

// resume gives the orders again that do not resume by themselves: those that a crash
// has ended before their first record.
func (r *rebuys) resume(now time.Time) protocol.Output {
	var out protocol.Output
	for _, id := range slices.Sorted(maps.Keys(r.by)) {
		if l := r.by[id]; l != nil && l.given && r.purchases.by[id] == nil {
			out = out.Join(r.retry(now, l, now.Add(againMarket), ""))
		}
	}
	return out
}

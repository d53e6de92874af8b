package auction

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Bounds of the proposed changes.
const (
	maxSteps       = 3  // of one kind, for one unit
	maxRelaxations = 16 // in total
)

// need is a change to one unit that would get one seller's offer. Zero figures stay as requested.
type need struct {
	price protocol.Credits // the ceiling
	late  time.Duration    // at the end of the window
	cores int
	from  protocol.Credits // the seller's price; zero: unknown
}

// kind is the set of terms that a need changes; an empty need has none.
type kind uint8

const (
	changesTime kind = 1 << iota
	changesPrice
	changesCores
)

func (n need) kind() kind {
	var k kind
	if n.late > 0 {
		k |= changesTime
	}
	if n.price > 0 {
		k |= changesPrice
	}
	if n.cores > 0 {
		k |= changesCores
	}
	return k
}

// Relaxations lists the nearest changes of price, time and cores that would get offers for units
// without one, and how many offers. It combines two changes only if no single change would do.
func (e Explanation) Relaxations() []message.Relaxation {
	var list []message.Relaxation
	_, lacking := e.offering()
	for unit := range e.wants {
		if lacking[unit] {
			list = append(list, e.relax(unit)...)
		}
	}
	return list[:min(len(list), maxRelaxations)]
}

func (e Explanation) relax(unit int) []message.Relaxation {
	needs := e.needs(unit)
	var list []message.Relaxation
	for _, k := range []kind{changesPrice, changesTime, changesCores} {
		list = append(list, e.steps(unit, needs[k])...)
	}
	if len(list) > 0 {
		return list
	}
	for _, k := range []kind{changesPrice | changesTime, changesPrice | changesCores} {
		list = append(list, e.steps(unit, needs[k])...)
	}
	return list
}

// needs returns the changes that sellers without an offer for the unit need, by
// kind, with the nearest of each kind per seller.
func (e Explanation) needs(unit int) map[kind][]need {
	all := map[kind][]need{}
	for _, id := range e.sellers.order {
		own := map[kind]need{}
		for _, n := range e.needsOf(id, unit) {
			k := n.kind()
			if old, ok := own[k]; k != 0 && (!ok || compare(n, old) < 0) {
				own[k] = n
			}
		}
		for k, n := range own { // any order: each kind stands alone
			all[k] = append(all[k], n)
		}
	}
	return all
}

// needsOf returns the changes that one seller has hinted at, or those that its best offer implies.
func (e Explanation) needsOf(id protocol.AgentID, unit int) []need {
	var list []need
	if reasons := about(e.sellers.byID[id].reasons, map[int]bool{unit: true}); len(reasons) > 0 {
		r := decisive(reasons)
		for _, h := range r.Hints {
			if e.sameContract(unit, h) { // otherwise the contract would have to change as well
				list = append(list, e.need(unit, h.Price, h.Start, h.Cores))
			}
		}
		if len(r.Hints) == 0 {
			list = append(list, e.needUnhinted(unit, r))
		}
		return list
	}
	for _, bid := range e.standing.bids {
		if it := bid.Offer.Items[0]; bid.Seller == id && len(bid.Offer.Items) == 1 && it.Unit == unit {
			list = append(list, e.need(unit, it.Price, it.Slot.Start, it.Slot.Cores))
		}
	}
	return list
}

// needUnhinted derives the change from the figures of a refusal without hints.
func (e Explanation) needUnhinted(unit int, r protocol.Reason) need {
	switch {
	case r.Code == protocol.CodePrice && r.Asks > 0:
		return e.need(unit, r.Asks, time.Time{}, 0)
	case r.Code == protocol.CodeBusy && !r.Start.IsZero():
		return e.need(unit, 0, r.Start, 0)
	}
	return need{}
}

// need returns the change for a slot at a price; zero figures stay as requested.
func (e Explanation) need(unit int, price protocol.Credits, start time.Time, cores int) need {
	w := e.wants[unit]
	n := need{from: price}
	if price > w.Ceiling {
		n.price = price
	}
	if !start.IsZero() {
		n.late = w.lateness(protocol.Item{Slot: protocol.Slot{Start: start, End: start.Add(w.Wall)}})
	}
	if cores > 0 && cores < w.Cores {
		n.cores = cores
	}
	return n
}

// compare orders needs of the same kind: the shorter wait, then the lower price,
// then the more cores.
func compare(x, y need) int {
	return cmp.Or(cmp.Compare(x.late, y.late), cmp.Compare(x.price, y.price), cmp.Compare(y.cores, x.cores), cmp.Compare(x.from, y.from))
}

// steps counts how many offers each change of one kind would get. It merges changes
// that are about as near as the next one.
func (e Explanation) steps(unit int, needs []need) []message.Relaxation {
	slices.SortFunc(needs, compare)
	var list []message.Relaxation
	sum := need{cores: protocol.MaxCores}
	for i, n := range needs {
		sum.widen(n)
		if i+1 < len(needs) && e.asNear(unit, n, needs[i+1]) {
			continue
		}
		list = append(list, e.relaxation(unit, sum, i+1))
		if len(list) == maxSteps {
			break
		}
	}
	return list
}

// widen extends a change so that it includes n.
func (s *need) widen(n need) {
	s.late, s.price = max(s.late, n.late), max(s.price, n.price)
	s.cores = min(s.cores, n.cores) // zero where the kind does not change cores
	if s.from == 0 || n.from > 0 && n.from < s.from {
		s.from = n.from
	}
}

// asNear reports whether the next need is within a tenth of this one.
func (e Explanation) asNear(unit int, n, next need) bool {
	if n.late > 0 {
		return next.late <= n.late+n.late/10
	}
	if n.price > 0 {
		w := e.wants[unit]
		over, more := perMille(int64(n.price-w.Ceiling), int64(w.Ceiling)), perMille(int64(next.price-w.Ceiling), int64(w.Ceiling))
		return more <= over+over/10
	}
	return next.cores >= n.cores-n.cores/10
}

func (e Explanation) relaxation(unit int, n need, sellers int) message.Relaxation {
	r := message.Relaxation{Unit: unit, Price: n.price, Later: n.late, Cores: n.cores, Offers: sellers}
	if n.kind() == changesTime { // other changes may change the price, too
		r.From = n.from
	}
	r.Change = e.changeWords(r)
	return r
}

func (e Explanation) changeWords(r message.Relaxation) string {
	var parts []string
	if r.Later > 0 {
		parts = append(parts, "start "+ceilMinutes(r.Later)+" later")
	}
	if c := e.wants[r.Unit].Ceiling; r.Price > 0 {
		parts = append(parts, fmt.Sprintf("+%s %% on the price (%s)", percent(perMille(int64(r.Price-c), int64(c))), r.Price))
	}
	if r.Cores > 0 {
		parts = append(parts, fmt.Sprintf("%d cores", r.Cores))
	}
	words := strings.Join(parts, " and ")
	if len(e.wants) > 1 {
		words = fmt.Sprintf("unit %d: %s", r.Unit+1, words)
	}
	return words
}

// AdviceOf describes a relaxation: the change, and the offers that it would get.
func AdviceOf(r message.Relaxation) string {
	words := r.Change + " would get " + offers(r.Offers)
	if r.From > 0 {
		words += " from " + r.From.String()
	}
	return words
}

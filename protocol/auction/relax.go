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

// Bounds of the changes that are proposed.
const (
	maxSteps       = 3  // of one kind, for one unit
	maxRelaxations = 16 // in all
)

// need is a change to one unit with which one seller would offer. Zero figures
// stay as they are.
type need struct {
	price protocol.Credits // the ceiling
	late  time.Duration    // at the end of the window
	cores int
	from  protocol.Credits // what it would ask; zero: it does not say
}

// kind tells which of price, time and cores a need changes; none: there is no
// such need.
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

// Relaxations are the nearest changes of price, time and cores that would get
// offers for the units that have none, and how many. A change of two of them at
// once is named only where no change of one would do.
func (b *Buyer) Relaxations() []message.Relaxation {
	var list []message.Relaxation
	_, lacking := b.offering()
	for unit := range b.cfg.Wants {
		if lacking[unit] {
			list = append(list, b.relax(unit)...)
		}
	}
	return list[:min(len(list), maxRelaxations)]
}

func (b *Buyer) relax(unit int) []message.Relaxation {
	needs := b.needs(unit)
	var list []message.Relaxation
	for _, k := range []kind{changesPrice, changesTime, changesCores} {
		list = append(list, b.steps(unit, needs[k])...)
	}
	if len(list) > 0 {
		return list
	}
	for _, k := range []kind{changesPrice | changesTime, changesPrice | changesCores} {
		list = append(list, b.steps(unit, needs[k])...)
	}
	return list
}

// needs are what sellers without an offer for the unit would need, by kind, and
// of one seller the nearest of each kind.
func (b *Buyer) needs(unit int) map[kind][]need {
	all := map[kind][]need{}
	for _, id := range b.order {
		own := map[kind]need{}
		for _, n := range b.needsOf(id, unit) {
			k := n.kind()
			if old, ok := own[k]; k != 0 && (!ok || compare(n, old) < 0) {
				own[k] = n
			}
		}
		for k, n := range own { // in any order: each kind by itself
			all[k] = append(all[k], n)
		}
	}
	return all
}

// needsOf are what one seller said would do, or else what it offered when the
// terms did not bind.
func (b *Buyer) needsOf(id protocol.AgentID, unit int) []need {
	var list []need
	if reasons := about(b.sellers[id].reasons, map[int]bool{unit: true}); len(reasons) > 0 {
		r := decisive(reasons)
		for _, h := range r.Hints {
			if b.sameContract(unit, h) { // else another price or time alone does not do
				list = append(list, b.need(unit, h.Price, h.Start, h.Cores))
			}
		}
		if len(r.Hints) == 0 {
			list = append(list, b.needUnhinted(unit, r))
		}
		return list
	}
	for _, bid := range b.standing {
		if it := bid.Offer.Items[0]; bid.Seller == id && len(bid.Offer.Items) == 1 && it.Unit == unit {
			list = append(list, b.need(unit, it.Price, it.Slot.Start, it.Slot.Cores))
		}
	}
	return list
}

// needUnhinted is what the figures of a refusal without hints come to.
func (b *Buyer) needUnhinted(unit int, r protocol.Reason) need {
	switch {
	case r.Code == protocol.CodePrice && r.Asks > 0:
		return b.need(unit, r.Asks, time.Time{}, 0)
	case r.Code == protocol.CodeBusy && !r.Start.IsZero():
		return b.need(unit, 0, r.Start, 0)
	}
	return need{}
}

// need is what must change for a slot at a price; zero figures are as asked.
func (b *Buyer) need(unit int, price protocol.Credits, start time.Time, cores int) need {
	w := b.cfg.Wants[unit]
	n := need{from: price}
	if price > w.Ceiling {
		n.price = price
	}
	if !start.IsZero() {
		n.late = lateness(w, protocol.Item{Slot: protocol.Slot{Start: start, End: start.Add(w.Wall)}})
	}
	if cores > 0 && cores < w.Cores {
		n.cores = cores
	}
	return n
}

// compare tells which of two needs of the same kind is nearer: the shorter wait,
// then the lower price, then the more cores.
func compare(x, y need) int {
	return cmp.Or(cmp.Compare(x.late, y.late), cmp.Compare(x.price, y.price), cmp.Compare(y.cores, x.cores), cmp.Compare(x.from, y.from))
}

// steps sums needs of one kind: how many offers each change would get. Changes
// that are about as near as the next are named together with it.
func (b *Buyer) steps(unit int, needs []need) []message.Relaxation {
	slices.SortFunc(needs, compare)
	var list []message.Relaxation
	sum := need{cores: protocol.MaxCores}
	for i, n := range needs {
		sum.widen(n)
		if i+1 < len(needs) && b.asNear(unit, n, needs[i+1]) {
			continue
		}
		list = append(list, b.relaxation(unit, sum, i+1))
		if len(list) == maxSteps {
			break
		}
	}
	return list
}

// widen makes a change do for n as well.
func (s *need) widen(n need) {
	s.late, s.price = max(s.late, n.late), max(s.price, n.price)
	s.cores = min(s.cores, n.cores) // zero where the kind does not change cores
	if s.from == 0 || n.from > 0 && n.from < s.from {
		s.from = n.from
	}
}

// asNear reports whether the next need is within a tenth of this one.
func (b *Buyer) asNear(unit int, n, next need) bool {
	if n.late > 0 {
		return next.late <= n.late+n.late/10
	}
	if n.price > 0 {
		w := b.cfg.Wants[unit]
		over, more := perMille(int64(n.price-w.Ceiling), int64(w.Ceiling)), perMille(int64(next.price-w.Ceiling), int64(w.Ceiling))
		return more <= over+over/10
	}
	return next.cores >= n.cores-n.cores/10
}

func (b *Buyer) relaxation(unit int, n need, sellers int) message.Relaxation {
	r := message.Relaxation{Unit: unit, Price: n.price, Later: n.late, Cores: n.cores, Offers: sellers}
	if n.kind() == changesTime { // other changes may change what is asked, too
		r.From = n.from
	}
	r.Change = b.changeWords(r)
	return r
}

func (b *Buyer) changeWords(r message.Relaxation) string {
	var parts []string
	if r.Later > 0 {
		parts = append(parts, "start "+ceilMinutes(r.Later)+" later")
	}
	if c := b.cfg.Wants[r.Unit].Ceiling; r.Price > 0 {
		parts = append(parts, fmt.Sprintf("+%s %% on the price (%s)", percent(perMille(int64(r.Price-c), int64(c))), r.Price))
	}
	if r.Cores > 0 {
		parts = append(parts, fmt.Sprintf("%d cores", r.Cores))
	}
	words := strings.Join(parts, " and ")
	if len(b.cfg.Wants) > 1 {
		words = fmt.Sprintf("unit %d: %s", r.Unit+1, words)
	}
	return words
}

// AdviceOf is a relaxation in words: the change, and what it would get.
func AdviceOf(r message.Relaxation) string {
	words := r.Change + " would get " + offers(r.Offers)
	if r.From > 0 {
		words += " from " + r.From.String()
	}
	return words
}

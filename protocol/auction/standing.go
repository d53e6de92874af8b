package auction

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/clearing"
	"ramp/protocol/message"
)

// standing holds the offers that stand in an auction, and the ceilings that they
// set for the next call.
type standing struct {
	wants    wants
	last     func(protocol.AgentID) bool // sellers whose offers set no ceiling
	together commonStart
	round    int
	best     bool // the running round is the best-offer round
	budgeted bool
	fixed    bool // rounds of a fixed length, as in 002, whose users keep no equal offers
	bids     []clearing.Bid
	places   map[place]int // index into bids
	arrivals int
	improved bool   // an offer counted in the running round
	single   []bool // by unit: an offer for this unit alone stands
	ceilings []protocol.Credits
	bundles  map[string]message.BundleCeiling
	call     call
}

// call holds the figures of the running call for proposals. Offers are compared
// with it, and not with other answers to the same call: arrival must not decide.
type call struct {
	ceilings []protocol.Credits
	leaders  []protocol.AgentID // by unit; empty: nobody
	single   []bool
	bundles  map[string]protocol.Credits // least cost
}

// place identifies an offer: a later one of the same seller for the same units in
// the same group replaces it.
type place struct {
	seller       protocol.AgentID
	units, group string
}

func newStanding(ws wants, last func(protocol.AgentID) bool) *standing {
	s := &standing{
		wants: ws, last: last, ceilings: make([]protocol.Credits, len(ws)), bundles: map[string]message.BundleCeiling{},
		places: map[place]int{}, single: make([]bool, len(ws)),
	}
	for i, w := range ws {
		s.ceilings[i] = w.Ceiling
	}
	return s
}

// begin notes the figures of a new call.
func (s *standing) begin(round int, best bool) {
	s.round, s.best, s.improved = round, best, false
	s.call = call{slices.Clone(s.ceilings), s.leaders(), slices.Clone(s.single), make(map[string]protocol.Credits, len(s.bundles))}
	for units, c := range s.bundles { // any order: each entry stands alone
		s.call.bundles[units] = c.Cost
	}
}

// take adds the offers of a proposal that answer the request and beat the call, and
// lowers the ceilings to them. It reports whether any of them counts.
func (s *standing) take(now time.Time, id protocol.AgentID, b *bidder, p message.Proposal) (counts bool) {
	for _, o := range p.Offers {
		if !s.wants.answered(now, o, s.best) {
			continue
		}
		units := unitKey(o)
		if s.together.searches() {
			counts = (s.best || s.wants.withinCeilings(o)) && s.put(id, b, o, units) || counts
			continue
		}
		if s.together.wanted && !s.together.fits(o) {
			continue
		}
		if !s.best && (s.wants.late(o) || s.equals(o)) { // keep it in case nobody is in time, or the best is refused
			_ = s.wants.withinCeilings(o) && s.put(id, b, o, units)
			continue
		}
		if !s.best && !s.beats(o, units) || !s.put(id, b, o, units) || s.last(id) {
			continue
		}
		counts, s.improved = true, true
		if len(o.Items) == 1 {
			s.single[o.Items[0].Unit] = true
		}
		if !s.best {
			s.lowerCeilings(o, units)
		}
	}
	return counts
}

// beats reports whether an offer counts: in round 1 it must be within the request's
// price, later below the figures of the call.
func (s *standing) beats(o protocol.Offer, units string) bool {
	if len(o.Items) > 1 {
		cost, ok := s.call.bundles[units]
		return s.wants.withinCeilings(o) && (!ok || o.Cost < cost)
	}
	it := o.Items[0]
	if s.round == 1 {
		return it.Price <= s.wants[it.Unit].Ceiling
	}
	ceiling := s.call.ceilings[it.Unit]
	return it.Price < ceiling || it.Price == ceiling && !s.call.single[it.Unit]
}

// equals reports whether an offer for one unit is as good as one that stood at the call.
func (s *standing) equals(o protocol.Offer) bool {
	unit := o.Items[0].Unit
	return len(o.Items) == 1 && !s.fixed && s.round > 1 && s.call.single[unit] && o.Items[0].Price == s.call.ceilings[unit]
}

// put adds an offer, or replaces the same seller's earlier one for the same units.
// It reports whether the offer stands.
func (s *standing) put(id protocol.AgentID, b *bidder, o protocol.Offer, units string) bool {
	at := place{id, units, o.Group}
	i, ok := s.places[at]
	switch {
	case ok && !s.replaces(s.bids[i].Offer, o):
		return false
	case !ok && (len(s.bids) >= maxStanding || b.offers >= maxOfSeller || !b.admits(o)):
		return false
	case !ok:
		i = len(s.bids)
		s.places[at] = i
		s.bids = append(s.bids, clearing.Bid{})
		b.offers++
	}
	s.arrivals++
	s.bids[i] = clearing.Bid{Bid: protocol.Bid{Seller: id, Offer: o}, Arrival: s.arrivals}
	if len(o.Items) == 1 && s.budgeted {
		s.learn(b, o.Items[0])
	}
	return true
}

// replaces reports whether a seller's new offer replaces its old one: it breaks
// less of the request, or as much at a lower price. A best offer, which starts from
// the seller's own price, replaces nothing that satisfies the request.
func (s *standing) replaces(old, o protocol.Offer) bool {
	if s.together.wanted && !s.together.fits(old) {
		return true // its start is of no use any more
	}
	broken, by := s.wants.violations(old)
	if s.best && broken == 0 {
		return false
	}
	breaks, most := s.wants.violations(o)
	price := cmp.Compare(o.Cost, old.Cost)
	if len(o.Items) == 1 {
		price = cmp.Compare(o.Items[0].Price, old.Items[0].Price)
	}
	return cmp.Or(cmp.Compare(breaks, broken), cmp.Compare(most, by), price) < 0
}

// learn notes a seller's price, and how far it went below the call: its machine
// will be as busy in the next round. Who opens at its list price has not shown that.
func (s *standing) learn(b *bidder, it protocol.Item) {
	if b.prices == nil {
		b.prices = map[int]protocol.Credits{}
	}
	b.prices[it.Unit] = it.Price
	if drop := s.call.ceilings[it.Unit] - it.Price; !s.best && drop >= 0 && it.Price != b.list {
		b.drop, b.measured = drop, true
	}
}

// unitKey names the units of an offer, whatever their order.
func unitKey(o protocol.Offer) string {
	if len(o.Items) == 1 {
		return strconv.Itoa(o.Items[0].Unit)
	}
	list := units(o)
	slices.Sort(list)
	parts := make([]string, len(list))
	for i, u := range list {
		parts[i] = strconv.Itoa(u)
	}
	return strings.Join(parts, ",")
}

func units(o protocol.Offer) []int {
	list := make([]int, len(o.Items))
	for i, it := range o.Items {
		list[i] = it.Unit
	}
	return list
}

// lowerCeilings makes an offer that counts the next call's ceiling.
func (s *standing) lowerCeilings(o protocol.Offer, key string) {
	if len(o.Items) == 1 {
		it := o.Items[0]
		s.ceilings[it.Unit] = min(s.ceilings[it.Unit], it.Price)
		return
	}
	c, ok := s.bundles[key]
	if !ok && len(s.bundles) < maxBundles || ok && o.Cost < c.Cost {
		s.bundles[key] = message.BundleCeiling{Units: units(o), Cost: o.Cost}
	}
}

func (s *standing) ceilingList() []message.Ceiling {
	list := make([]message.Ceiling, len(s.ceilings))
	for i, c := range s.ceilings {
		list[i] = message.Ceiling{Unit: i, Price: c}
	}
	return list
}

// tell marks the ceilings at which a seller is tied with the leader, and reports whether
// there is any.
func (s *standing) tell(list []message.Ceiling, id protocol.AgentID) (any bool) {
	for i := range list {
		unit := list[i].Unit
		at, offered := s.places[place{seller: id, units: strconv.Itoa(unit)}]
		leader := s.call.leaders[unit]
		list[i].Tied = offered && s.bids[at].Offer.Items[0].Price == list[i].Price && leader != "" && leader != id
		any = any || list[i].Tied
	}
	return any
}

// leaders returns, by unit, whose offer at the ceiling would be bought: of equal ones the
// first to finish, then the first to arrive (docs/decisions/0014).
func (s *standing) leaders() []protocol.AgentID {
	first := make([]*clearing.Bid, len(s.ceilings))
	leaders := make([]protocol.AgentID, len(s.ceilings))
	for i := range s.bids {
		bid := &s.bids[i]
		it := bid.Offer.Items[0]
		if len(bid.Offer.Items) > 1 || it.Price != s.ceilings[it.Unit] || s.last(bid.Seller) || s.wants.late(bid.Offer) {
			continue
		}
		if f := first[it.Unit]; f == nil || cmp.Or(it.Slot.End.Compare(f.Offer.Items[0].Slot.End), cmp.Compare(bid.Arrival, f.Arrival)) < 0 {
			first[it.Unit], leaders[it.Unit] = bid, bid.Seller
		}
	}
	return leaders
}

func (s *standing) bundleList() []message.BundleCeiling {
	list := make([]message.BundleCeiling, 0, len(s.bundles))
	for _, k := range slices.Sorted(maps.Keys(s.bundles)) {
		list = append(list, s.bundles[k])
	}
	return list
}

// lacking returns the units without an offer for the unit alone.
func (s *standing) lacking() []int {
	var list []int
	for u, offered := range s.single {
		if !offered {
			list = append(list, u)
		}
	}
	return list
}

// live returns the offers that can still be bought, without fixed and excluded ones.
// A nil without excludes nothing.
func (s *standing) live(now time.Time, fixed []protocol.Bid, without func(protocol.Bid) bool) []clearing.Bid {
	isFixed := map[protocol.BidKey]bool{}
	for _, f := range fixed {
		isFixed[f.Key()] = true
	}
	var list []clearing.Bid
	for _, bid := range s.bids {
		begun := slices.ContainsFunc(bid.Offer.Items, func(it protocol.Item) bool { return !it.Slot.Start.After(now) })
		excluded := isFixed[bid.Key()] || without != nil && without(bid.Bid)
		if !excluded && bid.Offer.ValidUntil.After(now) && !begun {
			list = append(list, bid)
		}
	}
	return list
}

// cheapest returns the lowest price of each unit, and the starts of those offers if
// any of their sellers states how certain it is.
func (s *standing) cheapest() ([]*protocol.Credits, []message.RoundStart) {
	best, starts := make([]*protocol.Credits, len(s.ceilings)), make([]message.RoundStart, len(s.ceilings))
	for _, bid := range s.bids {
		for _, it := range bid.Offer.Items {
			if p := best[it.Unit]; p == nil || it.Price < *p {
				price := it.Price
				best[it.Unit] = &price
				starts[it.Unit] = message.RoundStart{Start: it.Slot.Start, Queued: bid.Offer.Queued}
			}
		}
	}
	if !slices.ContainsFunc(starts, func(s message.RoundStart) bool { return s.Queued != 0 }) {
		return best, nil
	}
	return best, starts
}

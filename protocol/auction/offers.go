package auction

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/clearing"
	"ramp/protocol/message"
)

// take keeps the offers of a proposal that answer the request and beat what
// stood, and lowers the ceilings to them. It reports whether any of them counts.
func (b *Buyer) take(now time.Time, seller protocol.AgentID, s *bidder, p message.Proposal) (counts bool) {
	for _, o := range p.Offers {
		if !b.answersRequest(now, o) {
			continue
		}
		units := unitKey(o)
		if b.state == Calling && b.late(o) { // the next best, should nobody else be in time
			_ = b.withinCeilings(o) && b.stand(seller, s, o, units)
			continue
		}
		if b.state == Calling && !b.beats(o, units) {
			continue
		}
		if !b.stand(seller, s, o, units) {
			continue
		}
		counts = true
		if len(o.Items) == 1 {
			b.single[o.Items[0].Unit] = true
		}
		if b.state == Calling {
			b.lowerCeilings(o, units)
		}
	}
	return counts
}

// answersRequest reports whether an offer is for units that were asked, in the
// right size, and priced as it says. Offers for anything else are noise.
func (b *Buyer) answersRequest(now time.Time, o protocol.Offer) bool {
	if len(o.Items) == 0 || o.Cost <= 0 || o.Cost > clearing.MaxOfferCost || o.ID == "" || !o.ValidUntil.After(now) {
		return false
	}
	seen := map[int]bool{}
	var sum protocol.Credits
	for _, it := range o.Items {
		if it.Unit < 0 || it.Unit >= len(b.cfg.Wants) || seen[it.Unit] || !b.fits(now, it) {
			return false
		}
		seen[it.Unit] = true
		var err error
		if sum, err = sum.Add(it.Cost); err != nil {
			return false
		}
	}
	return o.Cost == sum
}

// fits reports whether an item is a slot for its unit. In the best-offer round
// its price and its end may break the request's terms.
func (b *Buyer) fits(now time.Time, it protocol.Item) bool {
	w := b.cfg.Wants[it.Unit]
	cost, err := protocol.Cost(it.Price, it.Slot.Cores, it.Slot.Wall())
	switch {
	case err != nil || it.Price <= 0 || it.Cost <= 0 || it.Cost > cost:
		return false
	case it.Slot.Validate() != nil || it.Slot.Cores != w.Cores || it.Slot.Wall() < w.Wall:
		return false
	case it.Slot.Start.Before(w.NotBefore) || it.Slot.Start.Before(now):
		return false
	}
	return b.state == BestOffer || !it.Slot.End.After(w.End)
}

// late reports whether an offer starts later than the buyer may wait. Sellers do not
// know that limit, and will not offer another slot.
func (b *Buyer) late(o protocol.Offer) bool {
	return slices.ContainsFunc(o.Items, func(it protocol.Item) bool {
		last := b.cfg.Wants[it.Unit].LastStart
		return !last.IsZero() && it.Slot.Start.After(last)
	})
}

// beats reports whether an offer counts: in round 1 it must not be above the
// request's price, later it must be below what stood when the round was called.
func (b *Buyer) beats(o protocol.Offer, units string) bool {
	if len(o.Items) > 1 {
		cost, ok := b.stood.bundles[units]
		return b.withinCeilings(o) && (!ok || o.Cost < cost)
	}
	it := o.Items[0]
	if b.round == 1 {
		return it.Price <= b.cfg.Wants[it.Unit].Ceiling
	}
	ceiling := b.stood.ceilings[it.Unit]
	return it.Price < ceiling || it.Price == ceiling && !b.stood.single[it.Unit]
}

func (b *Buyer) withinCeilings(o protocol.Offer) bool {
	for _, it := range o.Items {
		if it.Price > b.cfg.Wants[it.Unit].Ceiling {
			return false
		}
	}
	return true
}

// stand puts an offer in place of the same seller's earlier one for the same
// units, if it breaks less of the request, or as much and is lower; it reports whether
// it stands. A best offer, which starts from the seller's own price, replaces nothing that
// satisfies the request.
func (b *Buyer) stand(seller protocol.AgentID, s *bidder, o protocol.Offer, units string) bool {
	at := place{seller, units, o.Group}
	i, ok := b.places[at]
	switch {
	case ok && !b.replaces(b.standing[i].Offer, o):
		return false
	case !ok && (len(b.standing) >= maxStanding || s.offers >= maxOfSeller):
		return false
	case !ok:
		i = len(b.standing)
		b.places[at] = i
		b.standing = append(b.standing, clearing.Bid{})
		s.offers++
	}
	b.arrivals++
	b.standing[i] = clearing.Bid{Seller: seller, Arrival: b.arrivals, Offer: o}
	if len(o.Items) == 1 {
		b.learn(s, o.Items[0])
	}
	return true
}

// replaces reports whether a seller's new offer takes the place of its old one.
func (b *Buyer) replaces(old, o protocol.Offer) bool {
	broken, by := b.violations(old)
	if b.state == BestOffer && broken == 0 {
		return false
	}
	breaks, most := b.violations(o)
	price := cmp.Compare(o.Cost, old.Cost)
	if len(o.Items) == 1 {
		price = cmp.Compare(o.Items[0].Price, old.Items[0].Price)
	}
	return cmp.Or(cmp.Compare(breaks, broken), cmp.Compare(most, by), price) < 0
}

// unitKey names the units of an offer, in whatever order it lists them.
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

// lowerCeilings makes an offer that counts the next round's ceiling.
func (b *Buyer) lowerCeilings(o protocol.Offer, key string) {
	if len(o.Items) == 1 {
		it := o.Items[0]
		b.ceilings[it.Unit] = min(b.ceilings[it.Unit], it.Price)
		return
	}
	c, ok := b.bundles[key]
	if !ok && len(b.bundles) < maxBundles || ok && o.Cost < c.Cost {
		b.bundles[key] = message.BundleCeiling{Units: units(o), Cost: o.Cost}
	}
}

func units(o protocol.Offer) []int {
	list := make([]int, len(o.Items))
	for i, it := range o.Items {
		list[i] = it.Unit
	}
	return list
}

package auction

import (
	"strconv"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/clearing"
	"ramp/protocol/message"
)

// take keeps the offers of a proposal that answer the request and beat what
// stands, and lowers the ceilings to them.
func (b *Buyer) take(now time.Time, seller protocol.AgentID, p message.Proposal) {
	for _, o := range p.Offers {
		if len(b.standing) >= maxStanding || !b.answersRequest(now, o) {
			continue
		}
		if b.state == Calling && !b.beats(o) {
			continue
		}
		b.arrivals++
		b.stand(clearing.Bid{Seller: seller, Arrival: b.arrivals, Offer: o})
	}
	b.lowerCeilings()
}

// answersRequest reports whether an offer is for units that were asked, in the
// right size, and priced as it says. Offers for anything else are noise.
func (b *Buyer) answersRequest(now time.Time, o protocol.Offer) bool {
	if len(o.Items) == 0 || o.Cost <= 0 || o.ID == "" || !o.ValidUntil.After(now) {
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
	return b.state == BestOffer || !b.late(it)
}

func (b *Buyer) late(it protocol.Item) bool {
	w := b.cfg.Wants[it.Unit]
	return it.Slot.End.After(w.End) || !w.LastStart.IsZero() && it.Slot.Start.After(w.LastStart)
}

// beats reports whether an offer counts: in round 1 it must not be above the
// request's price, later it must be below what stands.
func (b *Buyer) beats(o protocol.Offer) bool {
	if len(o.Items) > 1 {
		c, ok := b.bundles[unitKey(o)]
		return b.withinCeilings(o) && (!ok || o.Cost < c.Cost)
	}
	it := o.Items[0]
	if b.round == 1 {
		return it.Price <= b.cfg.Wants[it.Unit].Ceiling
	}
	return it.Price < *b.ceilings[it.Unit] || it.Price <= *b.ceilings[it.Unit] && !b.hasOffer(it.Unit)
}

func (b *Buyer) withinCeilings(o protocol.Offer) bool {
	for _, it := range o.Items {
		if it.Price > b.cfg.Wants[it.Unit].Ceiling {
			return false
		}
	}
	return true
}

func (b *Buyer) hasOffer(unit int) bool {
	for _, bid := range b.standing {
		if len(bid.Offer.Items) == 1 && bid.Offer.Items[0].Unit == unit {
			return true
		}
	}
	return false
}

// stand puts a bid in place of the same seller's earlier one for the same units.
// A best offer, which starts from the seller's own price, replaces nothing that
// satisfies the request.
func (b *Buyer) stand(bid clearing.Bid) {
	key := unitKey(bid.Offer)
	for i, old := range b.standing {
		if old.Seller != bid.Seller || unitKey(old.Offer) != key || old.Offer.Group != bid.Offer.Group {
			continue
		}
		if violated, _ := b.violations(old.Offer); b.state != BestOffer || violated > 0 {
			b.standing[i] = bid
		}
		return
	}
	b.standing = append(b.standing, bid)
}

func unitKey(o protocol.Offer) string {
	if len(o.Items) == 1 {
		return strconv.Itoa(o.Items[0].Unit)
	}
	parts := make([]string, len(o.Items))
	for i, it := range o.Items {
		parts[i] = strconv.Itoa(it.Unit)
	}
	return strings.Join(parts, ",")
}

// lowerCeilings makes the best standing offers the next round's ceilings.
func (b *Buyer) lowerCeilings() {
	if b.state != Calling {
		return
	}
	for _, bid := range b.standing {
		o := bid.Offer
		if len(o.Items) == 1 {
			it := o.Items[0]
			if it.Price < *b.ceilings[it.Unit] {
				price := it.Price
				b.ceilings[it.Unit] = &price
			}
			continue
		}
		c, ok := b.bundles[unitKey(o)]
		if !ok || o.Cost < c.Cost {
			b.bundles[unitKey(o)] = message.BundleCeiling{Units: units(o), Cost: o.Cost}
		}
	}
}

func units(o protocol.Offer) []int {
	list := make([]int, len(o.Items))
	for i, it := range o.Items {
		list[i] = it.Unit
	}
	return list
}

package clearing

import (
	"cmp"
	"strings"
	"time"

	"ramp/protocol"
)

// compareBids orders bids of equal cost by finish, arrival, agent ID and offer ID. If a
// seller uses an ID twice, the content decides, and never the order of the bids.
func compareBids(x, y *Bid) int {
	if c := cmp.Or(finish(x).Compare(finish(y)), cmp.Compare(x.Arrival, y.Arrival)); c != 0 {
		return c
	}
	if c := strings.Compare(string(x.Seller), string(y.Seller)); c != 0 {
		return c
	}
	if c := strings.Compare(x.Offer.ID, y.Offer.ID); c != 0 {
		return c
	}
	return compareContent(x, y)
}

func compareContent(x, y *Bid) int {
	c := cmp.Or(
		cmp.Compare(x.Offer.Cost, y.Offer.Cost),
		cmp.Compare(x.Violations, y.Violations),
		cmp.Compare(x.Excess, y.Excess),
		strings.Compare(x.Offer.Group, y.Offer.Group),
		cmp.Compare(len(x.Offer.Items), len(y.Offer.Items)))
	for i := 0; c == 0 && i < len(x.Offer.Items); i++ {
		c = compareItems(x.Offer.Items[i], y.Offer.Items[i])
	}
	return c
}

func compareItems(x, y protocol.Item) int {
	return cmp.Or(
		cmp.Compare(x.Unit, y.Unit),
		x.Slot.Start.Compare(y.Slot.Start),
		x.Slot.End.Compare(y.Slot.End),
		cmp.Compare(x.Slot.Cores, y.Slot.Cores))
}

// finish is the latest end of b's items.
func finish(b *Bid) time.Time {
	end := b.Offer.Items[0].Slot.End
	for _, it := range b.Offer.Items[1:] {
		if it.Slot.End.After(end) {
			end = it.Slot.End
		}
	}
	return end
}

func firstUnit(b *Bid) int {
	u := b.Offer.Items[0].Unit
	for _, it := range b.Offer.Items[1:] {
		u = min(u, it.Unit)
	}
	return u
}

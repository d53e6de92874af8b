package auction

import "ramp/protocol"

// Sizes are what a seller remembers of running auctions, and the bounds of it.
func (s *Sellers) Sizes() []protocol.Size {
	most := 0
	for _, n := range s.perBuyer {
		most = max(most, n)
	}
	return []protocol.Size{
		{Of: "auctions", N: len(s.live), Most: MaxAuctions},
		{Of: "auctions of one buyer", N: most, Most: MaxAuctionsPerBuyer},
		{Of: "bytes of documents", N: s.bytes, Most: MaxAuctionBytes + protocol.MaxDocument},
	}
}

// Sizes are what a buyer remembers of one auction, and the bounds of it.
func (b *Buyer) Sizes() []protocol.Size {
	most := 0
	for _, s := range b.sellers {
		most = max(most, s.offers)
	}
	return []protocol.Size{
		{Of: "sellers asked", N: len(b.order), Most: maxStanding},
		{Of: "offers", N: len(b.standing), Most: maxStanding},
		{Of: "offers of one seller", N: most, Most: maxOfSeller},
		{Of: "ceilings of bundles", N: len(b.bundles), Most: maxBundles},
		{Of: "rounds", N: len(b.rounds), Most: protocol.MaxRounds + 1},
	}
}

// Sizes are what a buyer remembers across auctions, and the bounds of it.
func (t *Timing) Sizes() []protocol.Size {
	return []protocol.Size{
		{Of: "answer times", N: len(t.answers), Most: timingMemory},
		{Of: "sellers that were late", N: len(t.late), Most: timingSellers},
	}
}

package auction

import "ramp/protocol"

// Sizes returns how much a seller remembers of running auctions, with the bounds.
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

// Sizes returns how much a buyer remembers across auctions, with the bounds.
func (t *Timing) Sizes() []protocol.Size {
	return []protocol.Size{
		{Of: "answer times", N: len(t.answers), Most: timingMemory},
		{Of: "sellers that were late", N: len(t.late), Most: timingSellers},
	}
}

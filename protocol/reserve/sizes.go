package reserve

import "ramp/protocol"

// Sizes are what a Participant remembers, and the bounds of it.
func (p *Participant) Sizes() []protocol.Size {
	holds, asked := 0, 0
	for _, b := range p.buyers {
		holds, asked = max(holds, b.holds), max(asked, b.asked)
	}
	return []protocol.Size{
		{Of: "units not sold", N: p.unsold, Most: MaxUnsold},
		{Of: "units remembered", N: len(p.claims), Most: MaxClaims},
		{Of: "deals", N: len(p.order), Most: 2 * MaxClaims}, // each has a unit, or a contract whose units are put away together
		{Of: "contracts", N: len(p.contracts), Most: MaxClaims},
		{Of: "buyers", N: len(p.buyers), Most: MaxBuyers},
		{Of: "units of one buyer not sold", N: holds, Most: p.cfg.BuyerHolds},
		{Of: "reservations asked for by one buyer", N: asked, Most: p.cfg.BuyerReserves},
		{Of: "reservations of a lost journal", N: len(p.strangers), Most: maxStrangers},
		{Of: "freed reservations of this life", N: len(p.swept), Most: maxSwept},
		{Of: "sold units that only a bank knows", N: len(p.foundUnits), Most: MaxClaims},
	}
}

// Sizes are what a Coordinator remembers of one purchase, and the bounds of it.
func (c *Coordinator) Sizes() []protocol.Size {
	return []protocol.Size{
		{Of: "offers voted on", N: len(c.ballots), Most: protocol.MaxUnits},
		{Of: "offers that were lost", N: len(c.excluded), Most: maxElections + protocol.MaxUnits + 1},
		{Of: "reasons of refusals", N: len(c.refusals), Most: maxRefusals},
		{Of: "copies", N: len(c.sales), Most: protocol.MaxUnits},
	}
}

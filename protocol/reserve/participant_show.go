package reserve

import (
	"cmp"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Retune changes how long votes hold and how much one buyer may hold. The values
// must be valid in a ParticipantConfig. Existing holds stay.
func (p *Participant) Retune(hold time.Duration, buyerHolds int, buyerCoreSeconds int64) {
	p.cfg.Hold, p.cfg.BuyerHolds, p.cfg.BuyerCoreSeconds = hold, buyerHolds, buyerCoreSeconds
}

// Began returns when this process of the seller started.
func (p *Participant) Began() time.Time { return p.banks.began }

// Unasked reports why the seller may not sell yet: a bank that has not listed its
// contracts with the seller, and the reason that it gave.
func (p *Participant) Unasked() (bank protocol.AgentID, why string, waits bool) {
	for _, q := range p.banks.list {
		if q.answered.IsZero() {
			return q.bank, q.why, true
		}
	}
	return "", "", false
}

// Unit is a unit of a contract that this seller has countersigned.
type Unit struct {
	User        protocol.AgentID // who signed the contract
	Reservation string
	Slot        protocol.Slot
	State       ClaimState
	Units       int  // in the whole contract, other sellers' included
	Unpaid      bool // paid after the job, whose end the bank has not decided yet
	Reported    bool // the job is over: the seller has reported its end, or sells the rest of the slot again
	Metered     bool // paid by use, under a contract that ends with its job (001)
	// Of a job of a federation (003), which no contract is about:
	Waits bool   // the site decides when it begins, and on how many cores
	Batch string // the reservation of the batch system in which it runs
}

// Unit finds a unit of this seller in a contract that is not archived yet.
func (p *Participant) Unit(id protocol.ContractID, unit int) (Unit, bool) {
	d := p.deals.contracts[id]
	if d == nil {
		return Unit{}, false
	}
	b := d.contract.sale.Bundle
	i := slices.IndexFunc(d.contract.claims, func(c *claim) bool { return c.item.Unit == unit })
	if i < 0 {
		return Unit{}, false
	}
	c := d.contract.claims[i]
	return Unit{
		User: b.User, Reservation: c.id, Slot: c.item.Slot, State: c.state, Units: len(b.Units),
		Unpaid: c.paidLater(), Reported: c.left(), Metered: b.Mode == protocol.ModeMetered,
	}, true
}

// Reservations lists all units, in order of start, then ID.
func (p *Participant) Reservations() []message.ReservationLine {
	list := append(p.deals.lines(), p.found.lines()...)
	slices.SortFunc(list, func(a, b message.ReservationLine) int {
		return cmp.Or(a.Slot.Start.Compare(b.Slot.Start), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// Unsure reports whether a reservation is held in the journal and may have been
// sold since the journal was written.
func (p *Participant) Unsure(reservation string) bool {
	c := p.deals.claims[reservation]
	return c != nil && c.unsure
}

// Strangers counts the reservations with the seller's mark that its journal lacks
// and that it leaves alone.
func (p *Participant) Strangers() int { return len(p.strangers.left) }

// Owed counts the refunds that a bank still has to pay.
func (p *Participant) Owed() (n int) {
	for _, c := range p.deals.claims { // any order: this only counts
		if c.owes() {
			n++
		}
	}
	return n
}

// Sizes returns how much a Participant remembers, with the bounds.
func (p *Participant) Sizes() []protocol.Size {
	return append(p.quota.sizes(), []protocol.Size{
		{Of: "units remembered", N: len(p.deals.claims), Most: MaxClaims},
		{Of: "deals", N: len(p.deals.order), Most: 2 * MaxClaims}, // each has a unit, or a contract whose units are archived together
		{Of: "contracts", N: len(p.deals.contracts), Most: MaxClaims},
		{Of: "bytes of void contracts", N: p.voids.bytes, Most: protocol.MaxVoids},
		{Of: "bytes of finished deals", N: p.past.bytes, Most: protocol.MaxPast},
		{Of: "reservations of a lost journal", N: len(p.strangers.left), Most: maxStrangers},
		{Of: "freed reservations of this process", N: len(p.strangers.freed), Most: maxFreed},
		{Of: "sold units that only a bank knows", N: len(p.found.units), Most: MaxClaims},
	}...)
}

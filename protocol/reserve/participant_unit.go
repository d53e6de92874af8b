package reserve

import "ramp/protocol"

// Unit is a unit of a contract that this seller has countersigned.
type Unit struct {
	User        protocol.AgentID // who signed the contract
	Reservation string
	Slot        protocol.Slot
	State       ClaimState
	Units       int  // of the whole contract, with those of other sellers
	Owed        bool // it is paid after the fact, and its end is still to be reported
	Reported    bool // how it ended was reported
	Metered     bool // it is paid for what is used, by a contract that ends with its job (001)
}

// Unit looks a unit up. A contract that is not known, that has been put away, or
// that has another seller for the unit has none.
func (p *Participant) Unit(id protocol.ContractID, unit int) (Unit, bool) {
	d := p.contracts[id]
	if d == nil || d.contract == nil {
		return Unit{}, false
	}
	b := d.contract.sale.Bundle
	for _, u := range p.mine(b) {
		c := p.claims[u.Reservation]
		if u.Unit == unit && c != nil {
			return Unit{
				User: b.User, Reservation: c.id, Slot: c.item.Slot, State: c.state, Units: len(b.Units),
				Owed: c.paidLater() && c.job == nil, Reported: c.job != nil, Metered: b.Mode == protocol.ModeMetered,
			}, true
		}
	}
	return Unit{}, false
}

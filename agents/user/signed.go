package user

import (
	"fmt"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// Live reports whether the purchase of a record still needed its owner or others when
// it was saved.
func (r Row) Live() bool { return live(r.Purchase.State) }

// Signed is the purchase of a live record as the record of its bundle, in
// reserve.TableBundles, says that it stands: a purchase is saved when it begins and
// when it is over, a bundle when it is signed and when the bank has decided.
func (r Row) Signed(bundle []byte) (message.Purchase, error) {
	p := r.Purchase
	saved, err := reserve.ReadSaved(bundle)
	if err != nil {
		return p, err
	}
	octets, err := contract.Content(saved.Bundle)
	if err != nil {
		return p, fmt.Errorf("purchase %s: %w", p.ID, err)
	}
	b, err := contract.Decode(octets)
	if err != nil {
		return p, fmt.Errorf("purchase %s: %w", p.ID, err)
	}
	p.State = saved.State.String()
	showSigned(&p, contract.ID(octets), b)
	return p, nil
}

// showSigned makes a signed contract the units of a purchase.
func showSigned(p *message.Purchase, id protocol.ContractID, b protocol.Bundle) {
	queued := map[int]protocol.Odds{}
	for _, u := range p.Units {
		queued[u.Unit] = u.Queued
	}
	p.Contract, p.Total, p.Units = id, b.Total, nil
	for _, u := range b.Units {
		p.Units = append(p.Units, message.PurchasedUnit{
			Unit: u.Unit, Resource: u.Seller.Name(), Seller: u.Seller, Reservation: u.Reservation,
			Cores: u.Slot.Cores, Start: u.Slot.Start, End: u.Slot.End, Price: u.Price, Cost: u.Cost, State: "held", Queued: queued[u.Unit],
		})
	}
}

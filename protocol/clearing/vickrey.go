package clearing

import (
	"errors"
	"fmt"
	"slices"

	"ramp/protocol"
)

// ErrPayment is returned when Vickrey payments are not defined for a problem or
// could not be proved within its limit.
var ErrPayment = errors.New("clearing: no Vickrey payments")

// Payment is what a seller of the set is paid.
type Payment struct {
	Seller protocol.AgentID
	Bid    protocol.Credits // what it asks: RAMP itself pays this
	Pay    protocol.Credits // never less than Bid

	// Pivotal says that without this seller nothing can be bought and that no
	// ceiling says what that is worth; it is paid its bid.
	Pivotal bool
}

// Vickrey computes what each seller of s, the solution of p, is paid so that
// none gains by asking for more than its own cost:
//
//	pay_i = C(N∖i) − (C(N) − c_i)
//
// where C is the least cost of a set, N all sellers, and c_i what i asks for what
// it sells. If without i there is no set within MaxCost, C(N∖i) is MaxCost: the
// buyer would rather buy nothing. Payments are an option; RAMP pays as bid.
//
// The problem must ask for least cost, with nothing fixed and every bid meeting
// every term, and s must be exact; otherwise, and if a problem without one of the
// sellers is not solved within p.Limit, it fails with ErrPayment. Sellers come in
// order of agent ID.
func Vickrey(p Problem, s Solution) ([]Payment, error) {
	if err := payable(p, s); err != nil {
		return nil, err
	}
	asked := map[protocol.AgentID]protocol.Credits{}
	var sellers []protocol.AgentID
	for _, b := range s.Chosen {
		if _, ok := asked[b.Seller]; !ok {
			sellers = append(sellers, b.Seller)
		}
		asked[b.Seller] += b.Offer.Cost
	}
	slices.Sort(sellers)
	payments := make([]Payment, 0, len(sellers))
	for _, id := range sellers {
		without, pivotal, err := costWithout(p, id)
		if err != nil {
			return nil, err
		}
		pay := Payment{Seller: id, Bid: asked[id], Pay: asked[id], Pivotal: pivotal}
		if !pivotal {
			pay.Pay = without - (s.Cost - asked[id])
		}
		payments = append(payments, pay)
	}
	return payments, nil
}

func payable(p Problem, s Solution) error {
	terms := slices.ContainsFunc(p.Bids, func(b Bid) bool { return b.Violations != 0 || b.Excess != 0 })
	switch {
	case p.Objective == protocol.ObjectiveTime:
		return fmt.Errorf("%w: the objective is %s, want cost", ErrPayment, p.Objective)
	case len(p.Fixed) > 0 || terms:
		return fmt.Errorf("%w: %d bids are fixed, or some violate terms", ErrPayment, len(p.Fixed))
	case s.Status != Covered || !s.Exact:
		return fmt.Errorf("%w: the set is %s, exact %t", ErrPayment, s.Status, s.Exact)
	}
	return nil
}

// costWithout is what the cheapest set without a seller costs, or the ceiling;
// pivotal if there is neither.
func costWithout(p Problem, id protocol.AgentID) (least protocol.Credits, pivotal bool, err error) {
	p.Bids = slices.DeleteFunc(slices.Clone(p.Bids), func(b Bid) bool { return b.Seller == id })
	s, err := Solve(p)
	switch {
	case err != nil:
		return 0, false, err
	case !s.Exact:
		return 0, false, fmt.Errorf("%w: without %s the limit of %d steps is not enough", ErrPayment, id, s.Steps)
	case s.Status == Covered:
		return s.Cost, false, nil
	}
	return p.MaxCost, p.MaxCost == 0, nil
}

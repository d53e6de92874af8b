package clearing_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/protocol/clearing"
)

func TestVickreyPaysTheSecondPriceForOneUnit(t *testing.T) {
	p := clearing.Problem{Units: 1, Objective: protocol.ObjectiveCost, Bids: []clearing.Bid{
		bid(0, 0, "a", 5, item(0, 0, 10, 1)), bid(1, 0, "b", 8, item(0, 0, 10, 1)), bid(2, 0, "c", 9, item(0, 0, 10, 1)),
	}}
	pays, err := clearing.Vickrey(p, solve(t, p))
	want := clearing.Payment{Seller: sellerID(0), Bid: 5, Pay: 8}
	if err != nil || len(pays) != 1 || pays[0] != want {
		t.Errorf("%+v, %v, want %+v", pays, err, want)
	}
}

func TestVickreyPaysWhoeverIsNeededUpToTheCeiling(t *testing.T) {
	p := clearing.Problem{Units: 1, Objective: protocol.ObjectiveCost, Bids: []clearing.Bid{bid(0, 0, "a", 5, item(0, 0, 10, 1))}}
	for ceiling, want := range map[protocol.Credits]clearing.Payment{
		0: {Seller: sellerID(0), Bid: 5, Pay: 5, Pivotal: true},
		7: {Seller: sellerID(0), Bid: 5, Pay: 7},
	} {
		p.MaxCost = ceiling
		if pays, err := clearing.Vickrey(p, solve(t, p)); err != nil || pays[0] != want {
			t.Errorf("ceiling %d: %+v, %v, want %+v", ceiling, pays, err, want)
		}
	}
}

func TestVickreyFollowsItsFormula(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t)
		s, err := clearing.Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		pays, err := clearing.Vickrey(p, s)
		if err != nil {
			if !errors.Is(err, clearing.ErrPayment) {
				t.Fatal(err)
			}
			return
		}
		for _, pay := range pays {
			checkPayment(t, p, s, pay)
		}
	})
}

func checkPayment(t *rapid.T, p clearing.Problem, s clearing.Solution, pay clearing.Payment) {
	var others []clearing.Bid
	for _, b := range p.Bids {
		if b.Seller != pay.Seller {
			others = append(others, b)
		}
	}
	p.Bids = others
	without, least := (&oracle{p: p}).solve(), p.MaxCost
	if without != nil {
		least = total(without)
	}
	want := least - s.Cost + pay.Bid
	if without == nil && p.MaxCost == 0 {
		want = pay.Bid
	}
	if pay.Pay != want || pay.Pay < pay.Bid || pay.Pivotal != (without == nil && p.MaxCost == 0) {
		t.Fatalf("%+v, want %d", pay, want)
	}
}

func TestVickreyRefusesWhatHasNoPayments(t *testing.T) {
	p := clearing.Problem{Units: 1, Objective: protocol.ObjectiveTime, Bids: []clearing.Bid{bid(0, 0, "a", 5, item(0, 0, 10, 1))}}
	if _, err := clearing.Vickrey(p, solve(t, p)); !errors.Is(err, clearing.ErrPayment) {
		t.Errorf("objective time: %v", err)
	}
	p.Objective, p.Bids[0].Violations = protocol.ObjectiveCost, 1
	if _, err := clearing.Vickrey(p, solve(t, p)); !errors.Is(err, clearing.ErrPayment) {
		t.Errorf("a violated term: %v", err)
	}
	p.Bids[0].Violations = 0
	if _, err := clearing.Vickrey(p, clearing.Solution{}); !errors.Is(err, clearing.ErrPayment) {
		t.Errorf("no set: %v", err)
	}
}

package user_test

import (
	"testing"
	"time"

	"ramp/agents/markettest"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// The journals of both sides have the bank's decisions, also on ended purchases, and
// list those that the bank could have made since an instant.
func TestBothSidesHaveTheBanksReceipts(t *testing.T) {
	m, _ := open(t, 1, nil)
	begun := m.Now()
	settle(t, m, 1, message.Options{})
	bundles := func(party string, each func(protocol.Tables, func(reserve.DecidedContract) error) error) (list []reserve.DecidedContract) {
		t.Helper()
		if err := each(m.Store(party), func(p reserve.DecidedContract) error { list = append(list, p); return nil }); err != nil {
			t.Fatal(err)
		}
		return list
	}
	check := func(when string) {
		t.Helper()
		bought, sold := bundles(markettest.User, reserve.EachBought), bundles(markettest.Seller(1), reserve.EachSold)
		if len(bought) != 1 || len(sold) != 1 || bought[0].Decided.Contract != sold[0].Decided.Contract || bought[0].Decided.Outcome != protocol.OutcomeSettled {
			t.Fatalf("%s: the user has %+v, the seller %+v", when, bought, sold)
		}
		for _, p := range []reserve.DecidedContract{bought[0], sold[0]} {
			if !p.Since(begun) || p.Since(m.Now().Add(time.Second)) || !p.Since(p.Decided.Time) {
				t.Errorf("%s: decided %s, and that is not since %s", when, p.Decided.Time, begun)
			}
		}
	}
	check("settled")
	past := m.Store(markettest.Seller(1))[reserve.TablePast]
	if !m.RunUntil(30*24*time.Hour, func() bool { past = m.Store(markettest.Seller(1))[reserve.TablePast]; return len(past) > 0 }) {
		t.Fatal("the seller puts nothing away")
	}
	check("put away")

	p := bundles(markettest.User, reserve.EachBought)[0]
	other, err := reserve.WithReceipt(m.Store(markettest.User)[reserve.TableBundles][p.Key], bundles(markettest.Seller(1), reserve.EachSold)[0].Receipt)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := reserve.ReadSaved(other); err != nil || s.State != reserve.Settled || string(s.Bundle) != string(p.Bundle) || len(s.Sales) != 1 {
		t.Errorf("with another receipt: %+v, %v", s, err)
	}
	if _, err := reserve.WithReceipt([]byte("{}"), nil); err == nil {
		t.Error("a record that is none is taken")
	}
}

// A receipt with a refund newer than a backup counts, even if its purchase is older.
func TestLaterRefundsAndEndsCountToo(t *testing.T) {
	at := markettest.Dawn
	for name, r := range map[string]protocol.Receipt{
		"refunded": {Time: at.Add(-time.Hour), Refunds: []protocol.Refund{{Time: at}}},
		"ended":    {Time: at.Add(-time.Hour), Ends: []protocol.UnitEnd{{Time: at}}},
		"decided":  {Time: at},
	} {
		if p := (reserve.DecidedContract{Decided: r}); !p.Since(at) || p.Since(at.Add(time.Nanosecond)) {
			t.Errorf("%s: %v", name, p.Since(at))
		}
	}
}

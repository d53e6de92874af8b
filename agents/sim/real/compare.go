package real

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"ramp/agents/user"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// Report is the result of a comparison.
type Report struct {
	Purchases, Settled, Void, Failed int
	Differences                      []string // empty: nothing is lost or half-done
}

// Compare compares the books of a soak in dir, after everything has stopped. It returns an
// error if they cannot be read.
func Compare(dir string) (Report, error) { return compareAt(dir, time.Now()) }

func compareAt(dir string, now time.Time) (Report, error) {
	b, err := readBooks(filepath.Join(dir, booksDir), now)
	if err != nil {
		return Report{}, err
	}
	c := newComparison(b, now)
	c.ledger()
	c.decided()
	for _, u := range b.users {
		c.user(u)
	}
	for _, s := range b.sites {
		c.site(s)
	}
	c.balances()
	return c.report, nil
}

// comparison is one comparison of all books.
type comparison struct {
	books
	now      time.Time
	report   Report
	outcomes map[protocol.ContractID]ledger.Entry
	signed   map[protocol.ContractID]protocol.Bundle // by any user
	lines    map[string]message.ReservationLine      // by reservation
	earned   map[protocol.AgentID]protocol.Credits   // according to the contracts
}

func newComparison(b books, now time.Time) *comparison {
	c := &comparison{
		books: b, now: now, outcomes: map[protocol.ContractID]ledger.Entry{}, signed: map[protocol.ContractID]protocol.Bundle{},
		lines: map[string]message.ReservationLine{}, earned: map[protocol.AgentID]protocol.Credits{},
	}
	for _, u := range b.users {
		c.earned[u.id] = b.Credit
		for _, v := range u.contracts {
			c.signed[v.ID] = v.Bundle
		}
	}
	for _, s := range b.sites {
		for _, l := range s.lines {
			c.lines[string(s.id)+" "+l.ID] = l
		}
	}
	return c
}

func (c *comparison) differ(format string, args ...any) {
	c.report.Differences = append(c.report.Differences, fmt.Sprintf(format, args...))
}

// ledger checks the bank's ledger by itself.
func (c *comparison) ledger() {
	for _, bad := range c.bank.report.Bad {
		c.differ("the ledger is wrong: %s", bad)
	}
	for currency, sum := range c.bank.report.Sum {
		if sum != "0" {
			c.differ("%s sums to %s over all accounts", currency, sum)
		}
	}
	for _, id := range c.bank.undecided {
		c.differ("contract %s is undecided at the bank", id)
	}
	for _, id := range c.bank.holds {
		c.differ("hold %s is open at the bank", id)
	}
}

// decided checks every decision of the bank: it must be the only one of its contract, a user
// must have the contract, and the amounts must agree with it.
func (c *comparison) decided() {
	for _, e := range c.bank.decisions {
		if before, twice := c.outcomes[e.Contract]; twice {
			c.differ("contract %.8s is decided twice, by entries %d and %d", e.Contract, before.Number, e.Number)
			continue
		}
		c.outcomes[e.Contract] = e
		b, known := c.signed[e.Contract]
		switch {
		case !known:
			c.differ("contract %.8s is %s at the bank, and in no user's journal", e.Contract, e.Kind)
		case e.Kind == ledger.KindSettle:
			c.moved(e, b)
		}
	}
}

// moved compares the amounts of a settlement with its contract.
func (c *comparison) moved(e ledger.Entry, b protocol.Bundle) {
	want := map[protocol.AgentID]protocol.Credits{b.User: -b.Total}
	for _, u := range b.Units {
		want[u.Seller] += u.Cost
	}
	for id, amount := range want {
		c.earned[id] += amount
	}
	for _, leg := range e.Legs {
		want[leg.Account] -= leg.Amount
	}
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if want[id] != 0 {
			c.differ("contract %.8s moved %s less to %s than it says", e.Contract, want[id], id.Name())
		}
	}
}

// ended reports whether a reservation's state is final.
func ended(state string) bool {
	return state == string(reserve.ClaimSold) || state == string(reserve.ClaimFreed)
}

// user compares a user's journal, and the outcomes that it learnt, with the bank.
func (c *comparison) user(u userBook) {
	for _, id := range slices.Sorted(maps.Keys(u.purchases)) {
		c.purchase(u, id, u.purchases[id])
	}
	for _, id := range slices.Sorted(maps.Keys(u.contracts)) {
		if _, known := u.purchases[id]; !known {
			c.differ("%s has signed a contract for %s, and has no such purchase", u.name, id)
		}
		c.contract(u, id)
	}
	told := c.Told[u.name]
	for _, id := range slices.Sorted(maps.Keys(told)) {
		if p := u.purchases[id]; told[id] != p.State {
			c.differ("%s reported that %s is %s, but its journal says %q", u.name, id, told[id], p.State)
		}
	}
}

func (c *comparison) purchase(u userBook, id string, p message.Purchase) {
	c.report.Purchases++
	v, signed := u.contracts[id]
	switch {
	case p.State == user.StateSettled:
		c.report.Settled++
		if !signed || v.ID != p.Contract || !p.Settled || v.Bundle.Total != p.Total || len(v.Bundle.Units) != len(p.Units) {
			c.differ("purchase %s is settled for the user, but not by a contract of its own: %+v", id, p)
		}
	case !user.Over(p.State):
		c.differ("purchase %s is still %s", id, p.State)
	case p.State == user.StateVoid:
		c.report.Void++
	default:
		c.report.Failed++
	}
}

// contract compares all parties of a contract with the bank's decision.
func (c *comparison) contract(u userBook, id string) {
	v := u.contracts[id]
	e, decided := c.outcomes[v.ID]
	if !decided {
		c.differ("contract %.8s of purchase %s is unknown at the bank", v.ID, id)
	}
	settled := decided && e.Kind == ledger.KindSettle
	if p := u.purchases[id]; p.Settled != settled {
		c.differ("purchase %s is %q for the user, but settled=%v at the bank", id, p.State, settled)
	}
	for _, unit := range v.Bundle.Units {
		l, known := c.lines[string(unit.Seller)+" "+unit.Reservation]
		sold := known && l.State == string(reserve.ClaimSold) && l.Contract == v.ID
		switch {
		case sold != settled:
			c.differ("contract %.8s of purchase %s: settled=%v at the bank, but unit %d of %s is %q (%s)",
				v.ID, id, settled, unit.Unit, unit.Seller.Name(), l.State, l.Why)
		case sold && (l.Cost != unit.Cost || l.Unit != unit.Unit || !same(l.Slot, unit.Slot)):
			c.differ("contract %.8s unit %d: the user has %+v, the seller %+v", v.ID, unit.Unit, unit, l)
		}
	}
}

func same(a, b protocol.Slot) bool {
	return a.Cores == b.Cores && a.Start.Equal(b.Start) && a.End.Equal(b.End)
}

// balances compares all accounts with the sums of their contracts.
func (c *comparison) balances() {
	list := map[protocol.AgentID]string{}
	for _, u := range c.users {
		list[u.id] = u.name
	}
	for _, s := range c.sites {
		list[s.id] = s.name
	}
	for _, id := range slices.Sorted(maps.Keys(list)) {
		var has, held protocol.Credits
		for _, l := range c.bank.accounts[id].Lines {
			has, held = has+l.Balance, held+l.Held
		}
		if has != c.earned[id] || held != 0 {
			c.differ("%s has %s at the bank and %s held; its contracts come to %s", list[id], has, held, c.earned[id])
		}
	}
}

package markettest

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"ramp/agents/resource"
	"ramp/agents/user"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// Purchases are the user's stored purchases, by ID.
func (m *Market) Purchases() map[string]message.Purchase {
	list := map[string]message.Purchase{}
	for id, value := range m.Store(User)[user.TablePurchases] {
		row, err := user.ReadRow(value)
		must(m.tb, err)
		list[id] = row.View()
	}
	return list
}

// Balance is a party's balance at the bank.
func (m *Market) Balance(name string) protocol.Credits {
	var sum protocol.Credits
	a, _ := m.ledger().Account(m.cast.ID(name))
	for _, l := range a.Lines {
		sum += l.Balance
	}
	return sum
}

func (m *Market) ledger() *ledger.Ledger {
	cfg := ledger.Config{Bank: m.cast.ID(Bank), Currencies: []string{m.cast.Terms().Currency}}
	l, err := ledger.Load(cfg, m.Now(), m.Store(Bank))
	must(m.tb, err)
	return l
}

// Outcome is a contract's outcome in the bank's store.
func (m *Market) Outcome(id protocol.ContractID) protocol.Outcome {
	r, err := m.ledger().Outcome(id)
	must(m.tb, err)
	return r.Outcome
}

// Check reports every violation of the rules that hold once faults have stopped and everything is
// decided. Either all units of a contract are sold and paid once, or none is and nothing is held.
// Journals, batch systems and ledger agree. The money adds up.
func (m *Market) Check() error {
	errs := []error{m.checkLedger()}
	paid := map[string]protocol.Credits{}
	for _, id := range slices.Sorted(maps.Keys(m.contracts())) {
		errs = append(errs, m.checkContract(m.contracts()[id], paid))
	}
	for _, name := range slices.Sorted(maps.Keys(m.batches)) {
		errs = append(errs, m.checkSite(name, paid[name]))
	}
	for id, p := range m.Purchases() {
		errs = append(errs, m.checkPurchase(id, p))
	}
	return errors.Join(errs...)
}

// contracts are all contracts that the user has signed, by conversation.
func (m *Market) contracts() map[string]reserve.Saved {
	list := map[string]reserve.Saved{}
	for conversation, value := range m.Store(User)[reserve.TableBundles] {
		s, err := reserve.ReadSaved(value)
		must(m.tb, err)
		list[conversation] = s
	}
	return list
}

func (m *Market) checkLedger() error {
	report, err := ledger.Audit(m.Store(Bank))
	if err != nil {
		return err
	}
	if len(report.Bad) > 0 {
		return fmt.Errorf("the ledger is wrong: %q", report.Bad)
	}
	for currency, sum := range m.ledger().Sum() {
		if sum != 0 {
			return fmt.Errorf("%s sums to %s", currency, sum)
		}
	}
	return nil
}

// checkContract compares every seller's journal with the bank's decision.
func (m *Market) checkContract(s reserve.Saved, paid map[string]protocol.Credits) error {
	bundle, err := openSaved(m.cast, s)
	if err != nil {
		return err
	}
	receipt, err := m.ledger().Outcome(bundle.ID)
	if err != nil {
		return err
	}
	if receipt.Outcome != protocol.OutcomeSettled && receipt.Outcome != protocol.OutcomeVoid {
		return fmt.Errorf("contract %.8s is %s at the bank", bundle.ID, receipt.Outcome)
	}
	for _, u := range bundle.Bundle.Units {
		line, known := m.reservation(u.Seller.Name(), u.Reservation)
		if !known && receipt.Outcome == protocol.OutcomeVoid {
			continue // it was removed later
		}
		refund, refunded := refundOf(receipt, u.Unit)
		if !slices.Contains(mayBe(receipt.Outcome, refunded), line.State) {
			return fmt.Errorf("contract %.8s is %s, refunded %v, but unit %d of %s is %q (%s)",
				bundle.ID, receipt.Outcome, refunded, u.Unit, u.Seller.Name(), line.State, line.Why)
		}
		if receipt.Outcome == protocol.OutcomeSettled {
			paid[u.Seller.Name()] += u.Cost - refund
		}
	}
	return nil
}

func refundOf(r protocol.Receipt, unit int) (protocol.Credits, bool) {
	for _, f := range r.Refunds {
		if f.Unit == unit {
			return f.Amount, true
		}
	}
	return 0, false
}

// mayBe is the states that a seller's unit may have at the end.
func mayBe(o protocol.Outcome, refunded bool) []string {
	switch {
	case o == protocol.OutcomeVoid:
		return []string{"freed"}
	case refunded:
		return []string{"cancelled", "broken"}
	}
	return []string{"sold"}
}

func (m *Market) reservation(seller, id string) (message.ReservationLine, bool) {
	for _, l := range m.Reservations(seller) {
		if l.ID == id {
			return l, true
		}
	}
	return message.ReservationLine{}, false
}

// Reservations are a seller's stored reservations.
func (m *Market) Reservations(seller string) []message.ReservationLine {
	h := m.world.Host(seller)
	role, _, err := resource.New(m.cfg.resource(m.cast, seller), h.Disk(), h.Now())
	must(m.tb, err)
	return role.Reservations()
}

// checkSite compares a seller's journal with its batch system and its account.
func (m *Market) checkSite(name string, paid protocol.Credits) error {
	want := map[string]bool{}
	for _, l := range m.Reservations(name) {
		switch l.State {
		case "sold", "held", "countersigned":
			want[l.ID] = l.Slot.End.After(m.Now())
		}
		if l.State == "held" || l.State == "countersigned" || l.State == "reserving" {
			return fmt.Errorf("%s still has %s %s at the end", name, l.ID, l.State)
		}
	}
	for id := range m.batches[name].Slots {
		if !want[id] {
			return fmt.Errorf("%s: the batch system has %s, which the journal does not have as sold", name, id)
		}
	}
	for id := range want {
		if _, ok := m.batches[name].Slots[id]; !ok && want[id] {
			return fmt.Errorf("%s: %s is sold, but not in the batch system", name, id)
		}
	}
	if got := m.Balance(name); got != paid {
		return fmt.Errorf("%s was paid %s for units that cost %s", name, got, paid)
	}
	return nil
}

// checkPurchase compares the user's state of a purchase with the bank's.
func (m *Market) checkPurchase(id string, p message.Purchase) error {
	saved, signed := m.contracts()[id]
	switch p.State {
	case user.StateSettled:
		if !signed || m.Outcome(p.Contract) != protocol.OutcomeSettled {
			return fmt.Errorf("purchase %s is settled for the user only", id)
		}
		return m.checkUnits(p)
	case user.StateVoid, user.StateFailed, user.StateInterrupted, user.StateCancelled:
	default:
		return fmt.Errorf("purchase %s is still %s", id, p.State)
	}
	if !signed {
		return nil
	}
	bundle, err := openSaved(m.cast, saved)
	if err != nil {
		return err
	}
	if o := m.Outcome(bundle.ID); o != protocol.OutcomeVoid {
		return fmt.Errorf("purchase %s is %s for the user, but %s at the bank", id, p.State, o)
	}
	return nil
}

// checkUnits compares the user's state of cancelled units with the bank's.
func (m *Market) checkUnits(p message.Purchase) error {
	receipt, err := m.ledger().Outcome(p.Contract)
	if err != nil {
		return err
	}
	for _, u := range p.Units {
		_, refunded := refundOf(receipt, u.Unit)
		line, _ := m.reservation(u.Resource, u.Reservation)
		broken := line.State == "broken" // the user learns of it from its statement
		if (u.State == user.StateCancelled) != refunded && !broken || u.State == user.StateCancelling {
			return fmt.Errorf("unit %d of purchase %s is %s for the user, refunded %v", u.Unit, p.ID, u.State, refunded)
		}
	}
	return nil
}

func openSaved(c *Cast, s reserve.Saved) (contract.Verified, error) {
	return contract.OpenBundle(s.Bundle, c.Trust, s.SignedAt)
}

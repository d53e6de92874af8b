package ledger_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// policyBank has ann with 100, bob, a frozen eve, a bartered currency with group
// A of ann, an exchange, and a sold unit of each mode that is open.
func policyBank(t *testing.T) *bank {
	t.Helper()
	b := newBank(t)
	b.must(t, "open ann", ignore(saved[ledger.Entry](b)(b.Open(b.now, agent("ann"), "ann"))))
	b.must(t, "open bob", ignore(saved[ledger.Entry](b)(b.Open(b.now, agent("bob"), "bob"))))
	b.must(t, "open eve", ignore(saved[ledger.Entry](b)(b.Open(b.now, agent("eve"), "eve"))))
	b.must(t, "credit", ignore(saved[ledger.Entry](b)(b.Credit(b.now, agent("ann"), "cr", 100, ""))))
	b.must(t, "barter", ignore(saved[ledger.Entry](b)(b.SetPolicy(b.now, "eur", ledger.Policy{Kind: ledger.PolicyBarter}))))
	b.must(t, "open group", ignore(saved[ledger.Entry](b)(b.Groups.Open(b.now, "A"))))
	b.must(t, "group", ignore(saved[ledger.Entry](b)(b.Groups.Set(b.now, ledger.Group{Name: "A", Shared: ledger.Whole, Members: []ledger.Member{{User: agent("ann"), Pays: ledger.PaysUser}}}, ""))))
	b.must(t, "freeze", ignore(saved[ledger.Entry](b)(b.SetStanding(b.now, agent("eve"), ledger.StandingFrozen, "late"))))
	b.must(t, "rate", ignore(saved[ledger.Entry](b)(b.Exchange.SetRate(b.now, "cr", "eur", protocol.Credit, ""))))
	b.must(t, "quote", ignore(saved[ledger.Quote](b)(b.Exchange.Quote(b.now, agent("ann"), "q", "cr", "eur", 5))))
	for _, mode := range []protocol.Mode{protocol.ModeOnCompletion, protocol.ModeMetered} {
		b.must(t, "copy", ignore(b.copy(deal(b, mode), agent("bob"))))
	}
	return b
}

func ignore[T any](_ T, err error) error { return err }

func (b *bank) must(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func deal(b *bank, mode protocol.Mode) contract {
	c := newContract(string(mode), agent("ann"), start().Add(time.Minute), ledger.Payment{To: agent("bob"), Amount: 10})
	c.Mode = mode
	c.Units[0].Slot = protocol.Slot{Start: start().Add(time.Hour), End: start().Add(2 * time.Hour), Cores: 4}
	if mode == protocol.ModeMetered {
		c.Units[0].Tariff = tariff()
	}
	return c
}

// refusal is a request that must change nothing.
type refusal struct {
	name string
	want protocol.Code
	ask  func(b *bank) error
}

func acts() []refusal {
	e := func(f func(b *bank) (ledger.Entry, []protocol.Record, error)) func(b *bank) error {
		return func(b *bank) error { _, _, err := f(b); return err }
	}
	long := strings.Repeat("x", ledger.MaxRef+1)
	ann, bob, zoe := agent("ann"), agent("bob"), agent("zoe")
	members := func(ms ...ledger.Member) ledger.Group { return ledger.Group{Name: "A", Members: ms} }
	half := ledger.Member{User: ann, Share: ledger.Whole / 2, Pays: ledger.PaysUser}
	return []refusal{
		{"a policy of an unknown currency", protocol.CodeNoBank, e(func(b *bank) (ledger.Entry, []protocol.Record, error) {
			return b.SetPolicy(b.now, "usd", ledger.Policy{Kind: ledger.PolicyBarter})
		})},
		{"an unknown policy", protocol.CodeMalformed, e(func(b *bank) (ledger.Entry, []protocol.Record, error) {
			return b.SetPolicy(b.now, "eur", ledger.Policy{Kind: 9})
		})},
		{"a decay where nothing decays", protocol.CodeMalformed, e(func(b *bank) (ledger.Entry, []protocol.Record, error) {
			return b.SetPolicy(b.now, "eur", ledger.Policy{Kind: ledger.PolicyPlain, Decay: 1})
		})},
		{"a policy after money has moved", protocol.CodeMismatch, e(func(b *bank) (ledger.Entry, []protocol.Record, error) {
			return b.SetPolicy(b.now, "cr", ledger.Policy{Kind: ledger.PolicyBarter})
		})},
		{"issuing what is bartered", protocol.CodeMode, e(func(b *bank) (ledger.Entry, []protocol.Record, error) { return b.Credit(b.now, ann, "eur", 1, "") })},
		{"a credit of nothing", protocol.CodeMalformed, e(func(b *bank) (ledger.Entry, []protocol.Record, error) { return b.Credit(b.now, ann, "cr", 0, "") })},
		{"a limit above zero", protocol.CodeMalformed, e(func(b *bank) (ledger.Entry, []protocol.Record, error) {
			return b.SetOverdraft(b.now, ledger.GroupID("A"), "eur", -1)
		})},
		{"a transfer to nobody", protocol.CodeAccount, e(func(b *bank) (ledger.Entry, []protocol.Record, error) {
			return b.Transfer(b.now, ann, zoe, "cr", 1, ledger.Disputed{}, "")
		})},
		{"a transfer from the issuer", protocol.CodeAccount, e(func(b *bank) (ledger.Entry, []protocol.Record, error) {
			return b.Transfer(b.now, ledger.Issuer, ann, "cr", 1, ledger.Disputed{}, "")
		})},
		{"a transfer of less than nothing", protocol.CodeMalformed, e(func(b *bank) (ledger.Entry, []protocol.Record, error) {
			return b.Transfer(b.now, ann, bob, "cr", -1, ledger.Disputed{}, "")
		})},
		{"a transfer of too much", protocol.CodeFunds, e(func(b *bank) (ledger.Entry, []protocol.Record, error) {
			return b.Transfer(b.now, ann, bob, "cr", 81, ledger.Disputed{}, "")
		})},
		{"a transfer to oneself", protocol.CodeMalformed, e(func(b *bank) (ledger.Entry, []protocol.Record, error) {
			return b.Transfer(b.now, ann, ann, "cr", 1, ledger.Disputed{}, "")
		})},
		{"a transfer in an unknown currency", protocol.CodeNoBank, e(func(b *bank) (ledger.Entry, []protocol.Record, error) {
			return b.Transfer(b.now, ann, bob, "usd", 1, ledger.Disputed{}, "")
		})},
		{"a transfer about no contract", protocol.CodeMalformed, e(func(b *bank) (ledger.Entry, []protocol.Record, error) {
			return b.Transfer(b.now, ann, bob, "cr", 1, ledger.Disputed{Contract: "x"}, "")
		})},
		{"a transfer with a long reference", protocol.CodeMalformed, e(func(b *bank) (ledger.Entry, []protocol.Record, error) {
			return b.Transfer(b.now, ann, bob, "cr", 1, ledger.Disputed{}, long)
		})},
		{"freezing twice", protocol.CodeMismatch, e(func(b *bank) (ledger.Entry, []protocol.Record, error) {
			return b.SetStanding(b.now, agent("eve"), ledger.StandingFrozen, "")
		})},
		{"closing with money", protocol.CodeMismatch, e(func(b *bank) (ledger.Entry, []protocol.Record, error) {
			return b.SetStanding(b.now, ann, ledger.StandingClosed, "")
		})},
		{"closing a seller that is not paid yet", protocol.CodeMismatch, e(func(b *bank) (ledger.Entry, []protocol.Record, error) {
			return b.SetStanding(b.now, bob, ledger.StandingClosed, "")
		})},
		{"a standing that is none", protocol.CodeMalformed, e(func(b *bank) (ledger.Entry, []protocol.Record, error) { return b.SetStanding(b.now, bob, 7, "") })},
		{"a group with a strange name", protocol.CodeMalformed, e(func(b *bank) (ledger.Entry, []protocol.Record, error) { return b.Groups.Open(b.now, "a b") })},
		{"a group twice", protocol.CodeMismatch, e(func(b *bank) (ledger.Entry, []protocol.Record, error) { return b.Groups.Open(b.now, "A") })},
		{"a group without account", protocol.CodeAccount, e(func(b *bank) (ledger.Entry, []protocol.Record, error) {
			return b.Groups.Set(b.now, ledger.Group{Name: "Z", Shared: ledger.Whole}, "")
		})},
		{"a group with a reference that is too long", protocol.CodeMalformed, e(func(b *bank) (ledger.Entry, []protocol.Record, error) {
			return b.Groups.Set(b.now, members(ledger.Member{User: ann, Share: ledger.Whole, Pays: ledger.PaysUser}), long)
		})},
		{"shares of 50 %", protocol.CodeMalformed, e(func(b *bank) (ledger.Entry, []protocol.Record, error) { return b.Groups.Set(b.now, members(half), "") })},
		{"shares of 150 %", protocol.CodeMalformed, e(func(b *bank) (ledger.Entry, []protocol.Record, error) {
			return b.Groups.Set(b.now, members(half, ledger.Member{User: bob, Share: ledger.Whole, Pays: ledger.PaysUser}), "")
		})},
		{"a member without account", protocol.CodeAccount, e(func(b *bank) (ledger.Entry, []protocol.Record, error) {
			return b.Groups.Set(b.now, members(half, ledger.Member{User: zoe, Share: ledger.Whole / 2, Pays: ledger.PaysUser}), "")
		})},
		{"no way to pay", protocol.CodeMalformed, e(func(b *bank) (ledger.Entry, []protocol.Record, error) {
			return b.Groups.Set(b.now, members(ledger.Member{User: ann, Share: ledger.Whole}), "")
		})},
		{"an income where there is none", protocol.CodeMode, e(func(b *bank) (ledger.Entry, []protocol.Record, error) { return b.SetAllowance(b.now, ann, "cr", 1, "") })},
		{"the end of a recovery that never began", protocol.CodeMismatch, e(func(b *bank) (ledger.Entry, []protocol.Record, error) { return b.SetRecovery(b.now, false, "") })},
	}
}

func requests() []refusal {
	ann, bob, eve := agent("ann"), agent("bob"), agent("eve")
	report := func(mode protocol.Mode, by protocol.AgentID, r ledger.JobReport) func(b *bank) error {
		return func(b *bank) error {
			c := deal(b, mode)
			return ignore(saved[protocol.Receipt](b)(b.Report(b.now, c.id, c.Bundle, by, r)))
		}
	}
	copied := func(change func(c *contract)) func(b *bank) error {
		return func(b *bank) error {
			c := deal(b, protocol.ModeMetered)
			c.id = contractID("changed")
			change(&c)
			_, _, err := b.Copy(b.now, c.id, c.Bundle, bob)
			return err
		}
	}
	return []refusal{
		{"a hold of a frozen account", protocol.CodeFrozen, func(b *bank) error { _, _, err := b.Hold(b.now, eve, "cr", 1, b.now.Add(time.Hour), ""); return err }},
		{"a voucher for no conversation", protocol.CodeMalformed, func(b *bank) error { _, _, err := b.Voucher(b.now, ann, "cr", "", 1, b.now.Add(time.Hour)); return err }},
		{"a voucher that is over", protocol.CodeExpired, func(b *bank) error { _, _, err := b.Voucher(b.now, ann, "cr", "c", 1, b.now); return err }},
		{"posting the hold of a unit", protocol.CodeUnknown, func(b *bank) error {
			_, _, err := b.PostHold(b.now, 1, []ledger.Payment{{To: bob, Amount: 1}}, "")
			return err
		}},
		{"voiding the hold of a unit", protocol.CodeUnknown, func(b *bank) error { _, _, err := b.VoidHold(b.now, 1, ""); return err }},
		{"a report by a stranger", protocol.CodeForbidden, report(protocol.ModeOnCompletion, eve, ledger.JobReport{Success: true})},
		{"a report of another unit", protocol.CodeForbidden, report(protocol.ModeOnCompletion, bob, ledger.JobReport{Unit: 1, Success: true})},
		{"a report with a long reference", protocol.CodeMalformed, report(protocol.ModeOnCompletion, bob, ledger.JobReport{Success: true, Ref: strings.Repeat("x", 201)})},
		{"usage that no meter says", protocol.CodeMalformed, report(protocol.ModeMetered, bob, ledger.JobReport{Usage: protocol.Usage{Wall: -1}})},
		{"more cycles than there are cores", protocol.CodeMismatch, report(protocol.ModeMetered, bob, ledger.JobReport{Usage: protocol.Usage{CPU: 5 * time.Hour, Wall: time.Hour}})},
		{"a verdict on nothing", protocol.CodeMismatch, func(b *bank) error { _, _, err := b.Judge(b.now, contractID("metered"), 0, ann, true, ""); return err }},
		{"a verdict on an unknown contract", protocol.CodeUnknown, func(b *bank) error { _, _, err := b.Judge(b.now, contractID("x"), 0, ann, true, ""); return err }},
		{"a verdict by the seller", protocol.CodeForbidden, func(b *bank) error { _, _, err := b.Judge(b.now, contractID("metered"), 0, bob, true, ""); return err }},
		{"a verdict on a unit that is not there", protocol.CodeUnknown, func(b *bank) error { _, _, err := b.Judge(b.now, contractID("metered"), 1, ann, true, ""); return err }},
		{"arbitration above the hold", protocol.CodeFunds, func(b *bank) error { _, _, err := b.Arbitrate(b.now, contractID("metered"), 0, 11, "x"); return err }},
		{"arbitration without a reference", protocol.CodeMalformed, func(b *bank) error { _, _, err := b.Arbitrate(b.now, contractID("metered"), 0, 1, ""); return err }},
		{"a cancellation above the cost", protocol.CodeMismatch, func(b *bank) error { return ignore(b.refund(deal(b, protocol.ModeMetered), 0, 11, bob)) }},
		{"an unknown mode", protocol.CodeMode, copied(func(c *contract) { c.Mode = "never" })},
		{"a metered bundle without a tariff", protocol.CodeMalformed, copied(func(c *contract) { c.Units[0].Tariff = protocol.Tariff{} })},
		{"a tariff that is paid at once", protocol.CodeMalformed, copied(func(c *contract) { c.Mode = protocol.ModeOnReservation })},
		{"a tariff with rmin above rmax", protocol.CodeMalformed, copied(func(c *contract) { c.Units[0].Tariff.P.Lo = c.Units[0].Tariff.P.Hi + 1 })},
		{"a ceiling of nothing", protocol.CodeMalformed, copied(func(c *contract) { c.Units[0].Cost, c.Total = 0, 0 })},
		{"a slot that ends after all deadlines", protocol.CodeMalformed, copied(func(c *contract) { c.Units[0].Slot.End = start().AddDate(300, 0, 0) })},
		{"a currency of any length", protocol.CodeNoBank, copied(func(c *contract) { c.Currency = strings.Repeat("x", ledger.MaxCurrency+1) })},
		{"a bundle of another bank", protocol.CodeNoBank, copied(func(c *contract) { c.Bank = bob })},
		{"a quote without a rate", protocol.CodeNoBank, func(b *bank) error { _, _, err := b.Exchange.Quote(b.now, ann, "n", "eur", "cr", 5); return err }},
		{"a quote of less than nothing", protocol.CodeMalformed, func(b *bank) error { _, _, err := b.Exchange.Quote(b.now, ann, "n", "cr", "eur", -5); return err }},
		{"a quote for a stranger", protocol.CodeAccount, func(b *bank) error {
			_, _, err := b.Exchange.Quote(b.now, agent("zoe"), "n", "cr", "eur", 5)
			return err
		}},
		{"an exchange for which the bank has too little", protocol.CodeFunds, func(b *bank) error { _, _, err := b.Exchange.CarryOut(b.now, ann, "q", 0); return err }},
		{"an exchange of somebody else's quote", protocol.CodeUnknown, func(b *bank) error { _, _, err := b.Exchange.CarryOut(b.now, bob, "q", 0); return err }},
		{"an exchange too late", protocol.CodeExpired, func(b *bank) error { _, _, err := b.Exchange.CarryOut(b.now.Add(time.Hour), ann, "q", 0); return err }},
		{"readmission without recovery", protocol.CodeForbidden, func(b *bank) error {
			c := deal(b, protocol.ModeMetered)
			_, _, err := b.Readmit(b.now, c.id, c.Bundle, protocol.Receipt{})
			return err
		}},
	}
}

func TestARefusalHasOneCodeAndChangesNothing(t *testing.T) {
	for _, tc := range slices.Concat(acts(), requests(), badInput()) {
		t.Run(tc.name, func(t *testing.T) {
			b := policyBank(t)
			before, accounts, entry := b.store.clone(), b.Accounts(), b.LastEntry()
			if got := code(tc.ask(b)); got != tc.want {
				t.Errorf("refused with %q, want %q", got, tc.want)
			}
			if !reflect.DeepEqual(accounts, b.Accounts()) || entry != b.LastEntry() || !maps.EqualFunc(before, b.store, func(x, y map[string][]byte) bool { return reflect.DeepEqual(x, y) }) {
				t.Error("something changed")
			}
			sound(t, b)
			if err := b.reload(); err != nil {
				t.Error(err)
			}
		})
	}
}

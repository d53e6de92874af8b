package ledger_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// Half of what the issuer's account can take is left to incomes: nobody asks before
// they are posted.
func TestCreditLeavesRoomForIncomes(t *testing.T) {
	b := newBank(t)
	ann, bob := agent("ann"), agent("bob")
	act := func(what string) func(ledger.Entry, []protocol.Record, error) {
		return func(_ ledger.Entry, records []protocol.Record, err error) {
			t.Helper()
			b.must(t, what, err)
			b.store.append(records)
		}
	}
	act("policy")(b.SetPolicy(b.now, "cr", ledger.Policy{Kind: ledger.PolicyAllowance, Decay: 1}))
	act("ann")(b.Open(b.now, ann, "ann"))
	act("bob")(b.Open(b.now, bob, "bob"))
	act("income")(b.SetAllowance(b.now, bob, "cr", 10, ""))
	if got := code(ignore(saved[ledger.Entry](b)(b.Credit(b.now, ann, "cr", protocol.MaxCredits, "")))); got != protocol.CodeOverflow {
		t.Errorf("a credit of all that fits was answered %q", got)
	}
	half := protocol.MaxCredits / 2
	act("credit")(b.Credit(b.now, ann, "cr", half, ""))
	if got := code(ignore(saved[ledger.Entry](b)(b.Credit(b.now, bob, "cr", 1, "")))); got != protocol.CodeOverflow {
		t.Errorf("a credit beyond the half was answered %q", got)
	}
	b.now = b.now.Add(48 * time.Hour)
	act("transfer")(b.Transfer(b.now, bob, ann, "cr", 1, ledger.Disputed{}, ""))
	if a, _ := b.Account(ledger.Issuer); a.Lines[0].Balance >= 0 {
		t.Errorf("the issuer has %s", a.Lines[0].Balance)
	}
	sound(t, b)
}

// A bank does not begin without a currency in which somebody has money.
func TestACurrencyWithMoneyIsNotLeftOut(t *testing.T) {
	b := newBank(t)
	ann := agent("ann")
	b.must(t, "open", ignore(saved[ledger.Entry](b)(b.Open(b.now, ann, "ann"))))
	fewer := config()
	fewer.Currencies = []string{"cr"}
	if _, err := ledger.Load(fewer, b.now, b.store); err != nil {
		t.Fatalf("with nothing in the currency: %v", err)
	}
	b.must(t, "credit", ignore(saved[ledger.Entry](b)(b.Credit(b.now, ann, "eur", 3, ""))))
	_, err := ledger.Load(fewer, b.now, b.store)
	if err == nil || !strings.Contains(err.Error(), "eur is not among the bank's currencies cr: put it back") {
		t.Errorf("with money in it: %v", err)
	}
	b.must(t, "reload", b.reload())
}

// What costs nothing is settled and paid back by an account below its limit too.
func TestNothingIsPaidByAll(t *testing.T) {
	b := newBank(t)
	ann, bob := agent("ann"), agent("bob")
	for _, who := range []protocol.AgentID{ann, bob} {
		b.must(t, "open", ignore(saved[ledger.Entry](b)(b.Open(b.now, who, who.Name()))))
		b.must(t, "overdraft", ignore(saved[ledger.Entry](b)(b.SetOverdraft(b.now, who, "cr", 5))))
		_, err := saved[ledger.Hold](b)(b.Hold(b.now, who, "cr", 5, b.now.Add(time.Hour), "ref"))
		b.must(t, "hold", err)
		b.must(t, "no overdraft", ignore(saved[ledger.Entry](b)(b.SetOverdraft(b.now, who, "cr", 0))))
	}
	free := newContract("free", ann, b.now.Add(time.Minute), ledger.Payment{To: bob})
	if r, err := b.copy(free, bob); err != nil || r.Outcome != protocol.OutcomeSettled {
		t.Errorf("a bundle of nothing: %v %v", r, err)
	}
	if r, err := b.refund(free, 0, 0, bob); err != nil || len(r.Refunds) != 1 {
		t.Errorf("a refund of nothing: %v %v", r, err)
	}
	dear := newContract("dear", ann, b.now.Add(time.Minute), ledger.Payment{To: bob, Amount: 1})
	if r, err := b.copy(dear, bob); err != nil || r.Reason != protocol.CodeFunds {
		t.Errorf("a bundle of something: %v %v", r, err)
	}
	sound(t, b)
}

// An invitation promises a credit that may be refused later. Then nobody is let in
// by it, and the bank goes on.
func TestAnInvitationWhoseCreditIsRefusedLetsNobodyIn(t *testing.T) {
	allowance := func(b *bank) {
		b.must(t, "policy", ignore(saved[ledger.Entry](b)(b.SetPolicy(b.now, "cr", ledger.Policy{Kind: ledger.PolicyAllowance, Decay: 1}))))
	}
	for _, c := range []struct {
		name   string
		credit protocol.Credits
		since  func(b *bank)
		want   protocol.Code
	}{
		{"more than the issuer may owe beside incomes", protocol.MaxCredits/2 + 1, allowance, protocol.CodeOverflow},
		{"more than fits beside other credits", protocol.MaxCredits, func(b *bank) {
			b.must(t, "credit", ignore(saved[ledger.Entry](b)(b.Credit(b.now, agent("ann"), "cr", 1, ""))))
		}, protocol.CodeOverflow},
		{"of a currency that is bartered since", 5, func(b *bank) {
			b.must(t, "policy", ignore(saved[ledger.Entry](b)(b.SetPolicy(b.now, "cr", ledger.Policy{Kind: ledger.PolicyBarter}))))
		}, protocol.CodeMode},
		{"of a currency that the bank keeps no more", 5, func(b *bank) {
			fewer := config()
			fewer.Currencies = []string{"eur"}
			var err error
			b.Ledger, err = ledger.Load(fewer, b.now, b.store)
			b.must(t, "load", err)
		}, protocol.CodeNoBank},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBank(t)
			b.must(t, "open", ignore(saved[ledger.Entry](b)(b.Open(b.now, agent("ann"), "ann"))))
			v := ledger.Invitation{Token: token("t"), Uses: 2, Expires: b.now.Add(time.Hour), Credit: c.credit, Currency: "cr"}
			b.must(t, "invite", ignore(saved[ledger.Entry](b)(b.Invitations.Invite(b.now, v, ""))))
			c.since(b)
			entries := b.LastEntry()
			if _, err := enrol(b, "t", "new", "new"); code(err) != c.want || b.LastEntry() != entries {
				t.Errorf("%v after %d more entries, want %s", err, b.LastEntry()-entries, c.want)
			}
			sound(t, b)
		})
	}
}

// A rate of before does not exchange money for that of a currency that was left out
// since: the bank would not begin again.
func TestNothingIsExchangedForACurrencyThatWasLeftOut(t *testing.T) {
	b := newBank(t)
	ann := agent("ann")
	b.must(t, "open", ignore(saved[ledger.Entry](b)(b.Open(b.now, ann, "ann"))))
	b.must(t, "credit", ignore(saved[ledger.Entry](b)(b.Credit(b.now, ann, "cr", 10, ""))))
	b.must(t, "rate", ignore(saved[ledger.Entry](b)(b.Exchange.SetRate(b.now, "cr", "eur", protocol.Credit, ""))))
	b.must(t, "overdraft", ignore(saved[ledger.Entry](b)(b.SetOverdraft(b.now, ledger.House, "eur", 10))))
	b.must(t, "quote", ignore(saved[ledger.Quote](b)(b.Exchange.Quote(b.now, ann, "before", "cr", "eur", 1))))
	fewer := config()
	fewer.Currencies = []string{"cr"}
	var err error
	b.Ledger, err = ledger.Load(fewer, b.now, b.store)
	b.must(t, "load", err)
	if got := code(ignore(saved[ledger.Quote](b)(b.Exchange.Quote(b.now, ann, "after", "cr", "eur", 1)))); got != protocol.CodeNoBank {
		t.Errorf("a quote was answered %q", got)
	}
	if got := code(ignore(saved[ledger.Quote](b)(b.Exchange.CarryOut(b.now, ann, "before", 0)))); got != protocol.CodeNoBank {
		t.Errorf("an exchange was answered %q", got)
	}
	if _, err := ledger.Load(fewer, b.now, b.store); err != nil {
		t.Error(err)
	}
}

// Debts decay at the issuer's cost, as often as they are made. So they are bounded in a
// currency with an allowance, whether the limit or the policy comes first.
func TestDebtsThatDecayStayWithinWhatTheIssuerCanOwe(t *testing.T) {
	b := newBank(t)
	ann := agent("ann")
	set := func(limit protocol.Credits) protocol.Code {
		return code(ignore(saved[ledger.Entry](b)(b.SetOverdraft(b.now, ann, "cr", limit))))
	}
	allow := func() protocol.Code {
		return code(ignore(saved[ledger.Entry](b)(b.SetPolicy(b.now, "cr", ledger.Policy{Kind: ledger.PolicyAllowance, Decay: ledger.MaxDecay}))))
	}
	b.must(t, "open", ignore(saved[ledger.Entry](b)(b.Open(b.now, ann, "ann"))))
	if got := set(ledger.MaxOverdraft + 1); got != "" {
		t.Errorf("a plain currency's limit was answered %q", got)
	}
	if got := allow(); got != protocol.CodeMismatch {
		t.Errorf("an allowance beside it was answered %q", got)
	}
	if got := set(ledger.MaxOverdraft); got != "" {
		t.Errorf("the most was answered %q", got)
	}
	if got := allow(); got != "" {
		t.Fatalf("an allowance beside the most was answered %q", got)
	}
	for _, limit := range []protocol.Credits{ledger.MaxOverdraft + 1, protocol.MaxCredits} {
		if got := set(limit); got != protocol.CodeMalformed {
			t.Errorf("a limit of %s was answered %q", limit, got)
		}
	}
	for i := range 20 {
		to := agent(string(rune('b' + i)))
		b.must(t, "open", ignore(saved[ledger.Entry](b)(b.Open(b.now, to, to.Name()))))
		a, _ := b.AccountAt(b.now, ann)
		b.must(t, "transfer", ignore(saved[ledger.Entry](b)(b.Transfer(b.now, ann, to, "cr", a.Lines[0].Available, ledger.Disputed{}, ""))))
		b.now = b.now.Add(24 * time.Hour)
	}
	if a, _ := b.Account(ledger.Issuer); -a.Lines[0].Balance < 18*ledger.MaxOverdraft {
		t.Errorf("the debts were not the issuer's: it owes %s", -a.Lines[0].Balance)
	}
	sound(t, b)
}

// A bundle that the bank cannot pay is decided all the same: in a mode in which its
// currency is not paid with the first copy, and else when a party asks. Otherwise its
// parties would ask for ever, and the sellers keep their cores.
func TestWhatCannotBePaidIsDecided(t *testing.T) {
	b := policyBank(t)
	ann, bob := agent("ann"), agent("bob")
	early := newContract("early", ann, b.now.Add(time.Minute), ledger.Payment{To: bob, Amount: 5}, ledger.Payment{To: agent("sue"), Amount: 5})
	early.Currency = "eur" // which is bartered
	for range 2 {
		if r, err := b.copy(early, bob); err != nil || r.Outcome != protocol.OutcomeVoid || r.Reason != protocol.CodeMode {
			t.Errorf("a mode in which the currency is not paid: %v %v", r, err)
		}
	}
	foreign := newContract("foreign", ann, b.now.Add(time.Minute), ledger.Payment{To: bob, Amount: 5})
	foreign.Currency = "usd"
	if _, err := b.copy(foreign, bob); code(err) != protocol.CodeNoBank {
		t.Errorf("a currency that is not kept: %v", err)
	}
	if r, err := b.void(foreign, bob); err != nil || r.Outcome != protocol.OutcomeVoid || r.Reason != protocol.CodeAbandoned {
		t.Errorf("and given up: %v %v", r, err)
	}
	if r, err := b.copy(foreign, bob); err != nil || r.Outcome != protocol.OutcomeVoid {
		t.Errorf("and a copy of it again: %v %v", r, err)
	}
	late := newContract("late", ann, b.now.Add(-time.Second), ledger.Payment{To: bob, Amount: 5})
	late.Currency = "usd"
	if r, err := b.copy(late, bob); err != nil || r.Reason != protocol.CodeSettleBy {
		t.Errorf("too late: %v %v", r, err)
	}
	sound(t, b)
	if err := b.reload(); err != nil {
		t.Error(err)
	}
}

// What was decided is answered also when its currency is kept no more.
func TestACurrencyThatIsLeftOutAnswersForItsContracts(t *testing.T) {
	b := newBank(t)
	ann, bob := agent("ann"), agent("bob")
	for _, who := range []protocol.AgentID{ann, bob} {
		b.must(t, "open", ignore(saved[ledger.Entry](b)(b.Open(b.now, who, who.Name()))))
	}
	c := newContract("x", ann, b.now.Add(time.Minute), ledger.Payment{To: bob, Amount: 5})
	want, err := b.copy(c, bob)
	b.must(t, "void for want of funds", err)
	fewer := config()
	fewer.Currencies = []string{"eur"}
	b.Ledger, err = ledger.Load(fewer, b.now, b.store)
	b.must(t, "load", err)
	if r, err := b.copy(c, bob); err != nil || !reflect.DeepEqual(r, want) {
		t.Errorf("%v %v, want %v", r, err, want)
	}
}

// A credit that was a mistake is taken back by the issuer; no more than was issued is, and
// nothing of what nobody issues.
func TestTheIssuerTakesBackWhatItIssued(t *testing.T) {
	b := newBank(t)
	ann, bob := agent("ann"), agent("bob")
	transfer := func(from protocol.AgentID, currency string, amount protocol.Credits) protocol.Code {
		return code(ignore(saved[ledger.Entry](b)(b.Transfer(b.now, from, ledger.Issuer, currency, amount, ledger.Disputed{}, "mistake"))))
	}
	for _, who := range []protocol.AgentID{ann, bob} {
		b.must(t, "open", ignore(saved[ledger.Entry](b)(b.Open(b.now, who, who.Name()))))
	}
	if got := transfer(ann, "cr", 1); got != protocol.CodeAccount {
		t.Errorf("before anything was issued: %q", got)
	}
	b.must(t, "credit", ignore(saved[ledger.Entry](b)(b.Credit(b.now, ann, "cr", 9, ""))))
	b.must(t, "limit", ignore(saved[ledger.Entry](b)(b.SetOverdraft(b.now, bob, "cr", 20))))
	for _, c := range []struct {
		from     protocol.AgentID
		currency string
		amount   protocol.Credits
		want     protocol.Code
	}{
		{ann, "cr", 10, protocol.CodeFunds}, {ann, "cr", 4, ""}, {bob, "cr", 6, protocol.CodeFunds}, {bob, "cr", 5, ""},
		{ann, "cr", 1, protocol.CodeFunds}, {ann, "eur", 1, protocol.CodeAccount}, {ann, "cr", 0, protocol.CodeMalformed},
	} {
		if got := transfer(c.from, c.currency, c.amount); got != c.want {
			t.Errorf("%s gives %s %s back: %q, want %q", c.from.Name(), c.amount, c.currency, got, c.want)
		}
	}
	if a, _ := b.Account(ledger.Issuer); a.Lines[0].Balance != 0 {
		t.Errorf("the issuer has %s", a.Lines[0].Balance)
	}
	sound(t, b)
}

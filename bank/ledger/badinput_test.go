package ledger_test

import (
	"testing"
	"time"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// badInput are amounts, times and repetitions that a bank must refuse; the table in
// docs/RELIABILITY.md says which test holds which kind of bad input.
func badInput() []refusal {
	ann, bob := agent("ann"), agent("bob")
	hold := func(amount protocol.Credits, currency string, until time.Duration) func(b *bank) error {
		return func(b *bank) error {
			_, _, err := b.Hold(b.now, ann, currency, amount, b.now.Add(until), "")
			return err
		}
	}
	credit := func(amount protocol.Credits, currency string) func(b *bank) error {
		return func(b *bank) error { _, _, err := b.Credit(b.now, bob, currency, amount, ""); return err }
	}
	transfer := func(amount protocol.Credits) func(b *bank) error {
		return func(b *bank) error {
			_, _, err := b.Transfer(b.now, ann, bob, "cr", amount, ledger.Disputed{}, "")
			return err
		}
	}
	refund := func(change func(c *contract), amount protocol.Credits) func(b *bank) error {
		return func(b *bank) error {
			c := deal(b, protocol.ModeMetered)
			change(&c)
			_, _, err := b.Refund(b.now, c.id, c.Bundle, 0, amount, bob)
			return err
		}
	}
	foreign := func(c *contract) { c.Bank = agent("other") }
	named := func(name string) func(b *bank) error {
		return func(b *bank) error { _, _, err := b.Open(b.now, agent("new"), name); return err }
	}
	return []refusal{
		{"an account with no name", protocol.CodeMalformed, named("")},
		{"an account named as the bank's own", protocol.CodeMalformed, named(".exchange")},
		{"an account named as a group's", protocol.CodeMalformed, named("group:A")},
		{"an account named as another agent", protocol.CodeMalformed, named(string(bob))},
		{"an account named as a flag", protocol.CodeMalformed, named("--json")},
		{"an account with a name of two lines", protocol.CodeMalformed, named("a\nb")},
		{"an account with a name that moves the cursor", protocol.CodeMalformed, named("a\x1b[2Jb")},
		{"an account with a name that is not text", protocol.CodeMalformed, named("a\xff")},
		{"a hold of nothing", protocol.CodeMalformed, hold(0, "cr", time.Hour)},
		{"a hold of less than nothing", protocol.CodeMalformed, hold(-1, "cr", time.Hour)},
		{"a hold of too much", protocol.CodeFunds, hold(protocol.MaxCredits, "cr", time.Hour)},
		{"a hold in an unknown currency", protocol.CodeNoBank, hold(1, "usd", time.Hour)},
		{"a hold that is over", protocol.CodeExpired, hold(1, "cr", 0)},
		{"a hold beyond all years", protocol.CodeExpired, hold(1, "cr", 200*365*24*time.Hour)},
		{"a credit of less than nothing", protocol.CodeMalformed, credit(-1, "cr")},
		{"a credit that overflows what was issued", protocol.CodeOverflow, credit(protocol.MaxCredits, "cr")},
		{"a credit in an unknown currency", protocol.CodeNoBank, credit(1, "usd")},
		{"a transfer of nothing", protocol.CodeMalformed, transfer(0)},
		{"a refund of less than nothing", protocol.CodeMismatch, refund(func(*contract) {}, -1)},
		{"a refund at another bank", protocol.CodeNoBank, refund(foreign, 1)},
		{"an annulment at another bank", protocol.CodeNoBank, func(b *bank) error {
			c := deal(b, protocol.ModeMetered)
			foreign(&c)
			_, _, err := b.Void(b.now, c.id, c.Bundle, ann)
			return err
		}},
		{"a report at another bank", protocol.CodeNoBank, func(b *bank) error {
			c := deal(b, protocol.ModeOnCompletion)
			foreign(&c)
			_, _, err := b.Report(b.now, c.id, c.Bundle, bob, ledger.JobReport{Success: true})
			return err
		}},
		{"a limit in an unknown currency", protocol.CodeNoBank, func(b *bank) error { _, _, err := b.SetOverdraft(b.now, ann, "usd", 1); return err }},
		{"a hold that never was", protocol.CodeUnknown, func(b *bank) error {
			_, _, err := b.PostHold(b.now, 99, []ledger.Payment{{To: bob, Amount: 1}}, "")
			return err
		}},
	}
}

// held is a bank with a hold of 20 by ann, and its number.
func held(t *testing.T) (*bank, uint64) {
	t.Helper()
	b := policyBank(t)
	h, err := saved[ledger.Hold](b)(b.Hold(b.now, agent("ann"), "cr", 20, b.now.Add(time.Hour), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b, h.Number
}

func (b *bank) post(n uint64, pays ...ledger.Payment) error {
	_, err := saved[ledger.Entry](b)(b.PostHold(b.now, n, pays, ""))
	return err
}

func TestAHoldIsPostedOnceInTimeAndWithinItsAmount(t *testing.T) {
	bob := agent("bob")
	tests := []struct {
		name string
		prep func(b *bank, n uint64) error
		pays []ledger.Payment
		want protocol.Code
	}{
		{"above the hold", nil, []ledger.Payment{{To: bob, Amount: 21}}, protocol.CodeFunds},
		{"above the hold in parts", nil, []ledger.Payment{{To: bob, Amount: 20}, {To: agent("ann"), Amount: 1}}, protocol.CodeFunds},
		{"parts that overflow", nil, []ledger.Payment{{To: agent("ann"), Amount: protocol.MaxCredits}, {To: bob, Amount: 1}}, protocol.CodeOverflow},
		{"nothing", nil, []ledger.Payment{{To: bob}}, protocol.CodeMalformed},
		{"less than nothing", nil, []ledger.Payment{{To: bob, Amount: -1}}, protocol.CodeMalformed},
		{"to nobody", nil, nil, protocol.CodeMalformed},
		{"twice", func(b *bank, n uint64) error { return b.post(n, ledger.Payment{To: bob, Amount: 1}) }, []ledger.Payment{{To: bob, Amount: 1}}, protocol.CodeUnknown},
		{"after it was voided", func(b *bank, n uint64) error {
			_, err := saved[ledger.Entry](b)(b.VoidHold(b.now, n, ""))
			return err
		}, []ledger.Payment{{To: bob, Amount: 1}}, protocol.CodeUnknown},
		{"when its time is over", func(b *bank, _ uint64) error { b.now = b.now.Add(time.Hour); return nil }, []ledger.Payment{{To: bob, Amount: 1}}, protocol.CodeExpired},
		{"after it has expired", func(b *bank, _ uint64) error {
			b.now = b.now.Add(time.Hour)
			b.expire()
			return nil
		}, []ledger.Payment{{To: bob, Amount: 1}}, protocol.CodeUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, n := held(t)
			if tt.prep != nil {
				b.must(t, "before", tt.prep(b, n))
			}
			entry := b.LastEntry()
			if got := code(b.post(n, tt.pays...)); got != tt.want {
				t.Errorf("refused with %q, want %q", got, tt.want)
			}
			if b.LastEntry() != entry {
				t.Error("something changed")
			}
			sound(t, b)
		})
	}
}

// A clock that is set back makes nobody's time longer and no entry older.
func TestAClockThatIsSetBackBringsNoHoldBack(t *testing.T) {
	b, n := held(t)
	b.now = b.now.Add(time.Hour)
	if done := b.expire(); len(done.Holds) != 1 {
		t.Fatalf("%d holds expired, want 1", len(done.Holds))
	}
	b.now = b.now.Add(-30 * time.Minute)
	if got := code(b.post(n, ledger.Payment{To: agent("bob"), Amount: 1})); got != protocol.CodeUnknown {
		t.Errorf("posted after the clock was set back: %q", got)
	}
	b.must(t, "credit", ignore(saved[ledger.Entry](b)(b.Credit(b.now, agent("bob"), "cr", 1, ""))))
	sound(t, b) // looks at the order of times
}

// What was decided is answered again, whoever sends it again, and changes nothing.
func TestRepeatedRequestsGetTheRecordedAnswer(t *testing.T) {
	b := policyBank(t)
	c := deal(b, protocol.ModeOnCompletion)
	ask := func() (protocol.Receipt, error) {
		return saved[protocol.Receipt](b)(b.Report(b.now, c.id, c.Bundle, agent("bob"), ledger.JobReport{Success: true}))
	}
	first, err := ask()
	b.must(t, "report", err)
	entry := b.LastEntry()
	for _, again := range []func() (protocol.Receipt, error){
		ask,
		func() (protocol.Receipt, error) { return b.copy(c, agent("bob")) },
		func() (protocol.Receipt, error) { return b.void(c, agent("ann")) },
		func() (protocol.Receipt, error) { return b.refund(c, 0, 1, agent("bob")) },
	} {
		r, err := again()
		if err == nil && (r.Entry != first.Entry || len(r.Ends) != 1 || r.Ends[0] != first.Ends[0] || len(r.Refunds) != 0) {
			t.Errorf("answered %+v, and before %+v", r, first)
		}
	}
	if b.LastEntry() != entry {
		t.Errorf("%d entries more", b.LastEntry()-entry)
	}
	sound(t, b)
}

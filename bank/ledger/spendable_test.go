package ledger_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// What an account is told that it may spend is what can be held for it, and not a
// micro-credit more, whichever way it pays and whatever it and its group have.
func TestWhatAMemberMaySpendIsWhatCanBeHeld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &bank{store: memory{}, now: start()}
		if err := b.reload(); err != nil {
			t.Fatal(err)
		}
		act := func(_ ledger.Entry, records []protocol.Record, err error) {
			if err != nil {
				t.Fatal(err)
			}
			b.store.append(records)
		}
		ann, bob, all := agent("ann"), agent("bob"), ledger.GroupID("all")
		act(b.SetPolicy(b.now, "cr", ledger.Policy{Kind: ledger.PolicyBarter}))
		act(b.Open(b.now, ann, "ann"))
		act(b.Open(b.now, bob, "bob"))
		act(b.Groups.Open(b.now, "all"))
		pays := rapid.SampledFrom([]ledger.Pays{ledger.PaysUserThenGroup, ledger.PaysUser, ledger.PaysGroup}).Draw(t, "pays")
		act(b.Groups.Set(b.now, ledger.Group{Name: "all", Members: []ledger.Member{{User: ann, Share: ledger.Whole, Pays: pays}}}, ""))
		for _, id := range []protocol.AgentID{ann, bob, all} {
			act(b.SetOverdraft(b.now, id, "cr", protocol.Credits(rapid.Int64Range(0, 50).Draw(t, "limit"))))
		}
		for range rapid.IntRange(0, 4).Draw(t, "transfers") {
			from := rapid.SampledFrom([]protocol.AgentID{ann, bob, all}).Draw(t, "from")
			to := rapid.SampledFrom([]protocol.AgentID{ann, bob, all}).Draw(t, "to")
			amount := protocol.Credits(rapid.Int64Range(1, 60).Draw(t, "amount"))
			if _, records, err := b.Transfer(b.now, from, to, "cr", amount, ledger.Disputed{}, ""); err == nil {
				b.store.append(records)
			}
		}
		if rapid.Bool().Draw(t, "lowered") {
			act(b.SetOverdraft(b.now, ann, "cr", 0))
		}
		if rapid.Bool().Draw(t, "frozen") {
			act(b.SetStanding(b.now, all, ledger.StandingFrozen, ""))
		}
		a, _ := b.Account(ann)
		line := a.Lines[0]
		if line.Currency != "cr" || line.Group != "all" {
			t.Fatalf("told %+v", line)
		}
		hold := func(amount protocol.Credits) error {
			_, _, err := b.Hold(b.now, ann, "cr", amount, b.now.Add(time.Hour), "")
			return err
		}
		if err := hold(line.Spendable + 1); code(err) != protocol.CodeFunds {
			t.Errorf("%s may be spent, and one more was answered %v", line.Spendable, err)
		}
		if line.Spendable > 0 {
			if err := hold(line.Spendable); err != nil {
				t.Errorf("%s may be spent: %v", line.Spendable, err)
			}
		}
	})
}

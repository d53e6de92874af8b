package bank_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"ramp/agents/bank"
	"ramp/agents/markettest"
	"ramp/bank/ledger"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
	"ramp/protocol/message"
)

// newStore is a ledger on the disk.
func newStore(t *testing.T) *ledgerdb.DB {
	t.Helper()
	db, err := ledgerdb.Open(filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// What memory has let go is asked of the store; all who ask meanwhile are
// answered, and nothing is decided a second time.
func TestOutcomesBeyondMemory(t *testing.T) {
	db := newStore(t)
	c := open(t, 1, db)
	old := c.bundle("old", 1)
	c.expect("the old one", c.ask("s01", protocol.Request, c.copyOf(old, "s01")), "s01 agree settled", "user inform settled")
	c.now = c.now.Add(protocol.OutcomeMemory + time.Hour)
	for i := range 3 { // each lets a few go
		v := c.bundle(fmt.Sprint("new", i), 1)
		c.expect("a new one", c.ask("s01", protocol.Request, c.copyOf(v, "s01")), "s01 agree settled", "user inform settled")
	}
	before, _ := c.role.Ledger().Account(c.cast.ID(markettest.User))
	asked := c.ask("s01", protocol.QueryRef, message.OutcomeQuery{Contract: old.ID})
	c.expect("a question", asked, ".history query-ref local-outcome-lookup")
	c.expect("a replay", c.ask("s01", protocol.Request, c.copyOf(old, "s01")), ".history query-ref local-outcome-lookup")
	found, err := db.Outcome(old.ID)
	c.must(err)
	answer := asked.Send[0].Reply(protocol.LocalHistory, protocol.Inform, message.FoundOutcome{Found: found.Found, Receipt: found.Receipt, AsOf: found.AsOf})
	forged := answer
	forged.Sender = c.cast.ID(markettest.Stranger)
	c.expect("a forged answer", c.role.Receive(c.now, forged))
	stale := asked.Send[0].Reply(protocol.LocalHistory, protocol.Inform, message.FoundOutcome{})
	c.expect("a stale answer is asked again", c.role.Receive(c.now, stale), ".history query-ref local-outcome-lookup", ".history query-ref local-outcome-lookup")
	c.expect("the store's answer", c.save(c.role.Receive(c.now, answer)), "s01 inform settled", "s01 agree settled")
	if after, _ := c.role.Ledger().Account(c.cast.ID(markettest.User)); after.Lines[0] != before.Lines[0] {
		t.Fatalf("the replay moved money: %+v, then %+v", before.Lines, after.Lines)
	}
}

// A store that loses answers does not fill the bank for ever.
func TestLostAnswersOfTheStore(t *testing.T) {
	db := newStore(t)
	c := open(t, 1, db)
	old := c.bundle("old", 1)
	c.ask("s01", protocol.Request, c.copyOf(old, "s01"))
	c.now = c.now.Add(protocol.OutcomeMemory + time.Hour)
	v := c.bundle("new", 1)
	c.ask("s01", protocol.Request, c.copyOf(v, "s01"))
	for range 10_000 {
		out := c.ask("s01", protocol.QueryRef, message.OutcomeQuery{Contract: old.ID})
		if len(out.Send) != 1 {
			t.Fatalf("a question is not asked of the store: %q", told(out))
		}
	}
}

// Presences rise in number over restarts, leaving and a restore from a backup, and a
// leaving one has no time to live.
func TestLeave(t *testing.T) {
	c := open(t, 1, markettest.Store{})
	var last uint64
	rises := func(out protocol.Output, ttl time.Duration) {
		t.Helper()
		for _, m := range out.Send {
			if p, ok := m.Body.(message.Presence); ok {
				if p.Counter <= last || p.TTL != ttl || p.Agent != protocol.KindBank {
					t.Fatalf("presence %+v after counter %d", p, last)
				}
				last = p.Counter
			}
		}
	}
	for range 3 {
		rises(c.restart(), protocol.PresenceTTL)
		c.now = c.now.Add(protocol.HeartbeatPeriod)
		rises(c.save(c.role.Wake(c.now)), protocol.PresenceTTL)
		rises(c.save(c.role.Leave()), 0)
	}
	old := open(t, 1, markettest.Store{}) // restored from a backup of before
	old.now = c.now.Add(time.Second)
	rises(old.restart(), protocol.PresenceTTL)
}

// An account with a limit that is refused is not opened without it.
func TestNoAccountIsOpenedWithALimitThatIsRefused(t *testing.T) {
	c := open(t, 1, markettest.Store{})
	stranger := c.cast.ID(markettest.Stranger)
	for _, limit := range []protocol.Credits{-1, ledger.MaxOverdraft + 1} {
		fresh, _, err := bank.New(bank.Config{ID: c.cast.ID(markettest.Bank), Currencies: []string{"CRD", "NEW"}}, c.store, c.now)
		c.must(err)
		_, _, err = fresh.SetPolicy(c.now, "NEW", ledger.Policy{Kind: ledger.PolicyAllowance, Decay: 1})
		c.must(err)
		if _, out, err := fresh.OpenAccount(c.now, stranger, "new", limit); err == nil || len(out.Save) > 0 {
			t.Errorf("limit %s: %v, saved %d records", limit, err, len(out.Save))
		}
		if _, ok := fresh.Ledger().Account(stranger); ok {
			t.Errorf("limit %s: the account is open", limit)
		}
	}
}

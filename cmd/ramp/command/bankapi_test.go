package command

import (
	"strings"
	"testing"
	"time"

	"ramp/agents/markettest"
	"ramp/bank/ledger"
	"ramp/protocol"
)

// A name means the account that is open, though a closed one had it before; by its
// name that one is found as long as no other has it.
func TestAClosedAccountGivesItsNameUp(t *testing.T) {
	now := markettest.Dawn
	id := func(c string) protocol.AgentID {
		return protocol.AgentID("ann@" + strings.Repeat(c, protocol.FingerprintLen))
	}
	for _, c := range []struct{ before, after string }{{"a", "b"}, {"b", "a"}} {
		l, err := ledger.Load(ledger.Config{Bank: id("c"), Currencies: []string{"CPU"}}, now, markettest.Store{})
		if err != nil {
			t.Fatal(err)
		}
		must := func(_ ledger.Entry, _ []protocol.Record, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(l.Open(now, id(c.before), "ann"))
		if by, taken := nameTaken(l, "ann", id(c.after)); !taken || by != id(c.before) {
			t.Errorf("an open account's name is free")
		}
		must(l.SetStanding(now.Add(time.Second), id(c.before), ledger.StandingClosed, ""))
		if a, err := findAccount(l, "ann"); err != nil || a.ID != id(c.before) {
			t.Errorf("the closed one alone: %s, %v", a.ID, err)
		}
		if _, taken := nameTaken(l, "ann", id(c.after)); taken {
			t.Errorf("a closed account's name is taken")
		}
		must(l.Open(now, id(c.after), "ann"))
		if a, err := findAccount(l, "ann"); err != nil || a.ID != id(c.after) {
			t.Errorf("beside the closed one: %s, %v", a.ID, err)
		}
	}
}

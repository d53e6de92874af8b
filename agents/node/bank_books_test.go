package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ramp/agents/markettest"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/message"
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

// An entry with lines in two currencies stays whole, on the first page and on the last.
func TestAPageOfAStatementSplitsNoEntry(t *testing.T) {
	for last, want := range map[bool][]uint64{false: {1, 2, 2}, true: {2, 2, 3}} {
		s := message.Statement{Lines: []message.StatementLine{{Entry: 1}, {Entry: 2}, {Entry: 3}, {Entry: 2}}}
		cutStatement(&s, map[uint64]int{1: 1, 2: 2, 3: 1}, 2, last)
		var got []uint64
		for _, l := range s.Lines {
			got = append(got, l.Entry)
		}
		if !slices.Equal(got, want) || !s.More {
			t.Errorf("last %v: %v, more %v; want %v", last, got, s.More, want)
		}
	}
}

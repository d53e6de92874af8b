package user

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// A full directory takes nobody in until somebody is gone, and looks for that only then.
func TestAFullDirectoryHasRoomWhenSomebodyIsGone(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	d := &directory{known: map[protocol.AgentID]peer{}}
	meet := func(name string, ttl time.Duration) bool {
		p := message.Presence{Agent: protocol.KindResource, TTL: ttl, Counter: 1}
		d.meet(now, protocol.AgentID(name), p, p)
		_, known := d.known[protocol.AgentID(name)]
		return known
	}
	for i := range maxSellers {
		meet(fmt.Sprint("s", i), time.Minute+time.Duration(i%60)*time.Second)
	}
	if meet("early", time.Minute) {
		t.Error("a full directory took a seller in")
	}
	delete(d.known, "s0")
	d.known["gone"] = peer{body: d.known["s1"].body} // nobody looks before the first can lapse
	if meet("next", time.Minute) {
		t.Error("the directory was searched again at once")
	}
	now = now.Add(time.Minute)
	if !meet("late", time.Minute) {
		t.Error("no room, though sellers are gone")
	}
	now = now.Add(time.Hour) // all are gone
	for i := range maxSellers {
		meet(fmt.Sprint("t", i), time.Minute)
	}
	if now = now.Add(time.Minute); !meet("last", time.Minute) {
		t.Error("no room, though all are gone")
	}
}

// The order decides only between currencies that as many sellers accept.
func TestTheMostAcceptedCurrencyIsPaid(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	d := &directory{known: map[protocol.AgentID]peer{}}
	cpu, gpu := protocol.Terms{Bank: "bank", Currency: "CPU"}, protocol.Terms{Bank: "bank", Currency: "GPU"}
	accepts := func(list ...protocol.Terms) Known { return Known{Presence: message.Presence{Terms: list}} }
	for _, c := range []struct {
		sellers []Known
		want    protocol.Terms
	}{{[]Known{accepts(cpu), accepts(gpu)}, gpu}, {[]Known{accepts(cpu), accepts(cpu, gpu)}, cpu}, {nil, gpu}} {
		if got, err := d.terms(now, []protocol.Terms{gpu, cpu}, c.sellers); err != nil || got != c.want {
			t.Errorf("%d sellers: paid in %s, %v", len(c.sellers), got.Currency, err)
		}
	}
}

// A contract with a bank in recovery would wait and then be void, so another bank is chosen, or
// the refusal has the reason.
func TestABankInRecoveryIsNotPaid(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	d := &directory{known: map[protocol.AgentID]peer{}}
	first, second := protocol.Terms{Bank: "first", Currency: "CPU"}, protocol.Terms{Bank: "second", Currency: "CPU"}
	meet := func(x protocol.Terms, counter uint64, since time.Time) {
		p := message.Presence{Agent: protocol.KindBank, TTL: time.Minute, Counter: counter, Terms: []protocol.Terms{x}, Recovering: since}
		d.meet(now, x.Bank, p, p)
	}
	meet(first, 1, now.Add(-time.Hour))
	meet(second, 1, time.Time{})
	if got, err := d.terms(now, []protocol.Terms{first, second}, nil); err != nil || got != second {
		t.Errorf("paid with %v, %v", got, err)
	}
	meet(second, 2, now.Add(-time.Hour))
	if _, err := d.terms(now, nil, nil); err == nil || !strings.HasPrefix(err.Error(), "in recovery: first was restored from a backup") {
		t.Errorf("both recover: %v", err)
	}
	meet(first, 2, time.Time{})
	if got, err := d.terms(now, nil, nil); err != nil || got != first {
		t.Errorf("recovered: %v, %v", got, err)
	}
}

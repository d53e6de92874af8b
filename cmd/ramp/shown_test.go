package main

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"ramp/protocol/message"
)

// What was signed is shown while the bank decides, by the user's agent and from its
// journal after a crash.
func TestWhatWasSignedIsShown(t *testing.T) {
	t.Parallel()
	m := startMarket(t, "atlas")
	must(t, m.daemons["bank"].cmd.Process.Signal(syscall.SIGSTOP))
	watching, stop := context.WithTimeoutCause(context.Background(), untilTime, errors.New("it is not signed"))
	defer stop()
	id := m.begin(t, "small.xml")
	m.watch(watching, id, func(p message.Purchase) {
		if p.State == "deciding" {
			stop()
		}
	})
	signed := func(p message.Purchase) {
		t.Helper()
		if p.State != "confirming" && p.State != "deciding" || len(p.Units) != 1 || p.Contract == "" || p.Total <= 0 {
			t.Errorf("shown as %s, contract %q, %v in total, %d units", p.State, p.Contract, p.Total, len(p.Units))
		}
	}
	for _, name := range []string{"", "user", "atlas", "bank"} {
		if name != "" {
			m.daemons[name].kill()
		}
		var p message.Purchase
		ramp(t, &p, "user", "show", id, "--dir", m.path("user"))
		signed(p)
		var list []message.Purchase
		ramp(t, &list, "user", "list", "--dir", m.path("user"))
		if len(list) != 1 {
			t.Fatalf("%d purchases", len(list))
		}
		signed(list[0])
	}
	for _, name := range []string{"bank", "atlas", "user"} {
		must(t, m.serve(name))
	}
	m.meet(t)
	m.settleDown(t)
	m.verify(t)
}

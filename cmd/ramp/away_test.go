package main

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"slices"
	"testing"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// A bank is killed while a job runs in a slot that is paid after the fact, and comes
// back when its hold is over: the seller is heard first and paid. What nobody
// reports expires, once the grace has passed.
func TestAHoldThatEndsWhileTheBankIsAwayIsPaid(t *testing.T) {
	t.Parallel()
	m := startAwayMarket(t)
	a := awayRun{t: t, m: m}
	for length := 6 * time.Second; !a.tried(length); length *= 2 { // the machine may be slow
		if length > 4*time.Minute {
			t.Fatal("nothing ran in time")
		}
	}
	must(t, until(2*a.length+untilTime, func() (bool, error) {
		state := a.stateAt(a.unit(a.ran).Resource)
		return time.Now().After(a.holdEnds) && state == "reported", fmt.Errorf("the unit is %s", state)
	}))
	back := time.Now()
	m.restart(t, "bank")
	a.ends(a.ran, protocol.EndSucceeded)
	t.Logf("slots of %s; the hold ended %s before the bank was back, and was paid %s after", a.length,
		back.Sub(a.holdEnds).Round(time.Millisecond), time.Since(back).Round(time.Millisecond))
	if u := a.unit(a.ran); u.Paid != u.Cost || u.Cost == 0 {
		t.Errorf("%s were paid of %s", u.Paid, u.Cost)
	}
	if n := a.held(); n != 1 {
		t.Errorf("%d are held within the grace, want the one that nobody has reported", n)
	}
	must(t, m.daemons["bank"].stop())
	m.rewrite(t, "bank", "grace: 10m", "grace: 1s")
	must(t, m.serve("bank"))
	must(t, until(untilTime, func() (bool, error) { return a.held() == 0, nil }))
	if got, want := a.balance(), a.had-a.unit(a.ran).Cost; got != want {
		t.Errorf("the user has %s, want %s: what nobody reported is free again", got, want)
	}
	m.audit(t)
}

// startAwayMarket is a market of two machines with a core each, whose bank waits a
// second for reports, and long after a restart.
func startAwayMarket(t *testing.T) *market {
	t.Helper()
	me, err := user.Current()
	must(t, err)
	dir, err := os.MkdirTemp("", "ramp-test-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	m, err := newMarket(dir, nil, "atlas", "boreas")
	must(t, err)
	t.Cleanup(func() { m.endOf(t) })
	m.sellers = []string{"atlas", "boreas"}
	m.rewrite(t, "bank", "grace: 1s", "grace: 10m, report_within: 1s")
	for _, name := range m.sellers {
		m.rewrite(t, name, "driver: swf\n  swf: {log: idle.swf, base: 1000}",
			"driver: local\n  modes: [on-completion]\n  local: {claims: claims, cores: 1}\n  lead: 1s\n"+
				"  jobs: {accept: [namespaces, seccomp, cgroup, uids], accounts: [{agent: \"*\", user: "+me.Username+", commands: true}]}")
	}
	must(t, m.serve("bank"))
	for _, name := range []string{"user", "atlas", "boreas"} {
		must(t, m.bank("/v1/account", map[string]any{"account": m.ids[name], "name": name, "limit": 0}))
	}
	must(t, m.bank("/v1/credit", map[string]any{"account": "user", "amount": 1000}))
	for _, name := range []string{"user", "atlas", "boreas"} {
		must(t, m.serve(name))
	}
	m.meet(t)
	return m
}

// awayRun are two purchases of the same time: one whose program runs, and one whose
// seller is lost.
type awayRun struct {
	t         *testing.T
	m         *market
	ran, left string
	had       protocol.Credits // by the user, before
	length    time.Duration    // of their slots, and until these begin
	holdEnds  time.Time
}

// tried buys both for slots of a length that begin when it has passed, runs a
// program, and kills the bank and the other seller. It is false if that did not all
// happen before the end of the slots.
func (a *awayRun) tried(length time.Duration) bool {
	a.t.Helper()
	must(a.t, until(untilTime, func() (bool, error) { return a.held() == 0, nil })) // of an earlier try
	a.had = a.balance()
	start := time.Now().Add(length).UTC().Truncate(time.Second)
	end := start.Add(length)
	a.length, a.holdEnds = length, end.Add(time.Second)
	noted := a.t.TempDir() // a line that no other program prints
	var bought [2]bool
	a.ran, bought[0] = a.bought(start, end, &message.Program{Command: []string{"/bin/sh", "-c", "echo \"$0\"", noted}})
	a.left, bought[1] = a.bought(start, end, nil)
	if !bought[0] || !bought[1] || !a.programEnded() {
		return false
	}
	if n := a.m.printed(a.t, noted); n != 1 {
		a.t.Errorf("the program ran %d times", n)
	}
	a.m.daemons["bank"].kill()
	if time.Now().Before(end) {
		a.m.daemons[a.unit(a.left).Resource].kill()
		return true
	}
	a.m.restart(a.t, "bank")
	return false
}

// bought buys a core from start to end, and says whether it could.
func (a *awayRun) bought(start, end time.Time, p *message.Program) (id string, ok bool) {
	a.t.Helper()
	a.m.bought++
	id = fmt.Sprintf("p%d", a.m.bought)
	doc := document(fmt.Sprintf("<Request><CPUHourCost>60</CPUHourCost><EndDate>%s</EndDate><EndTime>%s</EndTime>"+
		"<StartDate>%s</StartDate><StartTime>%s</StartTime><Cores><TotalCores>1</TotalCores></Cores></Request>\n",
		end.Format(time.DateOnly), end.Format("15:04:05Z"), start.Format(time.DateOnly), start.Format("15:04:05Z")))
	order := map[string]any{"id": id, "name": id, "document": doc, "options": message.Options{Mode: protocol.ModeOnCompletion}}
	if p != nil {
		order["program"] = p
	}
	resp, err := post(context.Background(), a.m.path("user"), "/v1/buy", order)
	must(a.t, err)
	a.t.Cleanup(func() { _ = resp.Body.Close() })
	var found message.Purchase
	must(a.t, until(untilTime, func() (bool, error) {
		found = a.purchase(id)
		return found.Settled || slices.Contains([]string{"failed", "void", "interrupted"}, found.State), fmt.Errorf("%s is %q", id, found.State)
	}))
	return id, found.Settled
}

// programEnded waits for the end of the program, and says whether it went well.
func (a *awayRun) programEnded() bool {
	a.t.Helper()
	var run message.Run
	must(a.t, until(2*untilTime, func() (bool, error) {
		err := call(context.Background(), a.m.path("user"), "/v1/run", map[string]any{"id": a.ran}, &run)
		return err == nil && run.Over, fmt.Errorf("%+v: %w", run, err)
	}))
	return run.Exit == 0
}

func (a *awayRun) purchase(id string) message.Purchase {
	list, err := a.m.purchases()
	must(a.t, err)
	for _, p := range list {
		if p.ID == id {
			return p
		}
	}
	return message.Purchase{}
}

func (a *awayRun) unit(id string) message.PurchasedUnit {
	a.t.Helper()
	p := a.purchase(id)
	if len(p.Units) != 1 {
		a.t.Fatalf("purchase %s: %+v", id, p)
	}
	return p.Units[0]
}

// ends waits for how the bank ends a purchase.
func (a *awayRun) ends(id string, how protocol.End) {
	a.t.Helper()
	must(a.t, until(2*untilTime, func() (bool, error) {
		u := a.unit(id)
		return u.How == how, fmt.Errorf("%s: ended %q, want %q", id, u.How, how)
	}))
}

// held is how much the bank holds, in number.
func (a *awayRun) held() int {
	var list []struct{ Hold uint64 }
	must(a.t, call(context.Background(), a.m.path("bank"), "/v1/holds", nil, &list))
	return len(list)
}

// balance is what the user has.
func (a *awayRun) balance() protocol.Credits {
	var b []message.Balance
	must(a.t, call(context.Background(), a.m.path("bank"), "/v1/balances", map[string]any{"account": "user"}, &b))
	if len(b) != 1 {
		a.t.Fatalf("balances: %+v", b)
	}
	return b[0].Balance
}

// stateAt is what a seller says of the unit whose program ran.
func (a *awayRun) stateAt(seller string) (state string) {
	lines, err := a.m.reservations(seller)
	must(a.t, err)
	for _, l := range lines {
		if l.Contract == a.purchase(a.ran).Contract {
			state = l.State
		}
	}
	return state
}

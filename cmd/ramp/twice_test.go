package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// killedAtAll runs a command and kills it later and later, until it comes to its end or
// says that what it was to do is done already; it returns how often it was killed.
func killedAtAll(t *testing.T, already string, args ...string) int {
	t.Helper()
	return killedLater(t, 6, already, args...)
}

// killedLater is killedAtAll, each time later by the part-th part of the patience.
func killedLater(t *testing.T, part time.Duration, already string, args ...string) int {
	t.Helper()
	for n, patience := 0, 3*time.Millisecond; patience < time.Minute; n, patience = n+1, patience+patience/part+1 {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		var said, told bytes.Buffer
		c := exec.CommandContext(ctx, "ramp", args...) // SIGKILL when the time is over
		c.Env = append(os.Environ(), "RAMP_SESSION="+t.Name())
		c.Stdout, c.Stderr = &said, &told
		err := c.Run()
		over := ctx.Err() != nil
		cancel()
		out := told.Bytes()
		if said.Len() > 0 { // whoever was answered has no reason to ask again
			return n
		}
		if err == nil || !over && already != "" && n > 0 && regexp.MustCompile(already).Match(out) {
			return n
		}
		var exit *exec.ExitError
		if !over && args[0] == "user" && errors.As(err, &exit) && exit.ExitCode() == unreachable { // a busy bank may hold the connections of those that were killed
			n--
			continue
		}
		if !over {
			t.Fatalf("ramp %v after %d kills: %v: %s", args, n, err, out)
		}
	}
	t.Fatalf("ramp %v does not end", args)
	return 0
}

// Every command that changes something at a bank or an authority, killed at growing
// delays and given again, with a daemon and without: it is done once.
func TestACommandThatIsKilledAndGivenAgainIsDoneOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		daemon bool
	}{{"with a daemon", true}, {"without one", false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			doneOnce(t, c.daemon)
		})
	}
}

func doneOnce(t *testing.T, daemon bool) {
	dir, err := os.MkdirTemp("", "ramp-once-") // short: sockets are in it
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	at := func(name string) string { return filepath.Join(dir, name) }
	bank := at("bank")
	kills := killedAtAll(t, "exists already", "ca", "init", "--dir", at("ca"))
	ramp(t, nil, "bank", "init", "--currency", "CPU", "--currency", "GPU", "--ca", at("ca"), "--uses", "0", "--dir", bank)
	if daemon {
		d, err := startDaemon(at("bank.log"), nil, "bank", "serve", "--dir", bank)
		must(t, err)
		defer d.kill()
	}
	for _, name := range []string{"ann", "bob", "eve"} {
		kills += killedAtAll(t, "exists already", "ca", "issue", name, "--dir", at("ca"), "--out", at(name))
	}
	for _, c := range []struct {
		already string
		args    []string
	}{
		{"is open already", []string{"account", "open", "ann", "--cert", at("ann/agent.pem")}},
		{"is open already", []string{"account", "open", "bob", "--cert", at("bob/agent.pem")}},
		{"is open already", []string{"account", "open", "eve", "--cert", at("eve/agent.pem")}},
		{"", []string{"policy", "GPU", "allowance", "--decay", "0.1"}},
		{"", []string{"credit", "ann", "100", "--ref", "salary"}},
		{"", []string{"transfer", "ann", "bob", "30", "--ref", "lent"}},
		{"", []string{"account", "limit", "ann", "20"}},
		{"is frozen already", []string{"account", "freeze", "ann"}},
		{"is open already", []string{"account", "unfreeze", "ann"}},
		{"has no account here", []string{"account", "close", "eve"}},
		{"", []string{"allowance", "set", "ann", "3", "--currency", "GPU"}},
		{"is open already", []string{"group", "open", "A"}},
		{"", []string{"group", "set", "A", "--shared", "100", "--cluster", "bob"}},
		{"", []string{"rate", "set", "CPU", "GPU", "2"}},
		{"exists already", []string{"invite", "--uses", "2", "--credit", "5", "--out", at("course.ramp")}},
		{"already exists", []string{"backup", at("tuesday.db")}},
		{"", []string{"export"}},
	} {
		kills += killedAtAll(t, c.already, append(append([]string{"bank"}, c.args...), "--dir", bank)...)
	}
	onceInTheBooks(t, bank)
	ramp(t, nil, "bank", "restore", at("tuesday.db"), "--verify", "--dir", bank)
	if kills < 20 {
		t.Errorf("%d kills are too few to say anything", kills)
	}
}

// oneMore gives an order that was given before. If the command was killed when it had
// told its answer and not yet forgotten the order, the next one finds that, and says so.
func oneMore(t *testing.T, args ...string) {
	t.Helper()
	for more := true; more; {
		var e struct{ Again bool }
		ramp(t, &e, args...)
		more = e.Again
	}
}

// onceInTheBooks compares the accounts with what one of each order comes to. The same
// orders once more, answered before, are new ones.
func onceInTheBooks(t *testing.T, bank string) {
	t.Helper()
	want := map[string]string{"ann": "70", "bob": "30", "issuer": "-100"}
	for range 2 {
		var accounts []struct {
			Name, Currency string
			Balance        json.Number
		}
		ramp(t, &accounts, "bank", "balance", "--dir", bank)
		for _, a := range accounts {
			if a.Currency == "CPU" && want[a.Name] != "" && a.Balance.String() != want[a.Name] {
				t.Errorf("%s has %s CPU, want %s", a.Name, a.Balance, want[a.Name])
			}
		}
		oneMore(t, "bank", "credit", "ann", "100", "--ref", "salary", "--dir", bank)
		oneMore(t, "bank", "transfer", "ann", "bob", "30", "--ref", "lent", "--dir", bank)
		want = map[string]string{"ann": "140", "bob": "60", "issuer": "-200"}
	}
	if left, err := filepath.Glob(filepath.Join(bank, "pending*")); err != nil || len(left) > 0 {
		t.Errorf("commands left notes beside the ledger: %v, %v", left, err)
	}
	ramp(t, nil, "bank", "audit", "--signatures", "--dir", bank)
}

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// An exchange that is killed at growing delays and given again is done once, without the
// user's daemon, with it, and with one that it starts itself; by a name and without one.
func TestAnExchangeThatIsKilledAndGivenAgainIsDoneOnce(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "ramp-change-") // short: sockets are in it
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	bank, ann := filepath.Join(dir, "bank"), filepath.Join(dir, "ann")
	ramp(t, nil, "bank", "init", "--currency", "CPU", "--currency", "GPU", "--credit", "1000", "--dir", bank)
	d, err := startDaemon(filepath.Join(dir, "bank.log"), nil, "bank", "serve", "--dir", bank)
	must(t, err)
	defer d.kill()
	ramp(t, nil, "user", "init", "--join", filepath.Join(bank, "invitation.ramp"), "--name", "ann", "--dir", ann)
	ramp(t, nil, "bank", "rate", "set", "CPU", "GPU", "2", "--dir", bank)
	ramp(t, nil, "bank", "credit", ".exchange", "5000", "--currency", "GPU", "--dir", bank)

	config := filepath.Join(ann, "config.yaml")
	starts, err := os.ReadFile(config)
	must(t, err)
	must(t, os.WriteFile(config, bytes.Replace(starts, []byte("\nuser:"), []byte("\nuser:\n  daemon: false"), 1), 0o600))
	order := []string{"user", "exchange", "CPU", "GPU", "100", "--least", "200", "--dir", ann}
	// Each kill after the question leaves a quote, and a bank keeps 16 of a user: few kills.
	kills := killedLater(t, 2, "", order...)
	change(t, ann, "900", "200")
	u, err := startDaemon(filepath.Join(dir, "ann.log"), nil, "user", "serve", "--dir", ann)
	must(t, err)
	defer u.kill()
	oneMore(t, order...)
	change(t, ann, "800", "400")
	kills += killedLater(t, 2, "", order...)
	change(t, ann, "700", "600")
	oneMore(t, order...) // finds what a command was killed over
	twoMore(t, order...)
	change(t, ann, "400", "1200")
	named := append(order, "--id", "mine")
	kills += killedLater(t, 2, "", named...)
	var x struct{ Again bool }
	ramp(t, &x, named...)
	if change(t, ann, "300", "1400"); !x.Again {
		t.Error("a repetition of an exchange with a name does not say that it is one")
	}
	u.kill()
	must(t, os.WriteFile(config, starts, 0o600))
	kills += killedLater(t, 2, "", order...)
	change(t, ann, "200", "1600")
	ramp(t, nil, "user", "stop", "--dir", ann)
	if kills < 5 {
		t.Errorf("%d kills are too few to say anything", kills)
	}
	ramp(t, nil, "bank", "audit", "--signatures", "--dir", bank)
}

// twoMore gives the same order twice at once.
func twoMore(t *testing.T, args ...string) {
	t.Helper()
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if out, err := exec.Command("ramp", args...).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
}

// change fails unless an agent has so much.
func change(t *testing.T, dir, cpu, gpu string) {
	t.Helper()
	var list []struct {
		Currency string
		Balance  json.Number
	}
	ramp(t, &list, "user", "balance", "--dir", dir)
	want := map[string]string{"CPU": cpu, "GPU": gpu}
	for _, b := range list {
		if b.Balance.String() != want[b.Currency] {
			t.Errorf("%s %s, want %s", b.Balance, b.Currency, want[b.Currency])
		}
		delete(want, b.Currency)
	}
	if len(want) > 0 {
		t.Errorf("nothing is told of %v", want)
	}
}

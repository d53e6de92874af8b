package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// ramp runs a command that must succeed, and reads its JSON.
func ramp(t *testing.T, into any, args ...string) {
	t.Helper()
	var told bytes.Buffer
	c := exec.Command("ramp", append(args, "--json")...)
	c.Stderr = &told
	out, err := c.Output()
	if err != nil {
		t.Fatalf("ramp %v: %v: %s%s", args, err, out, told.Bytes())
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("ramp %v: %v: %s", args, err, out)
	}
}

// killed starts a command and kills it later and later, each time by a sixth, until
// it comes to its end; it returns how often it was killed.
func killed(t *testing.T, args ...string) int {
	t.Helper()
	patience := 3 * time.Millisecond
	for n := 0; patience < time.Minute; n++ {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		words, err := exec.CommandContext(ctx, "ramp", args...).CombinedOutput() // SIGKILL when the time is over
		over := ctx.Err() != nil
		cancel()
		if err == nil {
			return n
		}
		if !over {
			comesToItsEnd(t, err, words, args...)
			return n
		}
		patience += patience/6 + 1
	}
	t.Fatalf("ramp %v does not end within %s", args, patience)
	return 0
}

// unreachable is the code of a command that found nobody.
const unreachable = 5

// comesToItsEnd gives a command again that found nobody: a busy bank may not have
// noticed yet that those which were killed are gone, and one peer has few connections.
func comesToItsEnd(t *testing.T, err error, words []byte, args ...string) {
	t.Helper()
	must(t, until(untilTime, func() (bool, error) {
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() != unreachable {
			return false, fmt.Errorf("ramp %v: %w\n%s", args, err, words)
		}
		words, err = exec.Command("ramp", args...).CombinedOutput()
		return err == nil, err
	}))
}

// Whenever init is killed, the same command goes on, and everything is there once.
func TestInitThatIsKilledGoesOnAndIsDoneOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bank, ann := filepath.Join(dir, "bank"), filepath.Join(dir, "ann")
	kills := killed(t, "bank", "init", "--currency", "CPU", "--credit", "100", "--policy", "plain", "--dir", bank)
	var invitations []struct {
		State string
		Used  int
	}
	ramp(t, &invitations, "bank", "invite", "list", "--dir", bank)
	if len(invitations) != 1 || invitations[0].State != "open" {
		t.Errorf("invitations %+v after %d kills", invitations, kills)
	}
	d, err := startDaemon(filepath.Join(dir, "bank.log"), nil, "bank", "serve", "--dir", bank)
	if err != nil {
		t.Fatal(err)
	}
	defer d.kill()
	t.Cleanup(func() {
		if log, err := os.ReadFile(filepath.Join(dir, "bank.log")); t.Failed() {
			t.Logf("the bank's log (%v):\n%s", err, log)
		}
	})
	kills += killed(t, "user", "init", "--join", filepath.Join(bank, "invitation.ramp"), "--name", "ann", "--dir", ann)
	kills += killed(t, "resource", "init", "--driver", "local", "--claims", filepath.Join(dir, "claims"),
		"--join", filepath.Join(bank, "invitation.ramp"), "--name", "site", "--dir", filepath.Join(dir, "site"))
	var accounts []struct {
		Name    string
		Balance json.Number
	}
	ramp(t, &accounts, "bank", "balance", "--dir", bank)
	got := map[string]string{}
	for _, a := range accounts {
		got[a.Name] = a.Balance.String()
	}
	if len(got) != 3 || got["issuer"] != "-200" || got["ann"] != "100" || got["site"] != "100" {
		t.Errorf("balances %v after %d kills", got, kills)
	}
	ramp(t, nil, "bank", "audit", "--signatures", "--dir", bank)
	ramp(t, nil, "doctor", "--dir", ann)
	if kills < 3 {
		t.Errorf("%d kills are too few to say anything", kills)
	}
}

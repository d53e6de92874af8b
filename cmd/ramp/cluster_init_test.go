package main

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ramp/bank/ledgeretcd/etcdtest"
)

// refused runs a command that must end with a code, and say words.
func refused(t *testing.T, code int, words string, args ...string) {
	t.Helper()
	c := exec.Command("ramp", args...)
	out, _ := c.CombinedOutput()
	if got := c.ProcessState.ExitCode(); got != code || !strings.Contains(string(out), words) {
		t.Errorf("ramp %v: %d and %s, want %d and %q", args, got, out, code, words)
	}
}

// removeKeys removes all keys of a bank from a cluster, as etcdctl would.
func removeKeys(t *testing.T, endpoint, bank string) {
	t.Helper()
	key := func(end string) string { return base64.StdEncoding.EncodeToString([]byte("/ramp/bank/" + bank + end)) }
	body := fmt.Sprintf(`{"key":%q,"range_end":%q}`, key("/"), key("0"))
	resp, err := http.Post("http://"+endpoint+"/v3/kv/deleterange", "application/json", strings.NewReader(body))
	must(t, err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
}

// A bank whose ledger is in a cluster is made, copied to another machine, backed up and
// restored from the command line alone.
func TestABankInAClusterIsMadeBackedUpAndRestored(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t)
	store := "etcd:" + strings.Join(c.Endpoints, ",")
	dir, err := os.MkdirTemp("", "ramp-test-") // short: sockets are in it
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	bank := foundCluster(t, store, first, second)

	ramp(t, nil, "ca", "issue", "ann", "--dir", filepath.Join(first, "ca"), "--out", filepath.Join(dir, "ann"))
	d, err := startDaemon(filepath.Join(dir, "first.log"), nil, "bank", "serve", "--dir", first)
	must(t, err)
	ramp(t, nil, "bank", "account", "open", "ann", "--cert", filepath.Join(dir, "ann/agent.pem"), "--dir", first)
	ramp(t, nil, "bank", "credit", "ann", "9", "--dir", first)
	backup := filepath.Join(dir, "backup.db")
	var kept struct{ Entries int }
	ramp(t, &kept, "bank", "backup", backup, "--dir", first)
	ramp(t, nil, "bank", "restore", backup, "--verify", "--dir", first)
	ramp(t, nil, "bank", "credit", "ann", "4", "--dir", first)
	must(t, d.stop())

	refused(t, 2, "mirror.db exists already", "bank", "restore", backup, "--dir", first)
	for _, machine := range []string{first, second} {
		must(t, os.Remove(filepath.Join(machine, "mirror.db")))
	}
	refused(t, 2, "the cluster has a ledger of this bank already", "bank", "restore", backup, "--dir", first)
	removeKeys(t, c.Endpoints[0], bank)
	var restored struct{ Recovery, Log int }
	ramp(t, &restored, "bank", "restore", backup, "--dir", first)
	if restored.Recovery != kept.Entries+1 || restored.Log != kept.Entries {
		t.Errorf("restored %+v of %+v", restored, kept)
	}
	rightlyRestored(t, first, second)
}

// foundCluster makes a bank, and another agent of it; it returns the bank's ID.
func foundCluster(t *testing.T, store, first, second string) string {
	t.Helper()
	found := []string{"bank", "init", "--currency", "CPU", "--policy", "allowance", "--decay", "0.1", "--store", store, "--dir", first}
	var made struct {
		Bank           string
		Again, Follows bool
	}
	ramp(t, &made, found...)
	ramp(t, &made, found...)
	if !made.Again {
		t.Errorf("the same command again made %+v", made)
	}
	// Interrupted before its end, it goes on with what is its own.
	must(t, os.Rename(filepath.Join(first, "init.finished"), filepath.Join(first, "init.unfinished")))
	must(t, os.Remove(filepath.Join(first, "invitation.ramp")))
	made.Again = false
	ramp(t, &made, found...)
	if _, err := os.Stat(filepath.Join(first, "invitation.ramp")); err != nil || made.Follows || made.Again {
		t.Errorf("after an interruption: %v, %+v", err, made)
	}
	must(t, os.Mkdir(second, 0o700))
	for _, name := range []string{"agent.pem", "agent.key", "ca.pem"} {
		b, err := os.ReadFile(filepath.Join(first, name))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(second, name), b, 0o600))
	}
	ramp(t, &made, "bank", "init", "--currency", "CPU", "--store", store, "--dir", second)
	var there struct{ Policies []struct{ Policy string } }
	ramp(t, &there, "bank", "policy", "--dir", second)
	var invitations []struct{ State string }
	ramp(t, &invitations, "bank", "invite", "list", "--dir", second)
	open := 0
	for _, v := range invitations {
		if v.State == "open" {
			open++
		}
	}
	if !made.Follows || there.Policies[0].Policy != "allowance" || open != 1 {
		t.Errorf("another agent of the bank: %+v, %+v, %+v", made, there, invitations)
	}
	return made.Bank
}

// rightlyRestored looks at the ledger from the other machine, which reads the journal anew.
func rightlyRestored(t *testing.T, first, second string) {
	t.Helper()
	var policy struct{ Recovering bool }
	ramp(t, &policy, "bank", "policy", "--dir", second)
	if !policy.Recovering {
		t.Error("it is not in recovery")
	}
	ramp(t, nil, "bank", "recovery", "end", "--dir", second)
	var balances []struct {
		Account string
		Balance float64
	}
	ramp(t, &balances, "bank", "balance", "ann", "--dir", first)
	if len(balances) != 1 || balances[0].Balance < 8.99 || balances[0].Balance > 9 {
		t.Errorf("balances %+v, want 9 less what has decayed", balances)
	}
	var audit struct{ Bad []string }
	ramp(t, &audit, "bank", "audit", "--signatures", "--dir", first)
	if len(audit.Bad) > 0 {
		t.Error(audit.Bad)
	}
}

// A bank that has its ledger in a file moves into a cluster, and back; what a machine had
// read of a lost cluster is restored as a backup is.
func TestALedgerInAFileMovesIntoACluster(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t)
	dir := filepath.Join(t.TempDir(), "bank")
	var made struct{ Bank string }
	ramp(t, &made, "bank", "init", "--currency", "CPU", "--uses", "0", "--dir", dir)
	path, old := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "old.db")
	without, err := os.ReadFile(path)
	must(t, err)
	with := strings.Replace(string(without), "\nbank:\n", fmt.Sprintf("\nbank:\n  store: \"etcd:%s\"\n", strings.Join(c.Endpoints, ",")), 1)
	must(t, os.WriteFile(path, []byte(with), 0o600))
	refused(t, 2, "ramp bank restore FILE", "bank", "policy", "--dir", dir)
	again := func(ledger string) {
		t.Helper()
		_ = os.Remove(old) // there may be none
		must(t, os.Rename(filepath.Join(dir, ledger), old))
		removeKeys(t, c.Endpoints[0], made.Bank)
		ramp(t, nil, "bank", "restore", old, "--dir", dir)
		ramp(t, nil, "bank", "recovery", "end", "--dir", dir)
		var policy struct{ Policies []struct{ Currency string } }
		ramp(t, &policy, "bank", "policy", "--dir", dir)
		if len(policy.Policies) != 1 {
			t.Errorf("policies %+v", policy)
		}
	}
	again("ledger.db")
	again("mirror.db")
	must(t, os.WriteFile(path, without, 0o600))
	again("mirror.db")
	if _, err := os.Stat(filepath.Join(dir, "ledger.db")); err != nil {
		t.Error(err)
	}
}

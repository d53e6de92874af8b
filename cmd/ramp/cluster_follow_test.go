package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ramp/bank/ledgerdb"
	"ramp/bank/ledgeretcd/etcdtest"
)

// A bank agent that follows says so to its operator, and names who leads; it outlives a
// command that has its mirror open when it starts, and an outage of the cluster.
func TestABankAgentThatFollowsSaysSo(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t)
	dir, err := os.MkdirTemp("", "ramp-test-") // short: sockets are in it
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	foundCluster(t, "etcd:"+strings.Join(c.Endpoints, ","), first, second)
	leader, err := startDaemon(filepath.Join(dir, "first.log"), nil, "bank", "serve", "--dir", first)
	must(t, err)
	t.Cleanup(leader.kill)

	held, err := ledgerdb.Open(filepath.Join(second, "mirror.db"))
	must(t, err)
	follower, ready, err := launch(filepath.Join(dir, "second.log"), nil, "ramp", "bank", "serve", "--dir", second)
	must(t, err)
	t.Cleanup(func() { follower.kill(); _ = ready.Close() }) // it may come to lead, and nobody waits for that
	follower.reaches(t, func() bool { return strings.Contains(follower.lastLines(), "waiting for a command") })
	must(t, held.Close())
	follower.reaches(t, func() bool { return statusOf(t, second).Live.Agent != "" })
	var wrong []string
	must(t, until(untilTime, func() (bool, error) {
		var still bool
		wrong, still = whatAFollowerSaysWrong(t, first, second)
		return still, nil
	}))
	for _, w := range wrong {
		t.Error(w)
	}

	for i := range c.Endpoints {
		c.Kill(i)
	}
	must(t, until(untilTime, func() (bool, error) {
		s := statusOf(t, second)
		return s.Health == "bad" && strings.Contains(s.Live.Waits, "does not answer"), nil
	}))
	refused(t, 1, "the etcd cluster does not answer", "bank", "balance", "--dir", second)
}

// The cluster is lost while its leader writes a credit: nobody knows whether it is there.
// The operator is told so, gives the same command again once an agent leads, and it is
// there once.
func TestAnOrderThatTheClusterMayHaveIsCarriedOutOnce(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t)
	dir, err := os.MkdirTemp("", "ramp-test-") // short: sockets are in it
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	bank, card := filepath.Join(dir, "bank"), filepath.Join(dir, "ann")
	ramp(t, nil, "bank", "init", "--currency", "CPU", "--store", "etcd:"+strings.Join(c.Endpoints, ","), "--dir", bank)
	ramp(t, nil, "ca", "issue", "ann", "--dir", filepath.Join(bank, "ca"), "--out", card)
	d, err := startDaemon(filepath.Join(dir, "log"), nil, "bank", "serve", "--dir", bank)
	must(t, err)
	t.Cleanup(d.kill)
	ramp(t, nil, "bank", "account", "open", "ann", "--cert", filepath.Join(card, "agent.pem"), "--dir", bank)
	for i := range c.Endpoints {
		c.Freeze(i)
	}
	refused(t, 5, "it may have been done", "bank", "credit", "ann", "7", "--dir", bank)
	for i := range c.Endpoints {
		c.Thaw(i)
	}
	must(t, until(untilTime, func() (bool, error) {
		return exec.Command("ramp", "bank", "credit", "ann", "7", "--dir", bank).Run() == nil, nil
	}))
	var balances []struct{ Balance float64 }
	must(t, until(untilTime, func() (bool, error) { // it may be about to lead once more
		out, err := exec.Command("ramp", "bank", "balance", "ann", "--json", "--dir", bank).Output()
		return err == nil && json.Unmarshal(out, &balances) == nil, err
	}))
	if len(balances) != 1 || balances[0].Balance != 7 {
		t.Errorf("balances %+v, want 7 once", balances)
	}
}

// whatAFollowerSaysWrong asks the one of two agents of a bank that follows what only who
// leads can answer. still is false if it has not followed all the while: on a busy
// machine who leads may lose that.
func whatAFollowerSaysWrong(t *testing.T, dirs ...string) (wrong []string, still bool) {
	t.Helper()
	follower, leader := dirs[1], dirs[0]
	if statusOf(t, follower).Live.Follows == "" {
		follower, leader = leader, follower
	}
	begun := statusOf(t, follower)
	want := ":" + leader + " since "
	for _, args := range [][]string{{"bank", "balance"}, {"bank", "audit"}, {"bank", "account", "freeze", "ann"}, {"bank", "backup", filepath.Join(t.TempDir(), "b.db")}} {
		c := exec.Command("ramp", append(args, "--dir", follower)...)
		out, _ := c.CombinedOutput() // its code is looked at
		if said := string(out); c.ProcessState.ExitCode() != 1 || !strings.Contains(said, "this bank agent follows; ") || !strings.Contains(said, want) {
			wrong = append(wrong, fmt.Sprintf("%v: %d, %s", args, c.ProcessState.ExitCode(), out))
		}
	}
	out, err := exec.Command("ramp", "doctor", "--dir", follower).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "it is a follower; ") {
		wrong = append(wrong, fmt.Sprintf("doctor: %v, %s", err, out))
	}
	if begun.Health != "good" || !strings.Contains(begun.Live.Follows, want) {
		wrong = append(wrong, fmt.Sprintf("the follower: %+v", begun))
	}
	return wrong, begun.Live.Follows != "" && statusOf(t, follower).Live.Follows == begun.Live.Follows
}

// reaches waits until a daemon is as it should be; one that has ended never will.
func (d *daemon) reaches(t *testing.T, there func() bool) {
	t.Helper()
	must(t, until(untilTime, func() (bool, error) {
		select {
		case <-d.ended:
			return false, fmt.Errorf("it has ended: %s", d.lastLines())
		default:
			return there(), nil
		}
	}))
}

type agentStatus struct {
	Health string
	Live   struct{ Agent, Follows, Waits string }
}

// statusOf is what 'ramp status' says of one agent, whatever its exit code.
func statusOf(t *testing.T, dir string) agentStatus {
	t.Helper()
	out, _ := exec.Command("ramp", "status", "--json", "--dir", dir).Output()
	var list []agentStatus
	if err := json.Unmarshal(out, &list); err != nil || len(list) != 1 {
		t.Fatalf("status: %v: %s", err, out)
	}
	return list[0]
}

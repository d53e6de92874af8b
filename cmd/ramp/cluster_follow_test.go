package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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
	log := followerOf(t, second)
	time.Sleep(500 * time.Millisecond)
	must(t, held.Close())
	must(t, until(untilTime, func() (bool, error) {
		b, err := os.ReadFile(log)
		return strings.Contains(string(b), "msg=following"), err
	}))

	for _, args := range [][]string{{"bank", "balance"}, {"bank", "audit"}, {"bank", "account", "freeze", "ann"}, {"bank", "backup", filepath.Join(dir, "b.db")}} {
		refused(t, 1, "this bank agent follows; ", append(args, "--dir", second)...)
		refused(t, 1, ":"+first+" since ", append(args, "--dir", second)...)
	}
	if s := statusOf(t, second); s.Health != "good" || !strings.Contains(s.Live.Follows, ":"+first+" since ") {
		t.Errorf("the follower: %+v", s)
	}
	if out, err := exec.Command("ramp", "doctor", "--dir", second).CombinedOutput(); err != nil || !strings.Contains(string(out), "it follows; ") {
		t.Errorf("doctor: %v, %s", err, out)
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

// followerOf starts a bank agent that will follow; its log is returned.
func followerOf(t *testing.T, dir string) (log string) {
	t.Helper()
	log = dir + ".log"
	out, err := os.Create(log)
	must(t, err)
	defer out.Close()
	cmd := exec.Command("ramp", "bank", "serve", "--dir", dir)
	cmd.Stderr, cmd.SysProcAttr = out, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	return log
}

type agentStatus struct {
	Health string
	Live   struct{ Follows, Waits string }
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

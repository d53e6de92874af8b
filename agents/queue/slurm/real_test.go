package slurm_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ramp/agents/queue"
	"ramp/agents/queue/queuetest"
	"ramp/agents/queue/slurm"
	"ramp/agents/queue/slurm/slurmtest"
	"ramp/protocol"
	"ramp/protocol/message"
)

// switchOn is the variable that lets these tests start a real Slurm.
const switchOn = "RAMP_TEST_SLURM"

// site is the cluster that the tests share; nil without a real Slurm.
var site *slurmtest.Cluster

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Getenv(switchOn) == "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "slurm")
	if err == nil {
		site, err = slurmtest.Up(slurmtest.Options{Dir: dir})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "a real Slurm cannot be started:", err)
		return 1
	}
	code := m.Run()
	fmt.Println(site.Tally())
	if err := site.Down(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// real is the cluster, idle.
func real(tb testing.TB) *slurmtest.Cluster {
	tb.Helper()
	if site == nil {
		tb.Skipf("needs a real Slurm: 'make test-slurm' installs one and sets %s", switchOn)
	}
	if err := errors.Join(site.Clear(), site.AwaitNodes()); err != nil { // a test may have drained them
		tb.Fatal(err)
	}
	return site
}

func config(c *slurmtest.Cluster) slurm.Config {
	return slurm.Config{
		Agent: queuetest.Agent, Partition: slurmtest.Partition, Conf: c.Conf(), Poll: 200 * time.Millisecond,
		PollMost: time.Second, Now: time.Now, Slog: slog.New(slog.DiscardHandler),
	}
}

// begin runs a driver and returns a way to ask it, and the states it tells.
func begin(tb testing.TB, cfg slurm.Config) (ask func(protocol.Body) protocol.Body, states chan message.QueueChanged) {
	tb.Helper()
	d, err := slurm.Open(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	answers, stopped := make(chan protocol.Body, 64), make(chan struct{})
	states = make(chan message.QueueChanged, 1024)
	go func() {
		defer close(stopped)
		_ = d.Run(ctx, func(m protocol.Message) {
			switch b := m.Body.(type) {
			case message.QueueChanged:
				states <- b
			case message.Reserved, message.Released:
				answers <- b
			}
		})
	}()
	tb.Cleanup(func() { cancel(); <-stopped })
	return func(body protocol.Body) protocol.Body {
		tb.Helper()
		d.Send(protocol.Message{Sender: cfg.Agent, Body: body})
		select {
		case b := <-answers:
			return b
		case <-time.After(60 * time.Second):
			tb.Fatal("no answer")
			return nil
		}
	}, states
}

// awaitState is the first state that is as wanted.
func awaitState(tb testing.TB, states chan message.QueueChanged, what string, want func(message.QueueChanged) bool) message.QueueChanged {
	tb.Helper()
	late := time.After(30 * time.Second)
	var last message.QueueChanged
	for {
		select {
		case last = <-states:
			if want(last) {
				return last
			}
		case <-late:
			tb.Fatalf("no state with %s; the last is %+v", what, last)
		}
	}
}

func must(tb testing.TB, c *slurmtest.Cluster, name string, args ...string) string {
	tb.Helper()
	out, err := c.Run(name, args...)
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// ahead is a slot some hours ahead, on whole hours.
func ahead(hours, length, cores int) protocol.Slot {
	start := time.Now().Add(time.Duration(hours) * time.Hour).Truncate(time.Hour).UTC()
	return protocol.Slot{Start: start, End: start.Add(time.Duration(length) * time.Hour), Cores: cores}
}

// since reports whether the real Slurm has at least this version, YY.MM.
func since(tb testing.TB, c *slurmtest.Cluster, version string) bool {
	tb.Helper()
	is := regexp.MustCompile(`\d\d\.\d\d`).FindString(must(tb, c, "sinfo", "--version"))
	if is == "" {
		tb.Fatal("sinfo names no version")
	}
	return is >= version
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05") }

func grant(tb testing.TB, ask func(protocol.Body) protocol.Body, id string, slot protocol.Slot) message.Reserved {
	tb.Helper()
	r := ask(message.Reserve{ID: id, Slot: slot}).(message.Reserved)
	if !r.OK {
		tb.Fatalf("%s is refused: %+v", id, r.Reason)
	}
	return r
}

// contract opens the real cluster as the contract wants it: idle at first, as it
// was after a restart of the agent.
func contract(t *testing.T, change func(*slurm.Config)) {
	c := real(t)
	var known []string
	queuetest.Run(t, func(tb testing.TB, dir string) queue.Driver {
		if !slices.Contains(known, dir) {
			known = append(known, dir)
			if err := c.Clear(); err != nil {
				tb.Fatal(err)
			}
		}
		cfg := config(c)
		change(&cfg)
		d, err := slurm.Open(cfg)
		if err != nil {
			tb.Fatal(err)
		}
		return d
	}, queuetest.FixedCores)
}

func TestContractWithReservations(t *testing.T) { contract(t, func(*slurm.Config) {}) }

// ordinary runs Slurm's commands as an account without rights.
func ordinary(cfg *slurm.Config) {
	cfg.Prefix = []string{"setpriv", "--reuid=games", "--regid=games", "--clear-groups", "--"}
	cfg.Users = []string{"games"}
}

func TestContractWithPlaceholderJobsOfAnOrdinaryAccount(t *testing.T) {
	contract(t, func(cfg *slurm.Config) {
		ordinary(cfg)
		cfg.Hold = slurm.HoldJob
	})
}

func TestWhoMayReserve(t *testing.T) {
	cfg := config(real(t))
	if err := slurm.MayReserve(cfg); err != nil {
		t.Fatalf("root may not reserve: %v", err)
	}
	if list := must(t, site, "scontrol", "-o", "show", "reservation"); !strings.HasPrefix(list, "No reservations") {
		t.Fatalf("the trial has left %s", list)
	}
	must(t, site, "scontrol", "update", "NodeName=node[1-4]", "State=DRAIN", "Reason=test")
	t.Cleanup(func() { must(t, site, "scontrol", "update", "NodeName=node[1-4]", "State=RESUME") })
	if err := slurm.MayReserve(cfg); err != nil {
		t.Fatalf("root may not reserve where every node is drained: %v", err)
	}
	ordinary(&cfg)
	err := slurm.MayReserve(cfg)
	if err == nil {
		t.Fatal("an ordinary account may reserve")
	}
	t.Logf("an ordinary account is told: %v", err)
}

// Trap: whole-node reservations are granted in part, and over others; 24.11 refuses some.
func TestWholeNodeReservationsAreNotTrusted(t *testing.T) {
	c := real(t)
	slot := ahead(3, 1, 20)
	ask, _ := begin(t, config(c))
	grant(t, ask, "r-1", slot)
	for _, n := range []string{"3", "4"} {
		out, err := c.Run("scontrol", "create", "reservation", "ReservationName=admin"+n, "Users=root", "PartitionName=batch",
			"NodeCnt="+n, "StartTime="+stamp(slot.Start), "EndTime="+stamp(slot.End))
		if t.Logf("asked for %s nodes: %s %v", n, out, err); err != nil && !since(t, c, "23.02") {
			t.Error("the trap is gone")
		}
	}
	r := ask(message.Reserve{ID: "r-2", Slot: slot}).(message.Reserved)
	if r.OK || r.Reason.Code != protocol.CodeBusy || r.Reason.Free != 0 {
		t.Fatalf("beside all cores: OK %v, %+v", r.OK, r.Reason)
	}
}

// Trap: what is granted may be less than what was asked. A scontrol that asks for
// nodes in place of cores stands for such a Slurm.
func TestAPartialGrantIsGivenBack(t *testing.T) {
	c := real(t)
	slot := ahead(3, 1, 64)
	must(t, c, "scontrol", "create", "reservation", "ReservationName=admin", "Users=root", "PartitionName=batch",
		"NodeCnt=2", "StartTime="+stamp(slot.Start), "EndTime="+stamp(slot.End))
	bin := t.TempDir()
	wrapped := "#!/bin/bash\nexec scontrol \"${@/#CoreCnt=64/NodeCnt=4}\"\n"
	if err := os.WriteFile(filepath.Join(bin, "scontrol"), []byte(wrapped), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"sinfo", "squeue", "scancel"} {
		if err := os.WriteFile(filepath.Join(bin, p), []byte("#!/bin/sh\nexec "+p+" \"$@\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cfg := config(c)
	cfg.Bin = bin
	ask, _ := begin(t, cfg)
	r := ask(message.Reserve{ID: "r-1", Slot: slot}).(message.Reserved)
	if r.OK || r.Reason.Code != protocol.CodeBusy || r.Reason.Free >= 64 {
		t.Fatalf("a partial grant: OK %v, %+v", r.OK, r.Reason)
	}
	t.Logf("refused: %s", r.Reason.Note)
	if list := must(t, c, "scontrol", "-o", "show", "reservation"); strings.Contains(list, "ramp-") {
		t.Fatalf("the partial grant is still there: %s", list)
	}
}

// Trap: acknowledged reservations are lost when slurmctld dies.
func TestReservationsLostByTheControllerAreSeenAndMadeAgain(t *testing.T) {
	c := real(t)
	ask, states := begin(t, config(c))
	const n = 5
	slots := map[string]protocol.Slot{}
	for i := range n {
		id := fmt.Sprintf("lost-%d", i)
		slots[id] = ahead(30, 1, 4) // what other tests have deleted may come back too, and take the cores of their hours
		grant(t, ask, id, slots[id])
	}
	awaitState(t, states, "all", func(q message.QueueChanged) bool { return len(q.Reservations) == n })
	if err := c.KillController(); err != nil {
		t.Fatal(err)
	}
	if r := ask(message.Reserve{ID: "lost-9", Slot: ahead(3, 1, 1)}).(message.Reserved); r.OK || r.Reason.Code != protocol.CodeUnavailable {
		t.Fatalf("without a controller: OK %v, %+v", r.OK, r.Reason)
	}
	if err := c.StartController(); err != nil {
		t.Fatal(err)
	}
	begun := time.Now() // what is told once the nodes are there may be the last news
	// For seconds no node counts: that is no reason to give up what was sold.
	if r := ask(message.Reserve{ID: "lost-8", Slot: ahead(5, 1, 1)}).(message.Reserved); !r.OK && r.Reason.Code != protocol.CodeUnavailable {
		t.Fatalf("before the nodes have answered: %+v", r.Reason)
	}
	_, _ = c.Run("scontrol", "update", "NodeName=node[1-4]", "State=RESUME") // a drain that other tests ended may come back too
	if err := c.AwaitNodes(); err != nil {
		t.Fatal(err)
	}
	q := awaitState(t, states, "what is left", func(q message.QueueChanged) bool { return q.At.After(begun) })
	lost := 0
	for id := range slots {
		if !listed(q, id) {
			lost++
		}
	}
	t.Logf("slurmctld lost %d of %d acknowledged reservations; %d that others deleted came back", lost, n, len(q.Reservations)+lost-n)
	for id, slot := range slots {
		if kept := ask(message.Keep{ID: id}).(message.Reserved); kept.OK != listed(q, id) {
			t.Fatalf("%s: kept %v, listed %v", id, kept.OK, listed(q, id))
		}
		grant(t, ask, id, slot)
	}
	awaitState(t, states, "all again", func(q message.QueueChanged) bool {
		for id := range slots {
			if !listed(q, id) {
				return false
			}
		}
		return true
	})
}

func listed(q message.QueueChanged, id string) bool {
	return slices.ContainsFunc(q.Reservations, func(r message.QueueReservation) bool { return r.ID == id && r.Mine })
}

// Trap: a reservation in which a job runs cannot be deleted.
func TestReleaseEndsTheJobsInTheSlot(t *testing.T) {
	c := real(t)
	ask, states := begin(t, config(c))
	now := time.Now()
	r := grant(t, ask, "r-1", protocol.Slot{Start: now, End: now.Add(10 * time.Minute), Cores: 8})
	number := must(t, c, "sbatch", "--parsable", "--reservation="+r.Batch, "-n8", "-t5", "-o/dev/null", "--wrap", "trap '' TERM; sleep 300")
	awaitRunning(t, c, number)
	if _, err := c.Run("scontrol", "delete", "ReservationName="+r.Batch); err == nil {
		t.Fatal("Slurm deletes a reservation in which a job runs: the trap is gone")
	}
	for range 2 { // to end, then to be killed
		if r := ask(message.Release{ID: "r-1"}).(message.Released); !r.OK && r.Reason.Code != protocol.CodeUnavailable {
			t.Fatalf("while its job ends: %+v", r)
		}
	}
	awaitState(t, states, "nothing", func(q message.QueueChanged) bool { return len(q.Reservations) == 0 })
	if r := ask(message.Release{ID: "r-1"}).(message.Released); !r.OK {
		t.Fatalf("asked again: %+v", r)
	}
}

func awaitRunning(tb testing.TB, c *slurmtest.Cluster, number string) {
	tb.Helper()
	for range 300 {
		if strings.TrimSpace(must(tb, c, "squeue", "-h", "-j", number, "-o", "%T")) == "RUNNING" {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	tb.Fatalf("job %s does not run: %s", number, must(tb, c, "squeue", "-h", "-j", number))
}

// Trap: Slurm ends jobs up to half a minute after their slot.
func TestJobsEndWithTheirSlot(t *testing.T) {
	c := real(t)
	ask, _ := begin(t, config(c))
	now := time.Now()
	end := now.Add(40 * time.Second)
	r := grant(t, ask, "r-1", protocol.Slot{Start: now, End: end, Cores: 8})
	number := must(t, c, "sbatch", "--parsable", "--reservation="+r.Batch, "-n8", "-t5", "-o/dev/null", "--wrap", "sleep 300")
	awaitRunning(t, c, number)
	for time.Now().Before(end.Add(20 * time.Second)) {
		state := must(t, c, "squeue", "-h", "-t", "all", "-j", number, "-o", "%T")
		if state != "RUNNING" && state != "COMPLETING" {
			late := time.Since(end)
			t.Logf("the job was %s %.1f s after the end of the slot", state, late.Seconds())
			if late < -time.Second {
				t.Fatal("it was ended before its time")
			}
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the job runs on 20 s after its slot")
}

// Trap: "sbatch --test-only" promises starts inside reservations. The state is
// what runs and is reserved, and Slurm itself agrees with it.
func TestTheStateIsNotThatOfTestOnly(t *testing.T) {
	c := real(t)
	slot := ahead(2, 2, 54)
	ask, states := begin(t, config(c))
	must(t, c, "scontrol", "create", "reservation", "ReservationName=admin", "Users=root", "PartitionName=batch",
		"CoreCnt=54", "StartTime="+stamp(slot.Start), "EndTime="+stamp(slot.End))
	job := must(t, c, "sbatch", "--parsable", "-n10", "-t300", "-o/dev/null", "--wrap", "sleep 300")
	awaitRunning(t, c, job)
	said, err := c.Run("sh", "-c", "sbatch --test-only -n54 -t1 --wrap true 2>&1")
	t.Logf("54 cores are reserved over %s to %s; sbatch --test-only of 54 cores says %q, %v", stamp(slot.Start), stamp(slot.End), said, err)
	q := awaitState(t, states, "the reservation and the job", func(q message.QueueChanged) bool {
		return len(q.Reservations) == 1 && len(q.Running) == 1
	})
	if q.Reservations[0].Mine || q.Reservations[0].Slot.Cores != 54 || q.Running[0].Cores != 10 {
		t.Fatalf("the state is %+v", q)
	}
	if until := time.Until(q.Running[0].End); until < 295*time.Minute || until > 302*time.Minute {
		t.Fatalf("the job counts for %s", until)
	}
	if r := ask(message.Reserve{ID: "r-1", Slot: ahead(2, 1, 1)}).(message.Reserved); r.OK || r.Reason.Code != protocol.CodeBusy || r.Reason.Free != 0 {
		t.Fatalf("in a full hour: OK %v, %+v", r.OK, r.Reason)
	}
	grant(t, ask, "r-2", ahead(4, 1, 54))
}

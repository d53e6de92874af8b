package local_test

import (
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/agents/queue/local"
	"ramp/protocol"
	"ramp/protocol/message"
)

// burns keeps a core busy until its file stop is there.
const burns = `while [ ! -e stop ]; do i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; done`

// worked is a job that was asked to begin, and a way to look at it.
type worked struct {
	t   *testing.T
	job message.Job
	ask func(body protocol.Body) protocol.Body
}

func work(t *testing.T, script string) worked {
	t.Helper()
	ask := begin(t, "atlas@test", t.TempDir())
	slot := protocol.Slot{Start: time.Now(), End: time.Now().Add(10 * time.Minute), Cores: 1}
	w := worked{t, message.Job{ID: "r1.1", Reservation: "r1", Slot: slot, Dir: t.TempDir(), Argv: []string{"/bin/sh", "-c", script}}, ask}
	if r, ok := ask(message.Reserve{ID: "r1", Slot: slot}).(message.Reserved); !ok || !r.OK {
		t.Fatalf("%+v", r)
	}
	if err := os.MkdirAll(filepath.Join(w.job.Dir, "work"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.told(message.Submit{Job: w.job})
	t.Cleanup(func() { w.until(protocol.JobState.Over) })
	t.Cleanup(func() { w.touch("stop") })
	return w
}

func (w worked) told(body protocol.Body) protocol.JobStatus {
	w.t.Helper()
	for {
		switch got := w.ask(body).(type) {
		case message.JobChanged:
			return got.Status
		case message.JobRefused:
			w.t.Fatalf("%+v", got)
		}
	}
}

func (w worked) look() protocol.JobStatus { return w.told(message.JobQuery{Job: w.job}) }

func (w worked) touch(name string) {
	if err := os.WriteFile(filepath.Join(w.job.Dir, "work", name), nil, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// when looks until something is so.
func (w worked) when(what string, so func(s protocol.JobStatus) bool) protocol.JobStatus {
	w.t.Helper()
	var s protocol.JobStatus
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for late := time.Now().Add(2 * time.Minute); time.Now().Before(late); <-pause.C {
		if s = w.look(); so(s) {
			return s
		}
	}
	w.t.Fatalf("never %s: %+v", what, s)
	return s
}

func (w worked) until(so func(s protocol.JobState) bool) protocol.JobStatus {
	w.t.Helper()
	return w.when("in that state", func(s protocol.JobStatus) bool { return so(s.State) })
}

// A job is metered while it runs, stands still while it is suspended, and what it
// has used at its end is what was told before and more.
func TestAJobIsMeteredWhileItRuns(t *testing.T) {
	t.Parallel()
	w := work(t, burns)
	ran := w.when("busy", func(s protocol.JobStatus) bool { return s.Usage.CPU >= 300*time.Millisecond })
	if ran.State != protocol.JobRunning || ran.Usage.Wall <= 0 || ran.Usage.Share <= 0 || ran.Usage.Share > protocol.Core || ran.Memory <= 0 {
		t.Fatalf("while it runs: %+v", ran)
	}
	w.told(message.Signal{ID: w.job.ID, Verb: message.SignalSuspend})
	w.until(func(s protocol.JobState) bool { return s == protocol.JobSuspended })
	paused := time.Now()
	still := w.when("looked at twice by its keeper", func(protocol.JobStatus) bool { return time.Since(paused) > 2500*time.Millisecond })
	if still.Usage.Wall > paused.Sub(still.Started) {
		t.Fatalf("suspended since %s, it is charged %s", paused.Sub(still.Started), still.Usage.Wall)
	}
	w.told(message.Signal{ID: w.job.ID, Verb: message.SignalResume})
	w.when("on", func(s protocol.JobStatus) bool { return s.Usage.Wall > still.Usage.Wall })
	before := w.look()
	w.touch("stop")
	end := w.until(protocol.JobState.Over)
	if u := end.Usage; !end.Success() || u.CPU < before.Usage.CPU || u.Wall < before.Usage.Wall || u.Share > before.Usage.Share {
		t.Fatalf("it ended as %+v after %+v", end, before)
	}
	if all := end.Ended.Sub(end.Started); end.Usage.Wall > all-2400*time.Millisecond {
		t.Fatalf("of %s it was suspended for 2.5 s, and is charged %s", all, end.Usage.Wall)
	}
}

// What a program uses in processes for which it never waits counts as well.
func TestNobodyHidesWorkFromTheMeter(t *testing.T) {
	t.Parallel()
	w := work(t, `trap "" CHLD; (`+burns+`) & while [ ! -e end ]; do sleep 0.1; done`)
	w.when("busy", func(s protocol.JobStatus) bool { return s.Usage.CPU >= 700*time.Millisecond })
	w.touch("stop")
	w.touch("end")
	if end := w.until(protocol.JobState.Over); end.Usage.CPU < 700*time.Millisecond {
		t.Fatalf("at the end %s are left of it", end.Usage.CPU)
	}
}

// proc is a process of a job that is thought up.
type proc struct {
	local.Seen
	parent int // 0: the keeper
}

// Whatever processes come and go, and whoever waits for whom: never more is counted
// than was used, and never less than what can be seen.
func TestTheMeterCountsEverythingOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := local.NewMeter(2)
		live := map[int]*proc{}
		var truth, waited, before time.Duration
		var next uint64
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			pid := rapid.IntRange(1, 6).Draw(t, "pid")
			p := live[pid]
			switch {
			case p == nil:
				next++
				parent := rapid.IntRange(0, 6).Draw(t, "parent")
				if live[parent] == nil {
					parent = 0
				}
				live[pid] = &proc{local.Seen{PID: pid, Started: next}, parent}
			case rapid.Bool().Draw(t, "works"):
				d := time.Duration(rapid.IntRange(1, 1000).Draw(t, "ms")) * time.Millisecond
				p.CPU += d
				truth += d
			default:
				delete(live, pid)
				heir := live[p.parent]
				switch {
				case rapid.Bool().Draw(t, "nobody waits"):
				case heir != nil:
					heir.Waited += p.CPU + p.Waited
				default:
					waited += p.CPU + p.Waited
				}
				for _, q := range live {
					if q.parent == pid {
						q.parent = 0
					}
				}
			}
			if !rapid.Bool().Draw(t, "looks") {
				continue
			}
			seen, least := []local.Seen{}, waited
			for _, q := range live {
				seen, least = append(seen, q.Seen), least+q.CPU+q.Waited
			}
			got := m.Look(waited, -1, seen...).CPU
			if got > truth || got < least || got < before {
				t.Fatalf("%s were used, %s of it can be seen, %s were counted before; counted: %s", truth, least, before, got)
			}
			before = got
		}
	})
}

// The share is a fair part of the machine, counted in fractions.
func TestTheShareIsAFairOne(t *testing.T) {
	for _, c := range []struct {
		cores, machine, sum, looks int
		want                       string
	}{
		{1, 2, 0, 1, "1"}, {1, 2, 1, 1, "1"}, {1, 2, 3, 1, "0.5"}, {2, 4, 6, 1, "1"}, {2, 4, 20, 10, "2"}, {4, 4, 40, 10, "2"}, {1, 1, 9, 10, "0.526315"},
	} {
		if got := protocol.Credits(local.FairShare(c.cores, c.machine, c.sum, c.looks)).String(); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		cores, machine := rapid.IntRange(1, 64).Draw(t, "cores"), rapid.IntRange(1, 512).Draw(t, "machine")
		m := local.NewMeter(cores)
		least, window := big.NewRat(int64(cores), 1), []int{}
		for range rapid.IntRange(1, 30).Draw(t, "looks") {
			n := rapid.IntRange(0, 2000).Draw(t, "others")
			if window = append(window, n); len(window) > 10 {
				window = window[1:]
			}
			sum := 0
			for _, n := range window {
				sum += n
			}
			mean := big.NewRat(int64(sum), int64(len(window)))
			part := new(big.Rat).Quo(big.NewRat(int64(machine), 1), mean.Add(mean, big.NewRat(int64(cores), 1)))
			if part.Mul(part, big.NewRat(int64(cores), 1)); part.Cmp(least) < 0 {
				least = part
			}
			got := m.Share(machine, n)
			if low := new(big.Rat).Sub(least, big.NewRat(1, protocol.Core)); big.NewRat(got, protocol.Core).Cmp(least) > 0 || big.NewRat(got, protocol.Core).Cmp(low) < 0 {
				t.Fatalf("share %d, want %s", got, least.FloatString(7))
			}
		}
	})
}

// What /proc tells is read whatever the program calls itself, and else not at all.
func TestWhatProcTells(t *testing.T) {
	line := "7 (a) R 1 (b) S 3 7 7 0 -1 4194560 100 5 0 0 120 30 7 2 20 0 1 0 999 1000 5 1"
	if parent, cpu, ok := local.ParseStat([]byte(line)); !ok || parent != 3 || cpu != 1500*time.Millisecond {
		t.Errorf("%d, %s, %t", parent, cpu, ok)
	}
	for _, bad := range []string{"", "7 (a", "7 (a) S", "7 (a) S x 7 7 0 -1 0 0 0 0 0 1 1 1 1 20 0 1 0 9 9 9"} {
		if _, _, ok := local.ParseStat([]byte(bad)); ok {
			t.Errorf("%q is a process", bad)
		}
	}
	if _, cpu, ok := local.ParseStat(fmt.Appendf(nil, "7 (a) S 3 7 7 0 -1 0 0 0 0 0 -5 99999999999999999999 1 1 20 0 1 0 9 9 9 9")); !ok || cpu != 0 {
		t.Errorf("nonsense counts as %s, %t", cpu, ok)
	}
}

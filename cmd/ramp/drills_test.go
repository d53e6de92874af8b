package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ramp/protocol/message"
)

// drill is a fault of the bank's, put right by what docs/BANKING.md says, and how long
// each part of that took.
type drill struct {
	name string
	run  func(m *market, t *testing.T) []lap
}

type lap struct {
	what string
	took time.Duration
}

// The drills of docs/BANKING.md with real processes, and how long they take until the
// next purchase is settled. With RAMP_TEST_SLOW each is done eleven times, for the manual.
func TestTheDrillsOfABank(t *testing.T) {
	if testing.Short() {
		t.Skip("kills a bank several times")
	}
	t.Parallel()
	rounds := 1
	if os.Getenv("RAMP_TEST_SLOW") != "" {
		rounds = 11
	}
	m := startMarket(t, "atlas")
	m.rewrite(t, "bank", "grace: 1s", "grace: 60s") // as it is by default
	must(t, m.daemons["bank"].stop())
	m.restart(t, "bank")
	for _, d := range []drill{{"killed", (*market).drillKilled}, {"disk full", (*market).drillFull}, {"machine gone", (*market).drillGone}} {
		laps := map[string][]time.Duration{}
		var order []string
		for range rounds {
			for _, l := range d.run(m, t) {
				if laps[l.what] == nil {
					order = append(order, l.what)
				}
				laps[l.what] = append(laps[l.what], l.took)
			}
			m.settleDown(t)
			m.audit(t)
		}
		for _, what := range order {
			took := laps[what]
			slices.Sort(took)
			t.Logf("%s: %s %s (median of %d; %s to %s)", d.name, what, took[len(took)/2].Round(time.Millisecond), rounds,
				took[0].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
		}
	}
}

// laps counts from one moment on.
type laps struct {
	begin time.Time
	list  []lap
}

func (l *laps) done(what string) { l.list = append(l.list, lap{what, time.Since(l.begin)}) }

// drillKilled is SIGKILL in the middle of a purchase, and the bank started again.
func (m *market) drillKilled(t *testing.T) []lap {
	t.Helper()
	watching, stop := context.WithTimeout(context.Background(), overTime)
	defer stop()
	m.watch(watching, m.begin(t, "job.xml"), func(p message.Purchase) {
		if p.State == "deciding" {
			m.daemons["bank"].kill()
			stop()
		}
	})
	m.daemons["bank"].kill() // on a busy machine nobody may see the purchase decided
	l := laps{begin: time.Now()}
	must(t, m.serve("bank"))
	l.done("ready after")
	m.settledAgain(t)
	l.done("a purchase settled after")
	return l.list
}

// drillFull is a disk on which nothing can be written, and room made on it.
func (m *market) drillFull(t *testing.T) []lap {
	t.Helper()
	m.fill(t, "bank", true)
	watching, stop := context.WithTimeout(context.Background(), overTime)
	defer stop()
	m.watch(watching, m.begin(t, "job.xml"), func(p message.Purchase) {
		if p.State == "deciding" {
			stop()
		}
	})
	m.fill(t, "bank", false)
	l := laps{begin: time.Now()}
	m.recovered(t, "bank")
	l.done("the bank writes again after")
	m.settledAgain(t)
	l.done("a purchase settled after")
	return l.list
}

// drillGone is a bank whose directory is lost: what is left are its credential, its
// configuration and a backup.
func (m *market) drillGone(t *testing.T) []lap {
	t.Helper()
	dir, backup := m.path("bank"), filepath.Join(m.dir, "backup.db")
	_ = os.Remove(backup) // there may be none
	ramp(t, nil, "bank", "backup", backup, "--dir", dir)
	ramp(t, nil, "bank", "restore", backup, "--verify", "--dir", dir)
	kept := map[string][]byte{}
	for _, name := range []string{"agent.pem", "agent.key", "ca.pem", "config.yaml"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		kept[name] = b
	}
	m.daemons["bank"].kill()
	must(t, os.RemoveAll(dir))
	l := laps{begin: time.Now()}
	must(t, writeFiles(dir, kept))
	ramp(t, nil, "bank", "restore", backup, "--dir", dir)
	l.done("restored after")
	must(t, m.serve("bank"))
	l.done("ready, in recovery, after")
	ramp(t, nil, "bank", "recovery", "end", "--dir", dir)
	m.settledAgain(t)
	l.done("recovery ended at once, a purchase settled after")
	return l.list
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// Agents give each other a second or more to answer. A machine that stands still for longer, as
// a virtual one does when its host's disk is busy, makes them do what is right then, which is
// not what a script of quiet days expects. Such a script is played again, and only then: a
// stall is what the watch has seen, never inferred from the failure.
const (
	stallTime  = 900 * time.Millisecond // less than protocol.MinPatience, the shortest wait of an agent for another
	mostPlays  = 3
	watchEvery = 250 * time.Millisecond
)

// watch looks whether the machine stands still: each turn flushes a small file to the disk
// that the scripts use.
type watch struct {
	mu     sync.Mutex
	last   time.Time // end of the last turn
	stalls []stall
}

type stall struct {
	end  time.Time
	took time.Duration
}

// start watches from now on, for as long as the process runs.
func (w *watch) start() {
	f, err := os.CreateTemp(os.Getenv("GOTMPDIR"), "watch")
	if err != nil {
		return // without a watch each script is played once
	}
	_ = os.Remove(f.Name()) // it is written by its descriptor
	w.turned(now())
	go func() {
		for range time.Tick(watchEvery) {
			if _, err := f.WriteAt([]byte{0}, 0); err == nil {
				_ = f.Sync() // a disk that fails is no matter of this file
			}
			w.turned(now())
		}
	}()
}

// now is the wall clock, which goes on while a virtual machine stands still.
func now() time.Time { return time.Now().Round(0) }

func (w *watch) turned(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if took := at.Sub(w.last); !w.last.IsZero() && took > stallTime {
		w.stalls = append(w.stalls, stall{at, took})
	}
	w.last = at
}

// longest is the longest stall that ended after a time, one that goes on at another time included.
func (w *watch) longest(after, at time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	longest := time.Duration(0)
	if took := at.Sub(w.last); !w.last.IsZero() && took > stallTime {
		longest = took
	}
	for _, s := range w.stalls {
		if s.end.After(after) {
			longest = max(longest, s.took)
		}
	}
	return longest
}

// machine watches this one.
var machine watch

// playAll plays the scripts of a directory side by side, each again after a stall.
func playAll(t *testing.T, dir string, w *watch, p testscript.Params) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts: ", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			p := p
			p.Files = []string{file}
			p.Deadline, _ = t.Deadline() // what hangs is named, with the program's goroutines
			one := playAgain(w, func(t testscript.T) { testscript.RunT(t, p) })
			switch {
			case one.skipped != nil:
				t.Skip(one.skipped...)
			case one.failed:
				t.Fatal(one.log.String())
			}
			if testing.Verbose() || one.n > 1 {
				t.Log(one.log.String())
			}
		})
	}
}

// playAgain plays a script until the machine did not stand still meanwhile, or it succeeds.
func playAgain(w *watch, script func(testscript.T)) *play {
	one := &play{}
	for {
		began := now()
		one.failed, one.n = false, one.n+1
		one.Run("", script)
		stood := w.longest(began, now())
		if !one.failed || stood == 0 || one.n == mostPlays {
			return one
		}
		one.Log("played again: the machine stood still for", stood.Round(time.Millisecond))
	}
}

// play is a script's test as testscript sees it; its failure is not yet the test's.
type play struct {
	log     strings.Builder
	skipped []any
	failed  bool
	n       int // plays
}

func (p *play) Parallel() {} // with its test

func (p *play) Verbose() bool { return testing.Verbose() }

func (p *play) Log(args ...any) { fmt.Fprintln(&p.log, args...) }

func (p *play) Fatal(args ...any) {
	p.Log(args...)
	p.FailNow()
}

func (p *play) FailNow() {
	p.failed = true
	runtime.Goexit()
}

func (p *play) Skip(args ...any) {
	p.skipped = append([]any{}, args...)
	runtime.Goexit()
}

// Run waits for a goroutine, which FailNow can end.
func (p *play) Run(_ string, f func(testscript.T)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(p)
	}()
	<-done
}

// A script that fails is played again if the machine stood still meanwhile, and not otherwise.
func TestScriptsArePlayedAgainAfterAStallOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		stalls, fails int // plays with a stall, and plays that fail
		plays         int
		failed        bool
	}{
		{"good", 0, 0, 1, false},
		{"good in spite of a stall", 1, 0, 1, false},
		{"failed", 0, 1, 1, true},
		{"failed under a stall", 1, 1, 2, false},
		{"failed again without one", 1, 2, 2, true},
		{"always failed", mostPlays, mostPlays, mostPlays, true},
	} {
		w, plays := &watch{last: now()}, 0
		one := playAgain(w, func(one testscript.T) {
			if plays++; plays <= c.stalls {
				w.stalls = append(w.stalls, stall{now(), 2 * stallTime})
			}
			if plays <= c.fails {
				one.Fatal("no")
			}
		})
		if plays != c.plays || one.failed != c.failed {
			t.Errorf("%s: played %d times, failed %t; want %d and %t", c.name, plays, one.failed, c.plays, c.failed)
		}
	}
}

// A flush that takes long is a stall when it ends, and while it goes on.
func TestTheWatchSeesStalls(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	w := &watch{}
	const half = time.Second / 2
	for _, after := range []time.Duration{0, 1, 6, 7} {
		w.turned(at.Add(after * half))
	}
	for _, c := range []struct{ after, at, want time.Duration }{
		{0, 7, 5}, {5, 7, 5}, {6, 8, 0}, {6, 17, 10},
	} {
		after, until := at.Add(c.after*half), at.Add(c.at*half)
		if got := w.longest(after, until); got != c.want*half {
			t.Errorf("from %d to %d half seconds: %s, want %d", c.after, c.at, got, c.want)
		}
	}
}

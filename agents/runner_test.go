package agents_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"ramp/agents"
	"ramp/agents/markettest"
	"ramp/protocol"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("ramp/agents/storetest.(*FaultyDisk).decide")) // lives as long as the process
}

// Nothing overtakes the disk: not what rests on it, and not what is only said
// later. What waits together shares one append.
func TestNothingOvertakesTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{gate: make(chan struct{})}
		r := start(t, d)
		r.expect("nothing is saved by the first output", "life 1")
		r.deliver("a", "b", "quiet", "c")
		r.expect("while the first append waits", "life 1")
		d.gate <- struct{}{}
		r.expect("after it", "life 1", "a")
		d.gate <- struct{}{}
		r.expect("after the second", "life 1", "a", "b", "quiet", "c")
		if got, want := fmt.Sprint(d.keys()), "[[a] [b c]]"; got != want {
			t.Fatalf("appends %s, want %s", got, want)
		}
		r.deliver("quiet again")
		r.expect("what saves nothing waits for nobody", "life 1", "a", "b", "quiet", "c", "quiet again")
		r.stop()
	})
}

// A hint waits for no disk, and is said although its output is lost.
func TestAHintLeavesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{gate: make(chan struct{})}
		r := start(t, d)
		r.deliver("a", "hints")
		r.expect("while the first append waits", "life 1", "hint")
		d.broken(errFull)
		close(d.gate)
		synctest.Wait()
		r.expect("when it has failed", "life 1", "hint", "unavailable a", "unavailable hints")
		r.stop()
	})
}

// A role that answers faster than its disk takes waits when 1,024 outputs do;
// then it goes on, and nothing is lost.
func TestTheRoleWaitsForASlowDisk(t *testing.T) {
	const most, messages = 1024, 2000
	synctest.Test(t, func(t *testing.T) {
		d := &disk{gate: make(chan struct{})}
		r := start(t, d)
		for i := range messages {
			if err := r.Deliver(say(fmt.Sprint("w", i))); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if got := len(r.role.heard); got != most {
			t.Fatalf("the role went on to %d outputs, want %d", got, most)
		}
		close(d.gate)
		synctest.Wait()
		if got := len(r.sent) - 1; got != messages {
			t.Fatalf("%d of %d were sent", got, messages)
		}
		r.stop()
	})
}

// Do returns when what it did is durable and sent, and not before.
func TestDoIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{gate: make(chan struct{})}
		r := start(t, d)
		done := make(chan error, 1)
		go func() {
			done <- r.Do(t.Context(), func(now time.Time, role agents.Role) protocol.Output { return role.Receive(now, say("a")) })
		}()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("Do returned %v before the append", err)
		default:
		}
		d.gate <- struct{}{}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		r.expect("then", "life 1", "a")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		go func() { d.gate <- struct{}{} }()
		err := r.Do(ctx, func(now time.Time, role agents.Role) protocol.Output { return role.Receive(now, say("b")) })
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		r.deliver("c") // the gate lets one append through, whichever came
		close(d.gate)
		r.stop()
		if err := r.Do(t.Context(), nothing); !errors.Is(err, agents.ErrStopped) {
			t.Fatalf("after the stop: %v", err)
		}
	})
}

// What a caller that has left asked for is not done when its turn comes: the same order may
// have been given again meanwhile.
func TestDoForACallerThatHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, &disk{})
		busy := make(chan struct{})
		go func() {
			_ = r.Do(t.Context(), func(time.Time, agents.Role) protocol.Output { <-busy; return protocol.Output{} })
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- r.Do(ctx, func(now time.Time, role agents.Role) protocol.Output { return role.Receive(now, say("a")) })
		}()
		synctest.Wait()
		cancel()
		close(busy)
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("it was told %v", err)
		}
		synctest.Wait()
		r.expect("nothing was done", "life 1")
		for range 20 { // whichever of two channels is read first
			if err := r.Do(ctx, func(now time.Time, role agents.Role) protocol.Output { return role.Receive(now, say("b")) }); !errors.Is(err, context.Canceled) {
				t.Errorf("a later one was told %v", err)
			}
		}
		synctest.Wait()
		r.expect("nor later", "life 1")
		r.stop()
	})
}

// What was begun for a caller that leaves meanwhile is over when Do returns: the caller may
// read what it wrote.
func TestDoReturnsAfterWhatItHasBegun(t *testing.T) {
	r := agents.NewRunner(agents.Config{
		Load: func(protocol.Tables, time.Time) (agents.Role, protocol.Output, error) {
			return nil, protocol.Output{}, nil
		},
		Store: markettest.Store{}, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	running, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(running) }()
	ctx, leave := context.WithCancel(t.Context())
	over := false
	err := r.Do(ctx, func(time.Time, agents.Role) protocol.Output {
		leave()
		time.Sleep(50 * time.Millisecond) // long enough for Do to see that its caller has left
		over = true
		return protocol.Output{}
	})
	if !over || err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("over: %t, %v", over, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Whoever calls Do while the Runner stops is told the truth: what was carried
// out is not called stopped.
func TestDoWhileStopping(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			d := &disk{}
			r := start(t, d)
			done := make(chan error, 1)
			go func() {
				done <- r.Do(t.Context(), func(now time.Time, role agents.Role) protocol.Output { return role.Receive(now, say("a")) })
			}()
			r.stop()
			err := <-done
			if kept := len(d.keys()) > 0; kept != (err == nil) {
				t.Fatalf("kept is %v, but Do said %v", kept, err)
			}
		})
	}
}

func nothing(time.Time, agents.Role) protocol.Output { return protocol.Output{} }

var errFull = errors.New("the disk is full")

// Whoever waits for an append of which the store cannot tell is not told that nothing
// was changed.
func TestAnUncertainAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{gate: make(chan struct{})}
		r := start(t, d)
		failed := make(chan error, 1)
		go func() {
			failed <- r.Do(t.Context(), func(now time.Time, role agents.Role) protocol.Output { return role.Receive(now, say("a")) })
		}()
		synctest.Wait()
		d.broken(fmt.Errorf("append: %w", protocol.Uncertain("the disk failed")))
		close(d.gate)
		if err := <-failed; !errors.Is(err, agents.ErrUncertain) || errors.Is(err, agents.ErrUnavailable) {
			t.Fatalf("Do says %v", err)
		}
		r.stop()
	})
}

// A disk that fails ends the Runner, at an append or at a probe: nothing leaves, and
// nothing is written after it, although the disk seems to work again.
func TestAFailedDiskEndsTheRunner(t *testing.T) {
	for _, when := range []string{"at an append", "at a probe"} {
		synctest.Test(t, func(t *testing.T) {
			d := &disk{}
			r := start(t, d)
			if when == "at a probe" {
				d.broken(errFull)
				r.deliver("a")
			}
			d.broken(fmt.Errorf("append: %w", protocol.ErrDisk))
			r.deliver("b")
			time.Sleep(time.Minute) // virtual
			d.broken(nil)
			if err := r.Do(t.Context(), nothing); !errors.Is(err, agents.ErrStopped) {
				t.Errorf("%s: Do says %v", when, err)
			}
			if err := <-r.ended; !errors.Is(err, protocol.ErrDisk) {
				t.Errorf("%s: the Runner ended with %v", when, err)
			}
			if n := len(d.keys()); n != 0 {
				t.Errorf("%s: %d appends after the failure", when, n)
			}
			if slices.Contains(r.sent, "b") {
				t.Errorf("%s: a message left without its record", when)
			}
		})
	}
}

// A failed append drops the role and everything unsent: nothing of it leaves, and
// what it answered is answered unavailable. So is every message until a write succeeds; then the role is
// loaded anew and goes on.
func TestAFailedAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{gate: make(chan struct{})}
		r := start(t, d)
		r.deliver("a", "b", "quiet") // b and quiet wait behind a
		failed := make(chan error, 1)
		go func() {
			failed <- r.Do(t.Context(), func(now time.Time, role agents.Role) protocol.Output { return role.Receive(now, say("c")) })
		}()
		synctest.Wait()
		d.broken(errFull)
		close(d.gate)
		if err := <-failed; !errors.Is(err, agents.ErrUnavailable) {
			t.Fatalf("Do says %v", err)
		}
		dropped := []string{"life 1", "unavailable a", "unavailable b", "unavailable quiet"}
		r.expect("nothing of the dropped role leaves", dropped...)
		r.deliver("d", "silent")
		r.expect("refused", append(dropped, "unavailable d")...)
		if err := r.Do(t.Context(), nothing); !errors.Is(err, agents.ErrUnavailable) {
			t.Fatalf("Do says %v", err)
		}
		time.Sleep(10 * time.Minute) // virtual: probes back off, and fail
		r.expect("still refused", append(dropped, "unavailable d")...)
		d.broken(nil)
		time.Sleep(time.Minute)
		r.deliver("e")
		r.expect("healed", append(dropped, "unavailable d", "life 2", "e")...)
		for _, keys := range d.keys() {
			for _, k := range keys {
				if k != "probe" && k != "e" {
					t.Fatalf("%q of the dropped role is kept", k)
				}
			}
		}
		r.stop()
	})
}

// What is being written is prepared meanwhile, and leaves only when it is durable;
// what is never durable never leaves.
func TestMessagesArePreparedWhileTheyAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{gate: make(chan struct{})}
		r := start(t, d)
		r.deliver("a")
		r.mu.Lock()
		early := slices.Contains(r.early, "a")
		r.mu.Unlock()
		if !early {
			t.Error("not prepared while it is written")
		}
		r.expect("nothing has left", "life 1")
		d.broken(errFull)
		close(d.gate)
		synctest.Wait()
		r.expect("nor does it", "life 1", "unavailable a")
		r.stop()
	})
}

// A disk that breaks again and again never lets through what it did not keep.
func TestTheDiskBreaksOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{}
		r := start(t, d)
		for i := range 20 {
			d.broken(errFull)
			r.deliver(fmt.Sprint("lost ", i), fmt.Sprint("refused ", i))
			d.broken(nil)
			time.Sleep(time.Hour)
			r.deliver(fmt.Sprint("kept ", i))
		}
		r.stop()
		for _, w := range r.sent {
			var i int
			if n, _ := fmt.Sscanf(w, "lost %d", &i); n == 1 {
				t.Fatalf("%q was sent", w)
			}
		}
		for i := range 20 {
			if !slices.Contains(r.sent, fmt.Sprint("kept ", i)) {
				t.Fatalf("kept %d was not sent", i)
			}
		}
	})
}

// Stopping carries out what the role has answered so far, also while the disk
// is broken, and leaves nobody behind.
func TestStopFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{gate: make(chan struct{})}
		r := start(t, d)
		r.deliver("a", "b", "c")
		r.cancel()
		synctest.Wait()
		r.expect("before the disk has it", "life 1")
		d.gate <- struct{}{}
		d.gate <- struct{}{}
		if err := <-r.ended; err != nil {
			t.Fatal(err)
		}
		r.expect("after", "life 1", "a", "b", "c")
		if err := r.Deliver(say("d")); err != nil && !errors.Is(err, agents.ErrStopped) {
			t.Fatal(err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		d := &disk{}
		r := start(t, d)
		d.broken(errFull)
		r.deliver("a")
		time.Sleep(time.Second)
		r.stop()
		r.expect("of what was not kept, only that", "life 1", "unavailable a")
	})
}

// A clock that is set forward, as after a suspended machine, lets no alarm oversleep, and
// one that is set back lets none ring early.
func TestAnAlarmFollowsTheClock(t *testing.T) {
	for name, set := range map[string]time.Duration{"forward": 23 * time.Hour, "back": -23 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, &disk{})
				r.deliver("tomorrow")
				r.clock.Store(int64(set))
				due := 24*time.Hour - set
				time.Sleep(due - 2*time.Minute) // virtual
				r.expect("before", "life 1", "tomorrow")
				time.Sleep(4 * time.Minute)
				r.expect("then", "life 1", "tomorrow", "woken")
				r.stop()
			})
		})
	}
}

// The earliest alarm stands; it rings once.
func TestAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, &disk{})
		r.deliver("alarm", "a")
		time.Sleep(59 * time.Second)
		r.expect("before", "life 1", "alarm", "a")
		time.Sleep(time.Second)
		r.expect("then", "life 1", "alarm", "a", "woken")
		time.Sleep(24 * time.Hour)
		r.expect("once", "life 1", "alarm", "a", "woken")
		r.stop()
	})
}

// A role that cannot be loaded ends the Runner with its error, at first and
// after the disk was broken.
func TestARoleThatCannotBeLoaded(t *testing.T) {
	errBad := errors.New("a record is damaged")
	for _, good := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			loads, d := 0, &disk{kept: markettest.Store{}}
			r := agents.NewRunner(agents.Config{
				Store: d, Now: time.Now, Log: slog.New(slog.DiscardHandler), Route: func(protocol.Message) {},
				Unavailable: func(protocol.Message) (protocol.Message, bool) { return protocol.Message{}, false },
				Load: func(protocol.Tables, time.Time) (agents.Role, protocol.Output, error) {
					if loads++; loads > good {
						return nil, protocol.Output{}, errBad
					}
					return &echo{}, protocol.Output{}, nil
				},
			})
			ended := make(chan error, 1)
			go func() { ended <- r.Run(t.Context()) }()
			synctest.Wait()
			if good > 0 {
				d.broken(errFull)
				if err := r.Deliver(say("a")); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				d.broken(nil)
			}
			if err := <-ended; !errors.Is(err, errBad) {
				t.Fatalf("Run: %v", err)
			}
		})
	}
}

// What is traced is in the order of the role, after it is durable.
func TestTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		r := agents.NewRunner(agents.Config{
			Store: &disk{kept: markettest.Store{}}, Now: time.Now, Log: slog.New(slog.DiscardHandler), Route: func(protocol.Message) {},
			Load: func(protocol.Tables, time.Time) (agents.Role, protocol.Output, error) {
				return &echo{}, protocol.Output{}, nil
			},
			Trace: func(_ time.Time, in bool, m protocol.Message) { lines = append(lines, fmt.Sprint(in, m.Body)) },
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		for _, w := range []string{"a", "quiet"} {
			if err := r.Deliver(say(w)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		cancel()
		<-ended
		if got, want := fmt.Sprint(lines), "[truea falsea truequiet falsequiet]"; got != want {
			t.Fatalf("traced %s, want %s", got, want)
		}
	})
}

package local_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ramp/agents/queue"
	"ramp/agents/queue/local"
	"ramp/agents/queue/queuetest"
	"ramp/protocol"
	"ramp/protocol/message"
)

// A job has its slot by a clock that nobody sets: the machine's own is read where the keeper begins,
// and for two waits that do not touch the job.
func TestAJobHasItsSlotWhateverBecomesOfTheClock(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("keeper.go")
	if err != nil {
		t.Fatal(err)
	}
	for call, most := range map[string]int{"time.Now()": 2, "time.Since(": 0, "time.Until(": 0, "k.look(now)": 0} {
		if n := strings.Count(string(b), call); n > most {
			t.Errorf("keeper.go has %s %d times, want at most %d", call, n, most)
		}
	}
	if !strings.Contains(string(b), "now: steady(time.Now, uptime)") {
		t.Error("a keeper has no steady clock")
	}
	wall, up := time.Now(), time.Hour
	now := local.Steady(func() time.Time { return wall }, func() time.Duration { return up })
	began := wall
	for _, set := range []time.Duration{2 * time.Hour, -48 * time.Hour} {
		wall, up = wall.Add(set), up+time.Minute
		if got, want := now().Sub(began), up-time.Hour; got != want {
			t.Errorf("%s after the clock was set by %s: the job's shows %s", want, set, got)
		}
	}
}

func TestFewClaimsStayThatAreOver(t *testing.T) {
	t.Parallel()
	now := time.Now()
	until := func(d time.Duration) local.Claim { return local.Claim{Slot: protocol.Slot{End: now.Add(d)}} }
	var claims []local.Claim
	for i := range 600 {
		claims = append(claims, until(time.Duration(1-i)*time.Minute))
	}
	if left := local.Recent(now, claims); len(left) != 1+512 || left[0] != until(time.Minute) || left[512] != until(-511*time.Minute) {
		t.Errorf("of one claim that goes on and 599 that are over, %d are left", len(left))
	}
	if left := local.Recent(now, []local.Claim{until(-24 * time.Hour), until(-23 * time.Hour)}); len(left) != 1 {
		t.Errorf("after a day, %v are left", left)
	}
}

// A clock that is ahead takes no cores from a job that runs, nor a claim from its owner.
func TestAJobKeepsItsCoresWhileTheClockIsAhead(t *testing.T) {
	t.Parallel()
	dir, ahead := t.TempDir(), atomic.Int64{}
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	driver := func() *queue.Loop {
		d, err := local.Open(local.Config{
			Agent: queuetest.Agent, Dir: dir, Cores: 1, Now: now, Slog: slog.New(slog.DiscardHandler),
			Keeper: []string{os.Args[0], keeps}, Contain: local.Containment{Accept: local.Protections()},
		})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	ask, begun := asks(t, queuetest.Agent, driver()), time.Now().UTC()
	reserve := func(id string, from time.Duration) message.Reserved {
		slot := protocol.Slot{Start: begun.Add(from), End: begun.Add(from + time.Hour), Cores: 1}
		return ask(message.Reserve{ID: id, Slot: slot}).(message.Reserved)
	}
	if r := reserve("now", 0); !r.OK {
		t.Fatalf("%+v", r)
	}
	if r := reserve("next", time.Hour); !r.OK {
		t.Fatalf("%+v", r)
	}
	job := message.Job{ID: "now.1", Reservation: "now", Dir: t.TempDir(), Argv: []string{"/bin/sleep", "1000"}}
	job.Slot = protocol.Slot{Start: begun, End: begun.Add(time.Hour), Cores: 1}
	if err := os.MkdirAll(filepath.Join(job.Dir, "work"), 0o700); err != nil {
		t.Fatal(err)
	}
	if s := ask(message.Submit{Job: job}).(message.JobChanged); s.Status.State != protocol.JobRunning {
		t.Fatalf("%+v", s)
	}
	ahead.Store(int64(3 * time.Hour))
	if r := reserve("other", 3*time.Hour); r.OK || r.Reason.Code != protocol.CodeBusy {
		t.Errorf("the cores of a job that runs are granted: %+v", r)
	}
	if r := reserve("later", 5*time.Hour); !r.OK {
		t.Errorf("%+v", r)
	}
	ctx, cancel := context.WithCancel(context.Background())
	_ = driver().Run(ctx, func(m protocol.Message) {
		if q := m.Body.(message.QueueChanged); len(q.Running) != 1 || q.Running[0].Cores != 1 || q.Whole[0].Cores != 0 {
			t.Errorf("the seller sees %+v", q)
		}
		cancel()
	})
	ahead.Store(0)
	if r := ask(message.Keep{ID: "next"}).(message.Reserved); !r.OK {
		t.Errorf("a claim is gone: %+v", r)
	}
	ask(message.Signal{ID: job.ID, Verb: message.SignalKill})
	if err := local.Leave(job); err != nil {
		t.Fatal(err)
	}
	ahead.Store(int64(3 * time.Hour))
	if r := reserve("other", 3*time.Hour); !r.OK {
		t.Errorf("the cores of a job that has ended are not granted: %+v", r)
	}
}

package swf_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"ramp/agents/queue"
	"ramp/agents/queue/queuetest"
	"ramp/agents/queue/swf"
	"ramp/agents/workload"
	"ramp/protocol"
	"ramp/protocol/message"
)

// idle is the log of a machine without jobs.
func idle() *workload.Log { return &workload.Log{Comments: []string{" MaxProcs: 64"}} }

func TestContract(t *testing.T) {
	queuetest.Run(t, func(tb testing.TB, dir string) queue.Driver {
		return openLog(tb, idle(), dir, time.Now)
	})
}

func openLog(tb testing.TB, log *workload.Log, dir string, now func() time.Time) *queue.Loop {
	tb.Helper()
	d, err := swf.Open(swf.Config{Agent: queuetest.Agent, Log: log, Base: 1000, Dir: dir, Now: now, Slog: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// clock is a wall clock that a test sets.
type clock struct{ at atomic.Int64 }

func newClock(at time.Time) *clock {
	c := &clock{}
	c.at.Store(at.UnixNano())
	return c
}

func (c *clock) now() time.Time       { return time.Unix(0, c.at.Load()).UTC() }
func (c *clock) pass(d time.Duration) { c.at.Add(int64(d)) }

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// busy is a machine of 64 cores: at second 1000 of its log 40 are busy until
// 4600, and a job of 60 waits for them.
func busy() *workload.Log {
	log := idle()
	log.Jobs = []workload.Job{
		{Number: 1, Submit: 0, Run: 4600, Procs: 40, RequestedTime: 4600, Status: workload.StatusCompleted},
		{Number: 2, Submit: 500, Wait: 4100, Run: 3600, Procs: 60, RequestedTime: 3600, Status: workload.StatusCompleted},
	}
	return log
}

// drive runs a driver until the test ends and returns what it tells.
func drive(t *testing.T, d *queue.Loop) <-chan protocol.Message {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	arrived, stopped := make(chan protocol.Message, 64), make(chan struct{})
	go func() {
		defer close(stopped)
		_ = d.Run(ctx, func(m protocol.Message) {
			select {
			case arrived <- m:
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() { cancel(); <-stopped })
	return arrived
}

func ask[B protocol.Body](t *testing.T, d *queue.Loop, arrived <-chan protocol.Message, body protocol.Body) B {
	t.Helper()
	send := func(body protocol.Body) { d.Send(protocol.Message{Sender: queuetest.Agent, Body: body}) }
	send(message.Reserve{}) // refused, behind all that was told before it
	await[message.Reserved](t, arrived)
	send(body)
	return await[B](t, arrived)
}

func await[B protocol.Body](t *testing.T, arrived <-chan protocol.Message) B {
	t.Helper()
	for {
		select {
		case m := <-arrived:
			if b, ok := m.Body.(B); ok {
				return b
			}
		case <-time.After(20 * time.Second):
			t.Fatal("no answer")
		}
	}
}

// The log runs under the wall clock: at noon it is second 1000, an hour later
// second 4600, when the waiting job starts.
func TestTheLogFollowsTheClock(t *testing.T) {
	c := newClock(noon)
	d := openLog(t, busy(), t.TempDir(), c.now)
	arrived := drive(t, d)
	q := ask[message.QueueChanged](t, d, arrived, message.QueueQuery{})
	want := []protocol.Span{
		{Start: noon, End: noon.Add(time.Hour), Cores: 24},
		{Start: noon.Add(time.Hour), End: noon.Add(2 * time.Hour), Cores: 4},
		{Start: noon.Add(2 * time.Hour), Cores: 64},
	}
	if !slices.Equal(q.Foreseen, want) {
		t.Fatalf("foreseen %+v, want %+v", q.Foreseen, want)
	}
	c.pass(90 * time.Minute)
	q = ask[message.QueueChanged](t, d, arrived, message.QueueQuery{})
	if len(q.Foreseen) != 2 || q.Foreseen[0].Cores != 4 || !q.Foreseen[1].Start.Equal(noon.Add(2*time.Hour)) {
		t.Fatalf("after 90 minutes foreseen %+v", q.Foreseen)
	}
}

// A sold slot is laid over the log and moves the jobs that wait.
func TestASoldSlotMovesTheQueue(t *testing.T) {
	c := newClock(noon)
	dir := t.TempDir()
	d := openLog(t, busy(), dir, c.now)
	arrived := drive(t, d)
	taken := protocol.Slot{Start: noon.Add(time.Hour), End: noon.Add(2 * time.Hour), Cores: 20}
	if r := ask[message.Reserved](t, d, arrived, message.Reserve{ID: "r-1", Slot: taken}); r.OK || r.Reason.Free != 4 {
		t.Fatalf("a slot in front of the queue: %+v; want busy with 4 free", r)
	}
	free := protocol.Slot{Start: noon.Add(2 * time.Hour), End: noon.Add(3 * time.Hour), Cores: 64}
	if r := ask[message.Reserved](t, d, arrived, message.Reserve{ID: "r-2", Slot: free}); !r.OK {
		t.Fatalf("a slot behind the queue is refused: %+v", r.Reason)
	}
	c.pass(150 * time.Minute)
	if q := ask[message.QueueChanged](t, d, arrived, message.QueueQuery{}); q.Foreseen[0].Cores != 0 {
		t.Fatalf("while the slot runs %d cores are free", q.Foreseen[0].Cores)
	}
}

// After a restart the market's clock goes on, and sold slots stand in the log.
func TestARestartGoesOnWithTheSameMarket(t *testing.T) {
	c := newClock(noon)
	dir := t.TempDir()
	first := openLog(t, busy(), dir, c.now)
	arrived := drive(t, first)
	slot := protocol.Slot{Start: noon.Add(5 * time.Hour), End: noon.Add(6 * time.Hour), Cores: 64}
	if r := ask[message.Reserved](t, first, arrived, message.Reserve{ID: "r-1", Slot: slot}); !r.OK {
		t.Fatalf("refused: %+v", r.Reason)
	}
	c.pass(90 * time.Minute)
	second := openLog(t, busy(), dir, c.now)
	q := ask[message.QueueChanged](t, second, drive(t, second), message.QueueQuery{})
	if q.Foreseen[0].Cores != 4 || len(q.Reservations) != 1 || !q.Reservations[0].Slot.Start.Equal(slot.Start) {
		t.Fatalf("after the restart %+v", q)
	}
	_, err := swf.Open(swf.Config{Agent: queuetest.Agent, Log: busy(), Base: 2000, Dir: dir, Now: c.now, Slog: slog.New(slog.DiscardHandler)})
	if err == nil {
		t.Fatal("another base is accepted for the same directory")
	}
}

// What cannot be made durable is not granted.
func TestAFullDiskRefuses(t *testing.T) {
	dir := t.TempDir()
	d := openLog(t, idle(), dir, time.Now)
	arrived := drive(t, d)
	_ = os.Remove(filepath.Join(dir, "swf-reservations.json")) // it may not exist
	if err := os.Mkdir(filepath.Join(dir, "swf-reservations.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	slot := protocol.Slot{Start: time.Now().Add(time.Hour), End: time.Now().Add(2 * time.Hour), Cores: 64}
	r := ask[message.Reserved](t, d, arrived, message.Reserve{ID: "r-1", Slot: slot})
	if r.OK || r.Reason.Code != protocol.CodeUnavailable {
		t.Fatalf("answer %+v, want unavailable", r)
	}
	if err := os.Remove(filepath.Join(dir, "swf-reservations.json")); err != nil {
		t.Fatal(err)
	}
	if r := ask[message.Reserved](t, d, arrived, message.Reserve{ID: "r-2", Slot: slot}); !r.OK {
		t.Fatalf("refused after the disk has room: %+v", r.Reason)
	}
}

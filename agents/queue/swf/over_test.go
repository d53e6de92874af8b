package swf_test

import (
	"log/slog"
	"testing"
	"time"

	"ramp/agents/queue"
	"ramp/agents/queue/queuetest"
	"ramp/agents/queue/swf"
	"ramp/agents/workload"
	"ramp/protocol"
	"ramp/protocol/message"
)

// twoJobs is a machine of 64 cores at second 1000 of its log: a job of 32 ends after
// 10 minutes, though it asked for four hours, and one of 32 after two hours of three.
func twoJobs() *workload.Log {
	log := idle()
	log.Jobs = []workload.Job{
		{Number: 1, Submit: 0, Run: 1600, Procs: 32, RequestedTime: 14400, Status: workload.StatusCompleted},
		{Number: 2, Submit: 0, Run: 8200, Procs: 32, RequestedTime: 11800, Status: workload.StatusCompleted},
	}
	return log
}

func openOver(tb testing.TB, dir string, now func() time.Time) *queue.Loop {
	tb.Helper()
	d, err := swf.Open(swf.Config{
		Agent: queuetest.Agent, Log: twoJobs(), Base: 1000, Dir: dir, Now: now, Slog: slog.New(slog.DiscardHandler), Over: true})
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func TestContractOfAMachineThatSellsOverJobs(t *testing.T) {
	queuetest.Run(t, func(tb testing.TB, dir string) queue.Driver {
		d, err := swf.Open(swf.Config{Agent: queuetest.Agent, Log: idle(), Base: 1000, Dir: dir, Now: time.Now, Slog: slog.New(slog.DiscardHandler), Over: true})
		if err != nil {
			tb.Fatal(err)
		}
		return d
	})
}

// reservations are the IDs that the machine has.
func reservations(t *testing.T, d *queue.Loop, arrived <-chan protocol.Message) (ids string) {
	t.Helper()
	for _, r := range ask[message.QueueChanged](t, d, arrived, message.QueueQuery{}).Reservations {
		ids += r.ID + " "
	}
	return ids
}

// The log's truth shows when a slot over jobs begins: it is there if they have ended,
// and lost if they run on within their time, also when the agent was away meanwhile.
func TestASlotOverJobsIsKeptOrLostWhenItBegins(t *testing.T) {
	for _, away := range []bool{false, true} {
		c, dir := newClock(noon), t.TempDir()
		d := openOver(t, dir, c.now)
		arrived := drive(t, d)
		after := func(from, long time.Duration, cores int) protocol.Slot {
			return protocol.Slot{Start: noon.Add(from), End: noon.Add(from + long), Cores: cores}
		}
		for _, r := range []struct {
			id   string
			slot protocol.Slot
			over bool
			want protocol.Code
		}{
			{"plain", after(time.Hour, time.Hour, 32), false, protocol.CodeBusy},
			{"kept", after(time.Hour, 10*time.Minute, 32), true, ""},
			{"first", after(90*time.Minute, time.Hour, 24), true, ""},
			{"second", after(90*time.Minute, time.Hour, 16), true, ""},
			{"full", after(100*time.Minute, time.Hour, 25), true, protocol.CodeBusy},
			{"sure", after(4*time.Hour, time.Hour, 64), false, ""},
			{"size", after(4*time.Hour, time.Hour, 65), true, protocol.CodeSize},
		} {
			got := ask[message.Reserved](t, d, arrived, message.Reserve{ID: r.id, Slot: r.slot, Over: r.over})
			if got.Reason.Code != r.want || got.OK != (r.want == "") {
				t.Errorf("%s: %+v, want %q", r.id, got, r.want)
			}
		}
		if away {
			c.pass(100 * time.Minute)
			d = openOver(t, dir, c.now)
			arrived = drive(t, d)
		} else {
			c.pass(time.Hour)
			if got := reservations(t, d, arrived); got != "kept first second sure " {
				t.Errorf("after an hour there are %q", got)
			}
			c.pass(40 * time.Minute)
		}
		// Job 2 has its 32 cores until two hours after noon, and leaves room for one of two.
		if got := reservations(t, d, arrived); got != "first sure " {
			t.Errorf("away %v: after 100 minutes there are %q", away, got)
		}
	}
}

// What bounds are reckoned from is told: which job it is, since when it runs, and what
// it asked for.
func TestAMachineThatSellsOverJobsTellsThem(t *testing.T) {
	c := newClock(noon)
	d := openOver(t, t.TempDir(), c.now)
	arrived := drive(t, d)
	q := ask[message.QueueChanged](t, d, arrived, message.QueueQuery{})
	want := message.RunningJob{Cores: 32, End: noon.Add(14400*time.Second - 1000*time.Second), ID: "1", Started: noon.Add(-1000 * time.Second), Wall: 4 * time.Hour}
	if len(q.Running) != 2 || q.Running[0] != want {
		t.Errorf("told %+v, want first %+v", q.Running, want)
	}
	plain := openLog(t, twoJobs(), t.TempDir(), c.now)
	if r := ask[message.Reserved](t, plain, drive(t, plain), message.Reserve{ID: "r", Slot: protocol.Slot{Start: noon.Add(time.Hour), End: noon.Add(2 * time.Hour), Cores: 32}, Over: true}); r.OK || r.Reason.Code != protocol.CodeForbidden {
		t.Errorf("a machine that keeps to the requested times answers %+v, want forbidden", r)
	}
}

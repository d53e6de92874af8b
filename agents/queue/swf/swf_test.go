package swf_test

import (
	"log/slog"
	"testing"
	"time"

	"ramp/agents/queue"
	"ramp/agents/queue/queuetest"
	"ramp/agents/queue/swf"
	"ramp/agents/workload"
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

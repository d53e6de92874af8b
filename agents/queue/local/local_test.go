package local_test

import (
	"log/slog"
	"testing"
	"time"

	"ramp/agents/queue"
	"ramp/agents/queue/local"
	"ramp/agents/queue/queuetest"
	"ramp/protocol"
)

func open(tb testing.TB, agent protocol.AgentID, dir string) *queue.Loop {
	tb.Helper()
	d, err := local.Open(local.Config{Agent: agent, Dir: dir, Now: time.Now, Slog: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func TestContract(t *testing.T) {
	queuetest.Run(t, func(tb testing.TB, dir string) queue.Driver { return open(tb, queuetest.Agent, dir) })
}

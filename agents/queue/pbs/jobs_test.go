package pbs_test

import (
	"log/slog"
	"testing"
	"time"

	"ramp/agents/queue"
	"ramp/agents/queue/queuetest"
	"ramp/protocol/message"
)

func TestJobsWithStandInsForTheCommands(t *testing.T) {
	queuetest.RunJobs(t, func(tb testing.TB, dir string) queue.Driver {
		return open(tb, standIns(tb, dir), 20*time.Second, time.Now, slog.New(slog.DiscardHandler))
	}, queuetest.Apart, queuetest.PlainSignals)
}

// A node without cores, such as one that only logs people in, sells nothing and
// breaks nothing.
func TestNodesWithoutCores(t *testing.T) {
	for list, want := range map[string]int{
		`"a":{"state":"free","resources_available":{"ncpus":0}},"b":{"state":"free","resources_available":{"ncpus":8}}`: 8,
		`"a":{"state":"free","resources_available":{"ncpus":"0"}},"b":{"state":"free","resources_available":{}}`:        0,
		`"a":{"state":"free"},"b":{"state":"free","resources_available":{"ncpus":4}}`:                                   4,
	} {
		bin := standIns(t, t.TempDir())
		script(t, bin, "pbsnodes", `echo '{"pbs_server":"south","nodes":{`+list+`}}'`)
		body, log := first(t, bin, longLimit)
		q, ok := body.(message.QueueChanged)
		if !ok || q.Capacity != want || log != "" {
			t.Errorf("%s: %+v, %q; want %d cores", list, body, log, want)
		}
	}
}

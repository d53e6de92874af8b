package order_test

import (
	"slices"
	"testing"
	"time"

	"ramp/agents/order"
	"ramp/protocol"
	"ramp/protocol/message"
)

func TestASiteThatIsLateIsToldOfOnce(t *testing.T) {
	t.Parallel()
	var told []string
	l := &order.Lateness{Reported: map[string]bool{}, Say: func(u message.RunUnit) { told = append(told, u.Launch+": "+order.LateWords(u)) }}
	defer l.End()
	end := time.Date(2199, 1, 1, 12, 0, 0, 0, time.UTC) // alarms by the real clock come not
	unit := func(launch string, stage message.LaunchStage) message.RunUnit {
		return message.RunUnit{Launch: launch, Resource: "atlas", Slot: protocol.Slot{End: end}, Status: message.LaunchStatus{Stage: stage}}
	}
	units := []message.RunUnit{unit("runs", message.StageSubmitted), unit("done", message.StageDone), unit("counted", message.StageCollecting), unit("asked", message.StageAsked)}
	l.Expect(end, units)
	l.Expect(end.Add(order.LateAfter-1), units)
	if len(told) > 0 {
		t.Fatalf("told %q before it was late", told)
	}
	l.Expect(end.Add(order.LateAfter), units)
	l.Expect(end.Add(order.LateAfter+1), units)
	want := []string{
		"runs: the slot ended at Jan 1 12:00:00 UTC, and atlas has not reported how the program ended; asking until Jan 2 12:00:00 UTC",
		"asked: the slot ended at Jan 1 12:00:00 UTC, and atlas has not reported how the program ended; asking until Jan 1 13:00:00 UTC",
	}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// The alarm tells by itself, when nothing is heard of the run.
func TestASiteThatSaysNothingIsToldOf(t *testing.T) {
	t.Parallel()
	told := make(chan string, 1)
	l := &order.Lateness{Reported: map[string]bool{}, Say: func(u message.RunUnit) { told <- u.Launch }}
	defer l.End()
	now := time.Now()
	l.Expect(now, []message.RunUnit{{Launch: "runs", Slot: protocol.Slot{End: now.Add(10*time.Millisecond - order.LateAfter)}, Status: message.LaunchStatus{Stage: message.StageSubmitted}}})
	if got := <-told; got != "runs" {
		t.Errorf("told of %q", got)
	}
}

package command_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"ramp/agents/user"
	"ramp/cmd/ramp/command"
	"ramp/protocol"
	"ramp/protocol/message"
)

func TestAWaitThatIsLongSaysForWhatAndUntilWhen(t *testing.T) {
	for _, c := range []struct {
		name string
		long bool
		want string
	}{
		{"a short one", false, ""},
		{"a long one", true, "asking the banks, until 14:05:09 UTC\n"},
	} {
		var out strings.Builder
		command.Awaiting(&out, "asking the banks", time.Date(2026, 11, 22, 14, 5, 9, 0, time.UTC), c.long)
		if out.String() != c.want {
			t.Errorf("%s: %q, want %q", c.name, out.String(), c.want)
		}
	}
}

// A bank that is stopped takes a question and never answers.
func TestAQuestionToTheBanksEnds(t *testing.T) {
	if err := command.Within(time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ends with %v", err)
	}
}

func TestACancellationEndsWithWhatBecameOfIt(t *testing.T) {
	units := func(states ...string) message.Purchase {
		p := message.Purchase{Settled: true}
		for i, s := range states {
			p.Units = append(p.Units, message.PurchasedUnit{Unit: i, State: s})
		}
		return p
	}
	for _, c := range []struct {
		name string
		p    message.Purchase
		unit int
		want int
	}{
		{"taken back", units(user.StateCancelled, user.StateCancelled), 0, 0},
		{"never settled", message.Purchase{Units: []message.PurchasedUnit{{State: "offered"}}}, 0, 0},
		{"refused", units(user.StateCancelled, user.StateSettled), 0, 4},
		{"not answered", units(user.StateCancelled, user.StateCancelling), 0, 5},
		{"one is not answered, one refused", units(user.StateCancelling, user.StateSettled), 0, 4},
		{"another unit is not answered", units(user.StateCancelled, user.StateCancelling), 1, 0},
	} {
		if got := command.CancelledCode(c.p, c.unit); got != c.want {
			t.Errorf("%s: it ends with %d, want %d", c.name, got, c.want)
		}
	}
}

// While sellers are asked to take units back, that is said, with its end, and not that the
// purchase is settled.
func TestProgressOfACancellationSaysUntilWhen(t *testing.T) {
	var out strings.Builder
	p := message.Purchase{RFQ: "job", State: user.StateSettled, Settled: true, Found: 1, Until: time.Date(2026, 11, 22, 14, 5, 9, 0, time.UTC),
		Units: []message.PurchasedUnit{{State: user.StateSettled}, {Unit: 1, State: user.StateCancelling}}}
	command.ProgressOf(&out, p)
	if want := "job: cancelling (1 resource found), until 14:05:09 UTC\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestSitesThatDoNotAnswerAreNamed(t *testing.T) {
	unit := func(resource string, state protocol.JobState) message.RunUnit {
		return message.RunUnit{Resource: resource, Status: message.LaunchStatus{Stage: message.StageSubmitted, Job: protocol.JobStatus{State: state}}}
	}
	for _, c := range []struct {
		units []message.RunUnit
		want  string
	}{
		{[]message.RunUnit{unit("atlas", protocol.JobRunning)}, "atlas has not answered"},
		{[]message.RunUnit{unit("atlas", protocol.JobExited), unit("ricc", protocol.JobRunning)}, "ricc has not answered"},
		{[]message.RunUnit{unit("atlas", protocol.JobRunning), unit("ricc", protocol.JobRunning), unit("ricc", protocol.JobRunning)}, "atlas, ricc have not answered"},
	} {
		if got := command.Unanswered(message.VerbKill, c.units...); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

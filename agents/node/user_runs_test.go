package node

import (
	"testing"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

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
		if got := silentSites(message.VerbKill, message.Run{Units: c.units}, time.Time{}); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

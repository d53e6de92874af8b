package user_test

import (
	"testing"
	"time"

	"ramp/agents/markettest"
	"ramp/protocol"
	"ramp/protocol/message"
)

// offered is a job that was offered to seller 1's federation.
func offered(t *testing.T) *listener {
	t.Helper()
	l := newListener(t)
	l.own(message.JobSubmit{ID: "j", Name: "job", Home: l.cast.ID(markettest.Seller(1)), Level: "low", Terms: message.JobTerms{Least: 1, Most: 1, Wall: time.Minute}})
	l.home(protocol.Agree, message.JobProgress{State: message.JobAuction})
	return l
}

func (l *listener) own(body protocol.Body) protocol.Output {
	return l.role.Receive(l.now, protocol.Message{Performative: protocol.Request, Sender: protocol.LocalControl, Body: body})
}

func (l *listener) home(p protocol.Performative, body protocol.Body) protocol.Output {
	return l.role.Receive(l.now, protocol.Message{
		Performative: p, Sender: l.cast.ID(markettest.Seller(1)), Protocol: protocol.ProtocolEnglish, Conversation: "j", Body: body,
	})
}

// view is the run as an output reports it last.
func view(t *testing.T, out protocol.Output) (v message.Run) {
	t.Helper()
	for _, m := range out.Send {
		if p, ok := m.Body.(message.RunProgress); ok {
			v = p.Run
		}
	}
	if v.ID == "" {
		t.Fatalf("no run in %+v", out.Send)
	}
	return v
}

// orders are the verbs of what an output sends about jobs and launches.
func orders(out protocol.Output) (list []string) {
	for _, m := range out.Send {
		switch b := m.Body.(type) {
		case message.JobOrder:
			list = append(list, string(b.Verb))
		case message.Launch:
			list = append(list, "launch")
		case message.LaunchOrder:
			list = append(list, string(b.Verb))
		}
	}
	return list
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%q, want %q", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%q, want %q", got, want)
		}
	}
}

func TestAJobThatNobodyHasIsWithdrawn(t *testing.T) {
	l := offered(t)
	out := l.own(message.RunControl{ID: "j", Verb: message.VerbKill})
	same(t, orders(out), "cancel")
	if v := view(t, out); !v.Over || v.Exit != 125 {
		t.Errorf("it is %+v", v)
	}
	l.now = l.now.Add(time.Minute) // its home did not hear of it
	same(t, orders(l.role.Wake(l.now)), "show")
	l.now = l.now.Add(time.Minute)
	same(t, orders(l.role.Wake(l.now)), "cancel")
	l.home(protocol.Inform, message.JobHistory{Progress: message.JobProgress{State: message.JobFailed, Why: "its owner has cancelled it"}})
	l.now = l.now.Add(time.Hour)
	same(t, orders(l.role.Wake(l.now)))
}

func TestAWithdrawnJobThatWasSoldIsKilledThere(t *testing.T) {
	l := offered(t)
	l.own(message.RunControl{ID: "j", Verb: message.VerbKill})
	l.home(protocol.Refuse, message.Refused(protocol.CodeExpired, "it is sold"))
	out := l.home(protocol.Inform, message.JobProgress{State: message.JobStaging, Award: 1, Site: l.cast.ID(markettest.Seller(2))})
	same(t, orders(out), "launch", "kill")
}

func TestAJobThatIsRefusedOrLostEndsItsRun(t *testing.T) {
	for _, end := range []protocol.Message{
		{Performative: protocol.Refuse, Body: message.Refused(protocol.CodeForbidden, "not you")},
		{Performative: protocol.Inform, Body: message.JobProgress{State: message.JobFailed, Why: "not you"}},
	} {
		l := newListener(t)
		out := l.own(message.JobSubmit{ID: "j", Name: "job", Home: l.cast.ID(markettest.Seller(1)), Level: "low", Terms: message.JobTerms{Least: 1, Most: 1, Wall: time.Minute}})
		if v := view(t, out); v.Over || !v.Units[0].Lost {
			t.Errorf("begins as %+v", v)
		}
		if v := view(t, l.home(end.Performative, end.Body)); !v.Over || v.Exit != 125 || v.Units[0].Status.Why != "not you" {
			t.Errorf("ends as %+v", v)
		}
	}
}

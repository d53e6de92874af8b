package launch_test

import (
	"testing"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// A batch system that never does what is asked says why, to the buyer, and the job
// goes on; the next that is told of it says it no more.
func TestTheBuyerIsToldWhatABatchSystemNeverDoes(t *testing.T) {
	s, _ := running(t)
	told := func(body protocol.Body) message.LaunchStatus {
		t.Helper()
		out, _ := s.Receive(noon.Add(time.Minute), protocol.Message{Sender: protocol.LocalQueue, Body: body})
		if len(out.Save) != 0 && body.Kind() == (message.JobRefused{}).Kind() {
			t.Errorf("%d records are saved", len(out.Save))
		}
		for _, m := range out.Send {
			if st, ok := m.Body.(message.LaunchStatus); ok && m.Receivers[0] == "ann" && m.Performative == protocol.Inform {
				return st
			}
		}
		t.Fatalf("ann is told nothing: %+v", out.Send)
		return message.LaunchStatus{}
	}
	no := protocol.Reason{Code: protocol.CodeForbidden, Note: "it can only be killed"}
	st := told(message.JobRefused{ID: "r1.1", Verb: message.SignalSuspend, Reason: no})
	if st.Why != "suspend: it can only be killed" || st.Stage != message.StageSubmitted || st.Job.State != protocol.JobRunning {
		t.Errorf("%+v", st)
	}
	st = told(message.JobChanged{ID: "r1.1", Status: protocol.JobStatus{State: protocol.JobSuspended, Started: noon}})
	if st.Why != "" {
		t.Errorf("it still says %q", st.Why)
	}
}

// A refusal of an order, such as one to suspend, says nothing of the program, which goes on;
// one that the site does not know any more has failed.
func TestARefusedOrderEndsNoProgram(t *testing.T) {
	for code, over := range map[protocol.Code]bool{
		protocol.CodeForbidden: false, protocol.CodeMalformed: false, protocol.CodeExpired: false, protocol.CodeUnknown: true,
	} {
		p := newPair(t, 1, message.Program{Command: []string{"/bin/work"}}, open())
		p.until(slotStart.Add(time.Minute))
		if s := p.run().Units[0].Status; s.Job.State != protocol.JobRunning {
			t.Fatalf("%+v", s)
		}
		var order protocol.Message
		p.tell = func(_ protocol.AgentID, m protocol.Message) {
			if o, ok := m.Body.(message.LaunchOrder); ok && o.Verb == message.VerbSuspend {
				order = m
			}
		}
		p.owner(message.VerbSuspend)
		p.tell = nil
		p.wire = nil
		p.carryOut(p.user, p.user.role.Receive(p.now, order.Reply("site1", protocol.Refuse, message.Refused(code, "no"))))
		if got := p.run().Over; got != over {
			t.Errorf("%s: over is %t", code, got)
		}
	}
}

// A batch system that takes a job at no time has said why, and the buyer hears that.
func TestTheLastRefusalOfABatchSystemIsPassedOn(t *testing.T) {
	p := newPair(t, 1, message.Program{Command: []string{"/bin/work"}}, open())
	p.batches[0].away = true
	p.until(slotStart.Add(2 * time.Hour))
	s := p.run().Units[0].Status
	if s.Stage != message.StageFailed || s.Why != "the batch system did not accept it before the end of the slot: later" {
		t.Errorf("%+v", s)
	}
}

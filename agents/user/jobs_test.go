package user_test

import (
	"encoding/json"
	"testing"
	"time"

	"ramp/agents/markettest"
	"ramp/agents/user"
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
	same(t, orders(out), "kill")
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

// sold is the home's word that seller n has the job.
func (l *listener) sold(award, n int) protocol.Output {
	return l.home(protocol.Inform, message.JobProgress{State: message.JobStaging, Award: award, Site: l.cast.ID(markettest.Seller(n))})
}

// row is the record of the job in an output.
func row(t *testing.T, out protocol.Output) (r message.JobRow) {
	t.Helper()
	for _, s := range out.Save {
		if s.Table == user.TableJobs {
			if err := json.Unmarshal(s.Value, &r); err != nil {
				t.Fatal(err)
			}
		}
	}
	return r
}

func TestAKilledJobThatIsGivenBackIsNotRun(t *testing.T) {
	l := offered(t)
	same(t, orders(l.sold(1, 2)), "launch")
	l.own(message.RunControl{ID: "j", Verb: message.VerbKill})
	l.home(protocol.Inform, message.JobProgress{State: message.JobAuction, Award: 1})
	l.now = l.now.Add(time.Minute)
	out := l.role.Wake(l.now)
	if got := orders(out); len(got) == 0 || got[len(got)-1] != "cancel" {
		t.Errorf("its home is told %q", got)
	}
	same(t, orders(l.sold(2, 3)), "kill")
}

func TestAJobThatIsGivenBackIsSoldAgain(t *testing.T) {
	l := offered(t)
	l.sold(1, 2)
	if v := view(t, l.home(protocol.Inform, message.JobProgress{State: message.JobAuction, Award: 1})); v.Over || !v.Units[0].Lost {
		t.Errorf("given back, it is %+v", v)
	}
	out := l.role.Receive(l.now, protocol.Message{ // too late
		Performative: protocol.Refuse, Sender: l.cast.ID(markettest.Seller(2)), Protocol: protocol.ProtocolRequest, Conversation: "j", InReplyTo: "launch-0",
		Body: message.Refused(protocol.CodeUnknown, "you have no launch j.1 here"),
	})
	if len(out.Save) > 0 {
		t.Errorf("saves %+v", out.Save)
	}
	same(t, orders(l.sold(2, 3)), "launch")
	same(t, orders(l.sold(1, 2))) // repeated
}

func TestAJobHasTheCoresThatItGot(t *testing.T) {
	l := offered(t)
	if v := view(t, l.sold(1, 2)); v.Units[0].Slot.Cores != 1 {
		t.Errorf("before it begins: %+v", v.Units[0].Slot)
	}
	out := l.home(protocol.Inform, message.JobProgress{State: message.JobRunning, Award: 1, Site: l.cast.ID(markettest.Seller(2)), Got: 3})
	if v := view(t, out); v.Units[0].Slot.Cores != 3 {
		t.Errorf("with three: %+v", v.Units[0].Slot)
	}
}

func TestAHomeThatForgotAJobEndsIt(t *testing.T) {
	for _, kill := range []bool{false, true} {
		l := offered(t)
		if kill {
			l.own(message.RunControl{ID: "j", Verb: message.VerbKill})
		}
		r := row(t, l.home(protocol.Refuse, message.Refused(protocol.CodeUnknown, "no job j here")))
		if r.Refused != protocol.CodeUnknown {
			t.Errorf("killed %t: it is %+v", kill, r)
		}
		r.Refused = "" // as it was read before
		if out := l.own(message.JobAsk{Row: r}); len(out.Send) > 0 {
			t.Errorf("killed %t: asked again: %+v", kill, out.Send)
		}
	}
}

func TestAnEndedJobStaysEnded(t *testing.T) {
	l := offered(t)
	l.sold(1, 2)
	r := row(t, l.home(protocol.Inform, message.JobProgress{State: message.JobDone, Award: 1, Site: l.cast.ID(markettest.Seller(2))}))
	l.own(message.JobAsk{Row: r})
	same(t, orders(l.sold(2, 3)))
}

// Journals of before have jobs without runs.
func TestAJobWithoutARunGetsOne(t *testing.T) {
	l := newListener(t)
	b, err := json.Marshal(message.JobRow{ID: "j", Name: "job", Home: l.cast.ID(markettest.Seller(1)), Level: "low", Known: true})
	if err != nil {
		t.Fatal(err)
	}
	var out protocol.Output
	l.role, out, err = user.New(user.Config{Credential: l.cast.Credential(markettest.User), Trust: l.cast.Trust}, markettest.Store{user.TableJobs: {"j": b}}, l.now)
	if err != nil {
		t.Fatal(err)
	}
	if v := view(t, out); v.Over || !v.Units[0].Lost {
		t.Errorf("it is %+v", v)
	}
	same(t, orders(l.own(message.RunControl{ID: "j", Verb: message.VerbKill})), "cancel")
}

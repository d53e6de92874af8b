package launch_test

import (
	"testing"
	"time"

	"ramp/agents/resource/launch"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// oneUnit is a seller that has sold one unit.
type oneUnit struct{ unit reserve.Unit }

func (o *oneUnit) Unit(protocol.ContractID, int) (reserve.Unit, bool) { return o.unit, true }

type noTables struct{ protocol.Tables }

func (noTables) Each(string, func(string, []byte) error) error { return nil }

// fresh is a site with one unit, in which nothing was launched.
func fresh(t *testing.T) (*launch.Site, *oneUnit) {
	t.Helper()
	sold := &oneUnit{reserve.Unit{
		User: "ann", Reservation: "r1", State: reserve.ClaimSold, Units: 1, Unpaid: true,
		Slot: protocol.Slot{Start: noon, End: noon.Add(time.Hour), Cores: 2},
	}}
	s, _, err := launch.New(launch.Config{Self: "atlas", Policy: launch.Policy{
		Accounts: map[protocol.AgentID]launch.Account{launch.Everybody: {User: "guest", Commands: true}},
	}}, sold, noTables{}, noon)
	if err != nil {
		t.Fatal(err)
	}
	return s, sold
}

// running is a site in whose one unit a program runs.
func running(t *testing.T) (*launch.Site, *oneUnit) {
	t.Helper()
	s, sold := fresh(t)
	s.Receive(noon, protocol.Message{Performative: protocol.Request, Sender: "ann", Receivers: []protocol.AgentID{"atlas"},
		Body: message.Launch{Contract: "c", ID: "l1", Command: []string{"/bin/work"}}})
	s.Receive(noon, protocol.Message{Sender: protocol.LocalFiles, Body: message.Prepared{Job: "r1.1"}})
	s.Wake(noon)
	stands(s, noon, protocol.JobStatus{State: protocol.JobRunning, Started: noon})
	return s, sold
}

func stands(s *launch.Site, now time.Time, status protocol.JobStatus) {
	s.Receive(now, protocol.Message{Sender: protocol.LocalQueue, Body: message.JobChanged{ID: "r1.1", At: now, Status: status}})
}

// kills is how often an Output asks for the end of a job.
func kills(out protocol.Output) int {
	n := 0
	for _, m := range out.Send {
		if s, ok := m.Body.(message.Signal); ok && s.Verb == message.SignalKill && s.ID == "r1.1" {
			n++
		}
	}
	return n
}

func TestUnitIsNotOverWhileAnotherLaunchMayFollow(t *testing.T) {
	s, _ := running(t)
	failed := protocol.JobStatus{State: protocol.JobExited, Exit: 3, Started: noon, Ended: noon.Add(time.Minute), Usage: protocol.Usage{CPU: time.Minute, Wall: time.Minute}}
	stands(s, noon.Add(time.Minute), failed)
	if got, ok := s.Used(noon.Add(2*time.Minute), "r1"); !ok || got.State != protocol.JobRunning || got.Usage != failed.Usage {
		t.Fatalf("in the slot it stands as %+v, %t; want it to run, with what was used", got, ok)
	}
	if got, ok := s.Used(noon.Add(time.Hour), "r1"); !ok || got != failed {
		t.Fatalf("after the slot it stands as %+v, %t; want %+v", got, ok, failed)
	}
	if got, ok := s.Used(noon.Add(time.Hour), "r2"); ok {
		t.Fatalf("nothing was launched in r2, and it stands as %+v", got)
	}
}

// A buyer who has had its cores cannot undo that by a launch that the site cannot begin, nor by
// one that comes so late that nobody could.
func TestALaunchThatNeverBeginsUndoesNothing(t *testing.T) {
	ended := protocol.JobStatus{State: protocol.JobExited, Started: noon, Ended: noon.Add(time.Minute), Usage: protocol.Usage{CPU: time.Minute, Wall: time.Minute}}
	again := func(s *launch.Site, at time.Time, id string) {
		s.Receive(at, protocol.Message{Performative: protocol.Request, Sender: "ann", Receivers: []protocol.AgentID{"atlas"},
			Body: message.Launch{Contract: "c", ID: id, Command: []string{"/bin/work"}}})
	}
	end := noon.Add(time.Hour)
	for name, at := range map[string]time.Time{"late": end.Add(-time.Millisecond), "in time": noon.Add(30 * time.Minute)} {
		s, _ := running(t)
		stands(s, noon.Add(time.Minute), ended)
		again(s, at, "l2")
		s.Receive(end, protocol.Message{Sender: protocol.LocalFiles, Body: message.Prepared{Job: "r1.2"}})
		s.Wake(end)
		if got, ok := s.Used(end, "r1"); !ok || got != ended {
			t.Errorf("%s: after the slot it stands as %+v, %t; want %+v", name, got, ok, ended)
		}
	}
	for name, c := range map[string]struct {
		at    time.Time
		fault bool
	}{"late": {end.Add(-time.Second), false}, "in time": {noon, true}} {
		s, _ := fresh(t)
		again(s, c.at, "l1")
		s.Receive(end, protocol.Message{Sender: protocol.LocalFiles, Body: message.Prepared{Job: "r1.1"}})
		s.Wake(end)
		if got, ok := s.Used(end, "r1"); ok != c.fault || ok && got.State != protocol.JobLost {
			t.Errorf("%s, alone: %+v, %t; want that it counts: %t", name, got, ok, c.fault)
		}
	}
}

func TestWhatRunsEndsWithItsContract(t *testing.T) {
	s, sold := running(t)
	if n := kills(s.Stop(noon.Add(time.Minute), "r1")); n != 0 {
		t.Fatalf("killed %d times while its unit is not over", n)
	}
	sold.unit.Reported = true
	if n := kills(s.Stop(noon.Add(time.Minute), "r1")); n != 1 {
		t.Fatalf("killed %d times when its unit was reported, want once", n)
	}
	if n := kills(s.Wake(noon.Add(2 * time.Minute))); n != 1 {
		t.Fatalf("killed %d times when it is asked about, want once: the first word may be lost", n)
	}
	out, _ := s.Receive(noon.Add(3*time.Minute), protocol.Message{Performative: protocol.Request, Sender: "ann", Receivers: []protocol.AgentID{"atlas"},
		Body: message.Launch{Contract: "c", ID: "l2", Command: []string{"/bin/work"}}})
	if len(out.Send) != 1 || out.Send[0].Performative != protocol.Refuse {
		t.Fatalf("a launch in a unit that was reported is answered with %+v, want a refusal", out.Send)
	}
}

package launch_test

import (
	"testing"
	"time"

	"ramp/agents/resource/launch"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// buyers has sold one unit to each buyer, whose name is the contract.
type buyers struct{}

func (buyers) Unit(id protocol.ContractID, unit int) (reserve.Unit, bool) {
	return reserve.Unit{
		User: protocol.AgentID(id), Reservation: "r-" + string(id), State: reserve.ClaimSold, Units: 1,
		Slot: protocol.Slot{Start: noon, End: noon.Add(time.Hour), Cores: 1},
	}, unit == 0
}

// One buyer at a time has an account of a pool, until its outputs are taken from it. A
// third buyer waits; the program's HOME is not the account's.
func TestOneBuyerAtATimeHasAnAccountOfAPool(t *testing.T) {
	s, _, err := launch.New(launch.Config{Self: "atlas", Root: "/jobs", Policy: launch.Policy{
		Accounts: map[protocol.AgentID]launch.Account{launch.Everybody: {User: "pool", Pool: []string{"g1", "g2"}, Commands: true}},
	}}, buyers{}, noTables{}, noon)
	if err != nil {
		t.Fatal(err)
	}
	at := noon
	runs := map[string]message.Job{}
	note := func(out protocol.Output) {
		for _, m := range out.Send {
			if q, ok := m.Body.(message.Submit); ok {
				runs[q.Job.ID] = q.Job
			}
		}
	}
	begin := func(buyer, id string) {
		s.Receive(at, protocol.Message{Performative: protocol.Request, Sender: protocol.AgentID(buyer), Body: message.Launch{Contract: protocol.ContractID(buyer), ID: id, Command: []string{"/bin/job"}}})
		job := "r-" + buyer + ".1"
		out, _ := s.Receive(at, local("atlas", protocol.LocalFiles, message.Prepared{Job: job}))
		note(out)
		note(s.Wake(at))
		if runs[job].ID != "" {
			s.Receive(at, local("atlas", protocol.LocalQueue, message.JobChanged{ID: job, At: at, Status: protocol.JobStatus{State: protocol.JobRunning, Started: at}}))
		}
	}
	begin("ann", "1")
	begin("bob", "1")
	begin("eve", "1")
	if a, b := runs["r-ann.1"], runs["r-bob.1"]; a.User != "g1" || b.User != "g2" || a.Home != "/jobs/r-ann.1/tmp" {
		t.Fatalf("ann's job: %+v, bob's: %+v", a, b)
	}
	if e, ok := runs["r-eve.1"]; ok {
		t.Fatalf("eve's begins as %s while both accounts are taken", e.User)
	}
	ended := protocol.JobStatus{State: protocol.JobExited, Started: at, Ended: at}
	s.Receive(at, local("atlas", protocol.LocalQueue, message.JobChanged{ID: "r-ann.1", At: at, Status: ended}))
	at = at.Add(2 * time.Second)
	if note(s.Wake(at)); runs["r-eve.1"].ID != "" {
		t.Fatal("eve's begins before ann's outputs are taken from the account")
	}
	s.Receive(at, local("atlas", protocol.LocalFiles, message.Collected{Job: "r-ann.1"}))
	at = at.Add(2 * time.Second)
	if note(s.Wake(at)); runs["r-eve.1"].User != "g1" {
		t.Errorf("then eve's job is %+v, want it to begin as g1", runs["r-eve.1"])
	}
}

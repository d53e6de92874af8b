package launch_test

import (
	"slices"
	"testing"
	"time"

	"ramp/agents/resource/launch"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// twoPeers are the units of a run, the second of them at an address.
func twoPeers(second string) []message.Peer {
	list := []message.Peer{{Unit: 0, Address: "one.example"}, {Unit: 1, Address: second}}
	for i := range list {
		list[i].Start, list[i].End, list[i].Cores = slotStart, slotEnd, 2
	}
	return list
}

// A unit that was bought again is the only one of its contract, and runs as one of
// several. What a site is told last before the slot begins is where the others run.
func TestALaunchRunsAsOneOfSeveral(t *testing.T) {
	for name, c := range map[string]struct {
		units int
		place message.Place
		unit  string
	}{
		"a unit that was bought again":         {1, message.Place{Number: 2, Units: 2}, "RAMP_UNIT=2"},
		"one of the contract that others have": {2, message.Place{}, "RAMP_UNIT=1"},
	} {
		t.Run(name, func(t *testing.T) {
			sold := byUnit{0, &oneUnit{reserve.Unit{
				User: buyerID, Reservation: "r", State: reserve.ClaimSold, Units: c.units, Slot: protocol.Slot{Start: slotStart, End: slotEnd, Cores: 2}}}}
			s, _, err := launch.New(launch.Config{Self: "site", Address: "site.example", Root: "/jobs", Policy: open()}, sold, disk{}, noon)
			if err != nil {
				t.Fatal(err)
			}
			ask := func(at time.Time, body protocol.Body) protocol.Output {
				out, _ := s.Receive(at, protocol.Message{Performative: protocol.Request, Sender: buyerID, Body: body})
				return out
			}
			join := func(at time.Time, second string) {
				ask(at, message.LaunchOrder{Contract: contract, ID: "l", Verb: message.VerbJoin, Peers: twoPeers(second)})
			}
			ask(noon, message.Launch{Contract: contract, ID: "l", Command: []string{"/bin/job"}, Place: c.place})
			s.Receive(noon, local("site", protocol.LocalFiles, message.Prepared{Job: "r.1"}))
			if out := s.Wake(slotStart); len(out.Send) > 0 {
				t.Fatalf("it begins before it knows where the others are: %+v", out.Send)
			}
			join(noon, "old.example")
			join(noon.Add(time.Second), "new.example")
			env := submitted(t, s.Wake(slotStart))
			join(slotStart, "late.example")
			again := submitted(t, s.Wake(slotStart.Add(time.Minute)))
			for _, want := range []string{c.unit, "RAMP_UNITS=2", "RAMP_UNIT_2_ADDRESS=new.example"} {
				if !slices.Contains(env, want) || !slices.Equal(env, again) {
					t.Errorf("no %s in %q, or not in %q", want, env, again)
				}
			}
		})
	}
}

// submitted is the environment of the job that the batch system is asked to run.
func submitted(t *testing.T, out protocol.Output) []string {
	t.Helper()
	for _, m := range out.Send {
		if q, ok := m.Body.(message.Submit); ok {
			return q.Job.Env
		}
	}
	t.Fatalf("nothing is submitted: %+v", out.Send)
	return nil
}

package launch_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"ramp/agents/resource/launch"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// hours is a seller whose contracts each have sold one unit of an hour.
type hours struct{}

func (hours) Unit(id protocol.ContractID, unit int) (reserve.Unit, bool) {
	return reserve.Unit{
		User: "ann", Reservation: "r" + string(id), State: reserve.ClaimSold, Units: 1,
		Slot: protocol.Slot{Start: noon, End: noon.Add(time.Hour), Cores: 1},
	}, unit == 0
}

// remembered is a site with so many launches that are over, in units of 16.
func remembered(b *testing.B, n int) *launch.Site {
	b.Helper()
	d := disk{launch.Table: {}}
	for i := range n {
		unit, number := fmt.Sprintf("c%05d", i/16), i%16+1
		value, err := json.Marshal(map[string]any{
			"user": "ann", "contract": unit, "units": 1, "launch": fmt.Sprintf("l%d", number), "number": number, "asked": "x", "reservation": "r" + unit,
			"slot": protocol.Slot{Start: noon, End: noon.Add(time.Hour), Cores: 1}, "argv": []string{"/bin/work"}, "stage": message.StageDone,
			"status": protocol.JobStatus{State: protocol.JobExited, Started: noon, Ended: noon.Add(time.Second)}, "keep": noon.Add(24 * time.Hour),
		})
		if err != nil {
			b.Fatal(err)
		}
		d[launch.Table][fmt.Sprintf("r%s.%d", unit, number)] = value
	}
	s, _, err := launch.New(launch.Config{Self: "atlas", Policy: open()}, hours{}, d, noon)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// One launch from its request to its outputs, at a site that remembers 10,000.
func BenchmarkLaunchBesideManyOthers(b *testing.B) {
	s := remembered(b, 10_000)
	now := noon.Add(time.Minute)
	for i := 0; b.Loop(); i++ {
		unit := fmt.Sprintf("d%d", i)
		id := "r" + unit + ".1"
		s.Receive(now, protocol.Message{Performative: protocol.Request, Sender: "ann", Body: message.Launch{Contract: protocol.ContractID(unit), ID: "l1", Command: []string{"/bin/work"}}})
		s.Receive(now, local("atlas", protocol.LocalFiles, message.Prepared{Job: id}))
		s.Wake(now)
		for _, state := range []protocol.JobState{protocol.JobRunning, protocol.JobExited} {
			status := protocol.JobStatus{State: state, Started: now}
			if state.Over() {
				status.Ended = now
			}
			s.Receive(now, local("atlas", protocol.LocalQueue, message.JobChanged{ID: id, At: now, Status: status}))
			s.Used(now, "r"+unit)
			s.Wake(now)
		}
		s.Receive(now, local("atlas", protocol.LocalFiles, message.Collected{Job: id}))
	}
}

package launch_test

import (
	"testing"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// A kill that the batch system does not let the agent do is told to the buyer once, and
// tried again once a minute.
func TestAKillThatIsForbiddenIsToldOnce(t *testing.T) {
	s, _ := running(t)
	now := noon.Add(time.Minute)
	refuse := func(out protocol.Output) (kills, told int) {
		for _, m := range out.Send {
			q, ok := m.Body.(message.Signal)
			if !ok {
				continue
			}
			kills++
			answer, _ := s.Receive(now, protocol.Message{Sender: protocol.LocalQueue, Body: message.JobRefused{
				ID: q.ID, Verb: q.Verb, Reason: protocol.Reason{Code: protocol.CodeForbidden, Note: "Access denied"},
			}})
			for _, m := range answer.Send {
				if st, ok := m.Body.(message.LaunchStatus); ok && st.Why == "kill: Access denied" {
					told++
				}
			}
		}
		return kills, told
	}
	out, _ := s.Receive(now, protocol.Message{Sender: "ann", Performative: protocol.Request, Protocol: protocol.ProtocolRequest,
		Body: message.LaunchOrder{Contract: "c", Unit: 0, ID: "l1", Verb: message.VerbKill}})
	kills, told := refuse(out)
	for end := now.Add(10 * time.Minute); now.Before(end); now = now.Add(time.Second) {
		k, n := refuse(s.Wake(now))
		kills, told = kills+k, told+n
	}
	if kills < 9 || kills > 11 || told != 1 {
		t.Errorf("in ten minutes it is tried %d times, and told %d times", kills, told)
	}
}

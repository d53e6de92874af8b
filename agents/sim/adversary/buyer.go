package adversary

import (
	"fmt"
	"time"

	"ramp/agents"
	"ramp/agents/sim"
	"ramp/agents/sim/market"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

// purse is what a dishonest user has: as much as it can spend.
const purse = 1_000_000_000 * protocol.Credit

// orderGap is the mean time between two orders of a dishonest user.
const orderGap = 10 * time.Minute

// buyer puts an honest user that orders again and again onto the stage, with a
// bend. bend may be nil.
func buyer(s *market.Stage, name string, money protocol.Credits, bend func(*bent)) *sim.Host {
	h := quietBuyer(s, name, money, bend)
	orders := 0
	s.Often(orderGap, func() {
		orders++
		id := fmt.Sprintf("%s-%d", name, orders)
		s.World().Tell(h, protocol.Message{
			Performative: protocol.Request, Sender: protocol.LocalControl, Receivers: []protocol.AgentID{h.ID()}, Protocol: protocol.ProtocolControl,
			Body: message.Buy{ID: id, Name: id, Document: s.Document(h.Now()), Options: message.Options{Rounds: 1 + s.Chance.N(3)}},
		})
	})
	return h
}

// quietBuyer is a buyer that is given no orders.
func quietBuyer(s *market.Stage, name string, money protocol.Credits, bend func(*bent)) *sim.Host {
	cred := s.Cast().Credential(name)
	cfg := user.Config{Credential: cred, Trust: s.Cast().Trust, Terms: []protocol.Terms{s.Cast().Terms()}}
	return s.Add(sim.Spec{
		Name: name, Credential: cred, HearPresence: true,
		Load: func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
			role, out, err := user.New(cfg, t, now)
			if err != nil || bend == nil {
				return role, out, err
			}
			b := &bent{Role: role, own: cred}
			bend(b)
			return b, out, nil
		},
	}, money)
}

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

// purse is a dishonest user's money: more than it can spend.
const purse = 1_000_000_000 * protocol.Credit

// orderGap is the mean time between two orders of a dishonest user.
const orderGap = 10 * time.Minute

// buyer adds an honest user that orders again and again, modified by tamper, which may be nil.
func buyer(s *market.Stage, name string, money protocol.Credits, tamper func(*tampered)) *sim.Host {
	h := quietBuyer(s, name, money, tamper)
	orders := 0
	s.Often(orderGap, func() {
		orders++
		id := fmt.Sprintf("%s-%d", name, orders)
		s.World().Order(h, message.Buy{ID: id, Name: id, Document: s.Document(h.Now()), Options: message.Options{Rounds: 1 + s.Chance.N(3)}})
	})
	return h
}

// quietBuyer adds a buyer without orders.
func quietBuyer(s *market.Stage, name string, money protocol.Credits, tamper func(*tampered)) *sim.Host {
	cred := s.Cast().Credential(name)
	cfg := user.Config{Credential: cred, Trust: s.Cast().Trust, Terms: []protocol.Terms{s.Cast().Terms()}}
	return s.Add(sim.Spec{
		Name: name, Credential: cred, HearPresence: true,
		Load: func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
			role, out, err := user.New(cfg, t, now)
			return modified(role, cred, tamper), out, err
		},
	}, money)
}

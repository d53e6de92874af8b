package adversary

import (
	"time"

	"ramp/agents"
	"ramp/agents/resource"
	"ramp/agents/resource/pricing"
	"ramp/agents/sim"
	"ramp/agents/sim/market"
	"ramp/protocol"
)

// cheap undersells every honest site, so that what is wrong with its seller meets
// every auction.
func cheap() pricing.Band { return pricing.Band{Start: 9 * protocol.Credit, Min: 4 * protocol.Credit} }

// sellerCores are what a dishonest seller has: as much as the largest honest site.
const sellerCores = 1024

// seller puts an honest seller onto the stage, with a bend. bend may be nil.
func seller(s *market.Stage, name string, price pricing.Band, bend func(*bent)) *sim.Host {
	cred := s.Cast().Credential(name)
	cfg := resource.Config{
		TrustJournal: true,
		Credential:   cred, Price: price, Terms: []protocol.Terms{s.Cast().Terms()},
		Properties: protocol.Properties{OS: "Linux", Arch: "x86_64", Cores: sellerCores},
		Heartbeat:  s.Config().Heartbeat, TTL: 3 * s.Config().Heartbeat,
	}
	return s.Add(sim.Spec{
		Name: name, Credential: cred, HearCalls: true,
		Locals: map[protocol.AgentID]sim.Local{protocol.LocalQueue: s.Machine(cred.ID, sellerCores)},
		Load: func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
			role, out, err := resource.New(cfg, t, now)
			if err != nil || bend == nil {
				return role, out, err
			}
			b := &bent{Role: role, own: cred}
			bend(b)
			return b, out, nil
		},
	}, 0)
}

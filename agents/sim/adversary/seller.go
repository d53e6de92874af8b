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

// cheap is below the price of every honest site, so that the dishonest seller takes part in
// every auction.
func cheap() pricing.Band { return pricing.Band{Start: 9 * protocol.Credit, Min: 4 * protocol.Credit} }

// sellerCores is the size of a dishonest seller: that of the largest honest site.
const sellerCores = 1024

// seller adds an honest seller, modified by tamper, which may be nil.
func seller(s *market.Stage, name string, price pricing.Band, tamper func(*tampered)) *sim.Host {
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
			return modified(role, cred, tamper), out, err
		},
	}, 0)
}

package adversary

import (
	"fmt"
	"math/rand/v2"
	"time"

	"ramp/agents"
	"ramp/agents/resource"
	"ramp/agents/sim"
	"ramp/agents/sim/market"
	"ramp/protocol"
	"ramp/protocol/identity"
)

// lifetime of the foreign authority: longer than any simulation.
const lifetime = 30 * 365 * 24 * time.Hour

// foreign is a seller that also floods everybody, with a credential in the bank's name from
// an authority that nobody trusts. Nobody may accept any of its messages.
func foreign(s *market.Stage) {
	cred, err := foreignCredential(s)
	if err != nil {
		panic(fmt.Sprintf("adversary: %s: %v", s.Name, err))
	}
	cfg := resource.Config{
		TrustJournal: true, // no bank answers this site
		Credential:   cred, Price: cheap(), Terms: []protocol.Terms{s.Cast().Terms()},
		Properties: protocol.Properties{OS: "Linux", Arch: "x86_64", Cores: sellerCores},
	}
	h := s.Add(sim.Spec{
		Name: s.Name, Credential: cred, HearCalls: true, HearPresence: true,
		Locals: map[protocol.AgentID]sim.Local{protocol.LocalQueue: s.Machine(cred.ID, sellerCores)},
		Load: func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
			return resource.New(cfg, t, now)
		},
	}, 0)
	s.Often(10*time.Minute, func() {
		for i := range 12 {
			playBack(s, h, noise(s, nil, i))
		}
	})
}

func foreignCredential(s *market.Stage) (*identity.Credential, error) {
	seed := [32]byte{3}
	copy(seed[1:], s.Name)
	ca, err := identity.NewCA("Foreign CA", market.Dawn.AddDate(-1, 0, 0), lifetime, rand.NewChaCha8(seed))
	if err != nil {
		return nil, err
	}
	return ca.Credential(market.BankName, market.Dawn.AddDate(0, -1, 0), lifetime/2, rand.NewChaCha8(seed))
}

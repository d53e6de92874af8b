package market

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"ramp/agents/sim"
	"ramp/protocol"
)

// Adversary puts one dishonest party, or several that belong together, onto a
// stage. It is called once for each that Config.Adversaries asks for.
//
// A market knows no adversary by itself: a Cast brings them, by kind, and package
// adversary has all there are. Whatever an adversary does, every check of honest
// parties and of the bank must hold; its own journal is not looked at.
type Adversary func(s *Stage)

// MaxAdversaries bounds the adversaries of one kind in a market.
const MaxAdversaries = 1000

// Stage is where an adversary acts: what it may know of a market, and do to it.
type Stage struct {
	Name   string     // its own, unlike all others
	Chance sim.Chance // its own
	market *Market
}

// rogue is a dishonest party.
type rogue struct {
	host  *sim.Host
	money protocol.Credits
}

// World is where it acts.
func (s *Stage) World() *sim.World { return s.market.World }

// Cast has everybody's credentials; an adversary uses its own ones.
func (s *Stage) Cast() *Cast { return s.market.Cast }

// Config is the market's.
func (s *Stage) Config() Config { return s.market.cfg }

// Add puts a party of the adversary's into the market. It has an account with
// this much money, and its host never fails.
func (s *Stage) Add(spec sim.Spec, money protocol.Credits) *sim.Host {
	spec.Steady = true
	h := s.market.World.Add(spec)
	s.market.rogues = append(s.market.rogues, rogue{h, money})
	s.market.parties[h.ID()] = partyRogue
	return h
}

// Machine is a batch system that never fails, with this many cores and no jobs of
// local users.
func (s *Stage) Machine(agent protocol.AgentID, cores int) *Batch {
	return NewBatch(agent, NewCluster(cores, 0, sim.Range{}, s.Chance, Dawn), s.Chance, sim.Span{Least: time.Millisecond, Most: time.Millisecond}, 0)
}

// Document draws what an honest user might ask for now.
func (s *Stage) Document(now time.Time) []byte {
	doc, err := draw(s.Chance, now, s.market.cfg.Units, protocol.ModeOnReservation, false)
	if err != nil {
		panic(fmt.Sprintf("market: document of %s: %v", s.Name, err))
	}
	return doc
}

// Often lets an adversary act again and again, at random, while there are faults.
func (s *Stage) Often(mean time.Duration, act func()) {
	s.market.World.After(s.Chance.Waiting(mean), func() {
		if s.market.calm {
			return
		}
		act()
		s.Often(mean, act)
	})
}

// Parties are the honest sites, users and the bank.
func (s *Stage) Parties() []protocol.AgentID {
	list := append(s.Sites(), s.Cast().ID(BankName))
	for i := range s.market.cfg.Users {
		list = append(list, s.Cast().ID(UserName(i+1)))
	}
	return list
}

// Sites are the honest sites.
func (s *Stage) Sites() []protocol.AgentID {
	var list []protocol.AgentID
	for i := range s.market.cfg.Resources {
		list = append(list, s.Cast().ID(SiteName(i+1)))
	}
	return list
}

// addRogues puts the adversaries into the market, kind by kind.
func (m *Market) addRogues() {
	for k, kind := range slices.Sorted(maps.Keys(m.cfg.Adversaries)) {
		act := m.Cast.Adversaries[kind]
		if act == nil {
			panic(fmt.Sprintf("market: adversary %q: the cast has none", kind))
		}
		for n := range m.cfg.Adversaries[kind] {
			act(&Stage{
				Name: fmt.Sprintf("%s%d", kind, n+1), market: m,
				Chance: sim.NewChance(m.cfg.Seed, streamRogue+uint64(k*MaxAdversaries+n)),
			})
		}
	}
}

// party is what somebody in a market is; zero is the bank.
type party int

const (
	partySite  party = 1
	partyUser  party = 2
	partyRogue party = 3
)

// honest reports whether an agent is one of the market's own parties.
func (m *Market) honest(id protocol.AgentID) bool { return m.parties[id] != partyRogue }

// Tell gives a user's agent an order of its owner's. It reports false while the
// agent is down.
func (m *Market) Tell(u *User, body protocol.Body) bool { return m.tell(u, body) }

package markettest

import (
	"time"

	"ramp/agents"
	"ramp/agents/bank"
	"ramp/agents/resource"
	"ramp/agents/resource/pricing"
	"ramp/agents/sim"
	"ramp/agents/user"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// addParties starts everybody. First presences leave after a save, when all are there to hear them.
func (m *Market) addParties() {
	for _, name := range append(m.cast.names(), Stranger) {
		m.world.Add(sim.Spec{
			Name: name, Credential: m.cast.Credential(name), HearPresence: name != Stranger, HearCalls: name != Stranger, Late: m.cfg.Late,
			Load: func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
				return m.load(name, t, now)
			},
			Locals: m.locals(name),
		})
	}
}

func (m *Market) load(name string, t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
	switch name {
	case User:
		return user.New(user.Config{Credential: m.cast.Credential(User), Trust: m.cast.Trust, Terms: []protocol.Terms{m.cast.Terms()}}, t, now)
	case Bank:
		return bank.New(bank.Config{ID: m.cast.ID(Bank), Currencies: []string{m.cast.Terms().Currency}, Heartbeat: heartbeat}, t, now)
	case Stranger:
		return silent{}, protocol.Output{}, nil
	}
	return resource.New(m.cfg.resource(m.cast, name), t, now)
}

// locals are a party's correspondents: the user's owner, the bank's history, a seller's
// batch system.
func (m *Market) locals(name string) map[protocol.AgentID]sim.Local {
	switch name {
	case User:
		return map[protocol.AgentID]sim.Local{protocol.LocalControl: answers(func(_ time.Time, msg protocol.Message) protocol.Body {
			m.Progress = append(m.Progress, msg.Body.(message.Progress))
			return nil
		})}
	case Bank:
		return map[protocol.AgentID]sim.Local{protocol.LocalHistory: answers(m.sold)}
	case Stranger:
		return nil
	}
	b := &Batch{Cores: m.cfg.Cores, Slots: map[string]protocol.Slot{}}
	m.batches[name] = b
	return map[protocol.AgentID]sim.Local{protocol.LocalQueue: answers(b.answer)}
}

// sold looks up in the bank's store what a seller has sold.
func (m *Market) sold(_ time.Time, msg protocol.Message) protocol.Body {
	q, ok := msg.Body.(message.SoldLookup)
	if !ok {
		return nil
	}
	sold, err := ledger.SoldIn(m.Store(Bank), q.Seller, q.Query.Ends)
	must(m.tb, err)
	return message.SoldList{Sold: sold, Complete: true}
}

// silent is the role of a stranger.
type silent struct{}

func (silent) Receive(time.Time, protocol.Message) protocol.Output { return protocol.Output{} }
func (silent) Wake(time.Time) protocol.Output                      { return protocol.Output{} }

// heartbeat is the time between presences: long, as each costs a message to all.
const heartbeat = time.Minute

func (c Config) resource(cast *Cast, name string) resource.Config {
	cfg := resource.Config{
		Credential: cast.Credential(name),
		Properties: protocol.Properties{OS: "Linux", Arch: "x86_64", Cores: c.Cores},
		Price:      pricing.Band{Start: 40 * protocol.Credit, Min: 20 * protocol.Credit},
		Terms:      []protocol.Terms{cast.Terms()}, Heartbeat: heartbeat, TTL: 5 * heartbeat,
		Cancellation: reserve.CancelPolicy{Allowed: true, Before: time.Minute, FeePerMille: 100},
	}
	if c.Site != nil {
		c.Site(name, &cfg)
	}
	return cfg
}

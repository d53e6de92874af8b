package markettest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"ramp/agents"
	"ramp/agents/bank"
	"ramp/agents/resource"
	"ramp/agents/resource/pricing"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/reserve"
)

// party is one agent: its role while it lives, and the state that outlives it.
type party struct {
	name   string
	store  Store
	batch  *Batch // of a seller
	open   codec.Opener
	skew   time.Duration // its clock, against the market's
	role   agents.Role   // nil: down
	life   int           // how often it was started
	alarm  time.Time     // zero: none; by its own clock
	output int           // Outputs so far, over all lives
}

func newParty(c *Cast, name string, cores int) *party {
	p := &party{name: name, store: Store{}, open: codec.NewOpener(c.Trust, 64)}
	if name != User && name != Bank {
		p.batch = &Batch{Cores: cores, Slots: map[string]protocol.Slot{}}
	}
	return p
}

func (m *Market) load(p *party) (agents.Role, protocol.Output, error) {
	now := m.clock(p)
	switch p.name {
	case User:
		return user.New(m.cfg.user(m.cast), p.store, now)
	case Bank:
		cfg := bank.Config{ID: m.cast.ID(Bank), Currencies: []string{m.cast.Terms().Currency}, Heartbeat: heartbeat}
		return bank.New(cfg, p.store, now)
	}
	return resource.New(m.cfg.resource(m.cast, p.name), p.store, now)
}

// heartbeat is the time between presences: long, as each costs a message to all.
const heartbeat = time.Minute

func (c Config) user(cast *Cast) user.Config {
	return user.Config{Credential: cast.Credential(User), Trust: cast.Trust, Terms: []protocol.Terms{cast.Terms()}}
}

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

func (m *Market) start(p *party) {
	role, out, err := m.load(p)
	if err != nil {
		m.tb.Fatalf("%s at %s: %v", p.name, m.now.Format(time.TimeOnly), err)
	}
	p.role, p.alarm = role, time.Time{}
	p.life++
	m.carryOut(p, out)
}

// carryOut saves an Output, and then sends it. A crash may come at any of three points.
func (m *Market) carryOut(p *party, out protocol.Output) {
	p.output++
	for _, msg := range out.Hint {
		m.send(p, msg)
	}
	point := Survives
	if m.Crash != nil {
		point = m.Crash(Boundary{Party: p.name, Output: p.output, Out: out})
	}
	if point == BeforeSave {
		m.kill(p, m.cfg.Restart)
		return
	}
	if err := p.store.Append(out.Save); err != nil {
		panic(fmt.Sprintf("markettest: %v", err))
	}
	if point == AfterSave {
		m.kill(p, m.cfg.Restart)
		return
	}
	p.alarm = protocol.Earlier(p.alarm, out.WakeAt)
	for _, msg := range out.Send {
		m.send(p, msg)
	}
	if point == AfterSend {
		m.kill(p, m.cfg.Restart)
	}
}

// kill ends a party's life; it starts again after a while.
func (m *Market) kill(p *party, down time.Duration) {
	p.role, p.alarm = nil, time.Time{}
	m.after(down, event{party: p, start: true})
}

// Store is an agents.Store in memory. It survives crashes of its party.
type Store map[string]map[string][]byte

// Each calls f with every record of a table in order of key.
func (s Store) Each(table string, f func(key string, value []byte) error) error {
	for _, k := range slices.Sorted(maps.Keys(s[table])) {
		if err := f(k, s[table][k]); err != nil {
			return err
		}
	}
	return nil
}

// Get is the value of a key (protocol.Tables).
func (s Store) Get(table, key string) ([]byte, error) { return s[table][key], nil }

// Append stores records; one with a nil Value deletes its key.
func (s Store) Append(records []protocol.Record) error {
	for _, r := range records {
		if s[r.Table] == nil {
			s[r.Table] = map[string][]byte{}
		}
		if r.Value == nil {
			delete(s[r.Table], r.Key)
			continue
		}
		s[r.Table][r.Key] = slices.Clone(r.Value)
	}
	return nil
}

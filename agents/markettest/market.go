package markettest

import (
	"cmp"
	"testing"
	"time"

	"ramp/agents"
	"ramp/agents/bank"
	"ramp/agents/resource"
	"ramp/agents/sim"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/message"
	"ramp/rfql"
)

// Config configures a market.
type Config struct {
	Seed    uint64
	Cores   int                                     // of every seller; 0: 256
	Credit  protocol.Credits                        // the user's; 0: a million credits
	Restart time.Duration                           // from a crash to the next life; 0: one second
	Late    time.Duration                           // how late alarms ring; 0: at once
	Site    func(name string, cfg *resource.Config) // changes a seller's configuration
	Skew    map[string]time.Duration                // how far clocks are off, by party
}

// Market is a market that a test drives.
type Market struct {
	// Fate, if set, decides the fate of each message between agents.
	Fate func(p Packet) Fate
	// Crash, if set, decides whether a party crashes at an Output.
	Crash func(b sim.Boundary) sim.Point
	// Progress is every report to the user's owner, in order.
	Progress []message.Progress
	// Refused are the errors of messages that could not be opened.
	Refused []error

	tb      testing.TB
	cfg     Config
	cast    *Cast
	world   *sim.World
	batches map[string]*Batch // by seller
	outputs map[string]int
}

// Packet is a message on its way from one agent to another.
type Packet struct {
	From, To string
	Message  protocol.Message // as it was sent
	Bytes    []byte           // sealed
}

// Fate is the fate of a Packet. The zero Fate is delivery in due time.
type Fate = sim.Fate

// Store is an agents.Store in memory. It survives crashes of its party.
type Store = sim.Tables

// latency is the mean delay of a message. Any two messages may overtake each other.
const latency = 10 * time.Millisecond

// New opens a market. The user has an account with money, every seller has an
// account, and all parties have met.
func New(tb testing.TB, cast *Cast, cfg Config) *Market {
	tb.Helper()
	cfg.Cores = cmp.Or(cfg.Cores, 256)
	cfg.Credit = cmp.Or(cfg.Credit, 1_000_000*protocol.Credit)
	m := &Market{tb: tb, cfg: cfg, cast: cast, batches: map[string]*Batch{}, outputs: map[string]int{}}
	m.world = sim.New(sim.Config{
		Seed: cfg.Seed, Start: Dawn, Trust: cast.Trust, Faults: sim.Faults{Delay: sim.Span{Least: latency, Most: latency}}, Observers: []sim.Observer{refusals{m}},
	})
	m.world.Hook(sim.Hooks{Fate: m.fate, Crash: m.crash, Down: cfg.Restart})
	m.addParties()
	m.fund()
	m.Run(time.Second)
	for name, skew := range cfg.Skew {
		m.world.Host(name).SetClock(skew)
	}
	return m
}

func (m *Market) fate(p sim.Packet) Fate {
	if m.Fate == nil {
		return Fate{}
	}
	return m.Fate(Packet{p.From.Name, p.To.Name, p.Message, p.Bytes})
}

func (m *Market) crash(b sim.Boundary) sim.Point {
	m.outputs[b.Host.Name] = b.Output
	if m.Crash == nil {
		return sim.Survives
	}
	return m.Crash(b)
}

// refusals is the observer that fills Refused.
type refusals struct{ m *Market }

func (refusals) Durable(*sim.Host, []protocol.Record)             {}
func (refusals) Delivered(to, from *sim.Host, m protocol.Message) {}
func (refusals) Sent(*sim.Host, protocol.Message)                 {}
func (r refusals) Refused(_ *sim.Host, _ protocol.AgentID, err error) {
	r.m.Refused = append(r.m.Refused, err)
}

// fund opens everybody's account and gives the user its money.
func (m *Market) fund() {
	m.world.Do(m.world.Host(Bank), func(now time.Time) (all protocol.Output) {
		b := m.Role(Bank).(*bank.Role)
		for _, name := range m.cast.names() {
			if name != Bank {
				_, out, err := b.OpenAccount(now, m.cast.ID(name), name, 0)
				must(m.tb, err)
				all = all.Join(out)
			}
		}
		_, out, err := b.Credit(now, m.cast.ID(User), m.cast.Terms().Currency, m.cfg.Credit, "at the beginning")
		must(m.tb, err)
		return all.Join(out)
	})
}

// Now is the market's time; clocks of parties may be off it.
func (m *Market) Now() time.Time { return m.world.Now() }

// Run advances the clock by d.
func (m *Market) Run(d time.Duration) { m.world.Run(d) }

// RunUntil advances the clock until done reports true, by at most d; it returns the
// last report of done.
func (m *Market) RunUntil(d time.Duration, done func() bool) bool {
	for end := m.world.Elapsed() + d; !done(); {
		if !m.world.Step(end) {
			return done()
		}
	}
	return true
}

// Tell gives the user an order of its owner's, at once. An owner whose agent is
// down waits until it is up.
func (m *Market) Tell(body protocol.Body) {
	h := m.world.Host(User)
	m.RunUntil(time.Minute, h.Up)
	m.world.Order(h, body)
	m.Run(0) // until it is saved
}

// UnitCores is the size of every unit that Buy orders.
const UnitCores = 8

// Buy orders units of UnitCores for two hours, all at the same time, at most 60
// credits a core-hour. So a seller of UnitCores can serve one of them.
func (m *Market) Buy(id string, units int, o message.Options) {
	m.Tell(message.Buy{ID: id, Name: id, Document: m.Document(units), Options: o})
}

// Document is the request that Buy orders.
func (m *Market) Document(units int) []byte {
	var d rfql.Draft
	from := Dawn.Add(2 * time.Hour)
	for range units {
		d.Requests = append(d.Requests, rfql.DraftRequest{
			Price: 60 * protocol.Credit, TotalCores: UnitCores, NotBefore: from, End: from.Add(2 * time.Hour), Wall: 2 * time.Hour,
		})
	}
	doc, err := rfql.Check(d, m.world.Host(User).Now())
	must(m.tb, err)
	return doc.XML()
}

// Inject brings a message to a party as if a sender had sent it: with the sender's
// authentic signature, but with the test's content.
func (m *Market) Inject(from, to string, msg protocol.Message) {
	bytes, err := codec.Seal(m.cast.Credential(from), msg, m.Now())
	must(m.tb, err)
	m.InjectBytes(from, to, bytes)
}

// InjectBytes is Inject of bytes: a replay, or a forgery.
func (m *Market) InjectBytes(from, to string, bytes []byte) {
	m.world.Inject(m.cast.ID(from), m.world.Host(to), bytes)
}

// Kill crashes a party now; it starts again after down.
func (m *Market) Kill(name string, down time.Duration) { m.world.Crash(m.world.Host(name), down) }

// Role is a party's role now; nil while it is down.
func (m *Market) Role(name string) agents.Role { return m.world.Host(name).Role() }

// Store is a party's store.
func (m *Market) Store(name string) Store { return m.world.Host(name).Disk().Tables }

// Batch is a seller's batch system.
func (m *Market) Batch(name string) *Batch { return m.batches[name] }

// Outputs is how many Outputs a party has made.
func (m *Market) Outputs(name string) int { return m.outputs[name] }

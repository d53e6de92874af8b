package markettest

import (
	"cmp"
	mathrand "math/rand/v2"
	"slices"
	"testing"
	"time"

	"ramp/agents/resource"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/message"
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
	Crash func(b Boundary) Point
	// Progress is every report to the user's owner, in order.
	Progress []message.Progress
	// Refused are the errors of messages that could not be opened.
	Refused []error

	tb      testing.TB
	cfg     Config
	cast    *Cast
	random  *mathrand.Rand
	now     time.Time
	parties map[string]*party
	order   []*party
	events  []event // in order of time, then of scheduling
	serial  int
}

// Packet is a message on its way from one agent to another.
type Packet struct {
	From, To string
	Message  protocol.Message // as it was sent
	Bytes    []byte           // sealed
}

// Fate is the fate of a Packet. The zero Fate is delivery in due time.
type Fate struct {
	Drop   bool
	Tell   bool          // a dropped packet comes back to its sender as undeliverable
	Copies int           // further deliveries, each in its own time
	Delay  time.Duration // on top of the usual
}

// Boundary is an Output about to be carried out. Outputs of a party are numbered
// from 1, over all its lives.
type Boundary struct {
	Party  string
	Output int
	Out    protocol.Output
}

// Point is where in an Output a party crashes.
type Point int

// The points.
const (
	Survives   Point = 0
	BeforeSave Point = 1
	AfterSave  Point = 2
	AfterSend  Point = 3
)

// New opens a market. The user has an account with money, every seller has an
// account, and all parties have met.
func New(tb testing.TB, cast *Cast, cfg Config) *Market {
	tb.Helper()
	cfg.Cores = cmp.Or(cfg.Cores, 256)
	cfg.Credit = cmp.Or(cfg.Credit, 1_000_000*protocol.Credit)
	cfg.Restart = cmp.Or(cfg.Restart, time.Second)
	m := &Market{
		tb: tb, cfg: cfg, cast: cast, now: Dawn, parties: map[string]*party{},
		random: mathrand.New(mathrand.NewPCG(cfg.Seed, 0)),
	}
	for _, name := range cast.names() {
		p := newParty(cast, name, cfg.Cores)
		m.parties[name] = p
		m.order = append(m.order, p)
	}
	for _, p := range m.order {
		m.start(p)
	}
	m.fund()
	m.Run(time.Second)
	for name, skew := range cfg.Skew {
		m.parties[name].skew = skew
	}
	return m
}

// Now is the market's time; clocks of parties may be off it.
func (m *Market) Now() time.Time { return m.now }

func (m *Market) clock(p *party) time.Time { return m.now.Add(p.skew) }

// event is a message that arrives, or a party that starts, at an instant.
type event struct {
	at     time.Time
	serial int
	party  *party
	life   int // of the party, for what does not outlive it; 0: any
	start  bool
	bytes  []byte // of another agent, or:
	local  protocol.Message
	sender protocol.AgentID
}

func (m *Market) after(d time.Duration, e event) {
	m.serial++
	e.at, e.serial = m.now.Add(d), m.serial
	at, _ := slices.BinarySearchFunc(m.events, e, func(x, y event) int { return cmp.Or(x.at.Compare(y.at), cmp.Compare(x.serial, y.serial)) })
	m.events = slices.Insert(m.events, at, e)
}

const maxLatency = 20 * time.Millisecond

func (m *Market) latency() time.Duration {
	return time.Duration(1 + m.random.Int64N(int64(maxLatency)))
}

// send puts a message on its way to each of its receivers.
func (m *Market) send(from *party, msg protocol.Message) {
	for _, to := range msg.Receivers {
		switch to {
		case protocol.LocalQueue:
			// In order and at once, so that the batch system has it whatever
			// happens to its agent; only the answer needs a live agent.
			answer := from.batch.answer(m.clock(from), msg)
			m.after(time.Millisecond, event{party: from, life: from.life, local: answer})
		case protocol.LocalHistory:
			if q, ok := msg.Body.(message.SoldLookup); ok {
				sold, err := ledger.SoldIn(from.store, q.Seller, q.Query.Ends)
				must(m.tb, err)
				answer := msg.Reply(protocol.LocalHistory, protocol.Inform, message.SoldList{Sold: sold, Complete: true})
				m.after(time.Millisecond, event{party: from, life: from.life, local: answer})
			}
		case protocol.LocalControl:
			m.Progress = append(m.Progress, msg.Body.(message.Progress))
		case protocol.Everyone:
			for _, p := range m.order {
				if p != from {
					m.post(from, p.name, msg)
				}
			}
		default:
			m.post(from, to.Name(), msg)
		}
	}
}

// post seals a message for one agent.
func (m *Market) post(from *party, to string, msg protocol.Message) {
	bytes, err := codec.Seal(m.cast.Credential(from.name), msg, m.clock(from))
	if err != nil {
		m.tb.Fatalf("%s cannot send %s: %v", from.name, msg.Body.Kind(), err)
	}
	p := Packet{From: from.name, To: to, Message: msg, Bytes: bytes}
	var fate Fate
	if m.Fate != nil {
		fate = m.Fate(p)
	}
	receiver := m.parties[to]
	if fate.Drop || receiver == nil {
		if fate.Tell {
			m.undeliverable(from, p)
		}
		return
	}
	for range 1 + fate.Copies {
		m.after(m.latency()+fate.Delay, event{party: receiver, bytes: bytes, sender: m.cast.ID(from.name)})
	}
}

func (m *Market) undeliverable(from *party, p Packet) {
	msg := p.Message
	m.after(m.latency(), event{party: from, life: from.life, local: protocol.Message{
		Performative: protocol.Failure, Sender: protocol.LocalMesh, Receivers: []protocol.AgentID{m.cast.ID(from.name)},
		Protocol: msg.Protocol, Conversation: msg.Conversation, ReplyWith: msg.ReplyWith,
		Body: message.Undeliverable{To: m.cast.ID(p.To)},
	}})
}

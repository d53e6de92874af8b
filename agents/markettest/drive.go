package markettest

import (
	"time"

	"ramp/agents"
	"ramp/agents/bank"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/message"
	"ramp/rfql"
)

// Run advances the clock by d.
func (m *Market) Run(d time.Duration) {
	for end := m.now.Add(d); m.step(end); {
	}
}

// RunUntil advances the clock until done reports true, by at most d; it returns the
// last report of done.
func (m *Market) RunUntil(d time.Duration, done func() bool) bool {
	for end := m.now.Add(d); ; {
		if done() {
			return true
		}
		if !m.step(end) {
			return done()
		}
	}
}

// step runs the next event or alarm, if it is not after end.
func (m *Market) step(end time.Time) bool {
	at, ringing := m.nextAlarm()
	if len(m.events) > 0 && (ringing == nil || !m.events[0].at.After(at)) {
		at, ringing = m.events[0].at, nil
	}
	switch {
	case at.IsZero() || at.After(end):
		m.now = end
		return false
	case at.After(m.now):
		m.now = at
	}
	if ringing != nil {
		ringing.alarm = time.Time{}
		m.carryOut(ringing, ringing.role.Wake(m.clock(ringing)))
		return true
	}
	next := m.events[0]
	m.events = m.events[1:]
	m.happen(next)
	return true
}

// nextAlarm is the earliest alarm in the market's time; equal ones go to the first party.
func (m *Market) nextAlarm() (at time.Time, of *party) {
	for _, p := range m.order {
		if p.role == nil || p.alarm.IsZero() {
			continue
		}
		if t := p.alarm.Add(m.cfg.Late - p.skew); of == nil || t.Before(at) {
			at, of = t, p
		}
	}
	return at, of
}

func (m *Market) happen(e event) {
	switch {
	case e.start:
		if e.party.role == nil {
			m.start(e.party)
		}
	case e.party.role == nil || e.life != 0 && e.life != e.party.life:
		// The party is down, or the life that the event belonged to is over.
	case e.bytes != nil:
		m.deliver(e)
	default:
		m.carryOut(e.party, e.party.role.Receive(m.clock(e.party), e.local))
	}
}

// deliver opens another agent's message, as a transport does.
func (m *Market) deliver(e event) {
	now := m.clock(e.party)
	msg, err := e.party.open.Open(e.bytes, e.sender, now)
	if err != nil {
		m.Refused = append(m.Refused, err)
		return
	}
	m.carryOut(e.party, e.party.role.Receive(now, msg))
}

// Tell gives the user an order of its owner's, at once. An owner whose agent is
// down waits until it is up.
func (m *Market) Tell(body protocol.Body) {
	p := m.parties[User]
	m.RunUntil(time.Minute, func() bool { return p.role != nil })
	m.carryOut(p, p.role.Receive(m.clock(p), protocol.Message{
		Performative: protocol.Request, Sender: protocol.LocalControl, Protocol: protocol.ProtocolControl, Body: body}))
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
	doc, err := rfql.Check(d, m.clock(m.parties[User]))
	must(m.tb, err)
	return doc.XML()
}

// Inject brings a message to a party as if a sender had sent it: with the sender's
// authentic signature, but with the test's content.
func (m *Market) Inject(from, to string, msg protocol.Message) {
	bytes, err := codec.Seal(m.cast.Credential(from), msg, m.now)
	must(m.tb, err)
	m.InjectBytes(from, to, bytes)
}

// InjectBytes is Inject of bytes: a replay, or a forgery.
func (m *Market) InjectBytes(from, to string, bytes []byte) {
	m.after(m.latency(), event{party: m.parties[to], bytes: bytes, sender: m.cast.ID(from)})
}

// Kill crashes a party now; it starts again after down.
func (m *Market) Kill(name string, down time.Duration) { m.kill(m.parties[name], down) }

// Role is a party's role now; nil while it is down.
func (m *Market) Role(name string) agents.Role { return m.parties[name].role }

// Store is a party's store.
func (m *Market) Store(name string) Store { return m.parties[name].store }

// Batch is a seller's batch system.
func (m *Market) Batch(name string) *Batch { return m.parties[name].batch }

// Outputs is how many Outputs a party has made.
func (m *Market) Outputs(name string) int { return m.parties[name].output }

// fund opens everybody's account and gives the user its money.
func (m *Market) fund() {
	p := m.parties[Bank]
	b := p.role.(*bank.Role)
	for _, name := range m.cast.names() {
		if name == Bank {
			continue
		}
		_, out, err := b.OpenAccount(m.now, m.cast.ID(name), name, 0)
		must(m.tb, err)
		m.carryOut(p, out)
	}
	_, out, err := b.Credit(m.now, m.cast.ID(User), m.cast.Terms().Currency, m.cfg.Credit, "at the beginning")
	must(m.tb, err)
	m.carryOut(p, out)
}

package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"ramp/protocol"
	"ramp/protocol/message"
)

// packet is a sealed message on its way. All receivers share it, so that its bytes are
// opened and verified once.
type packet struct {
	sender  protocol.AgentID
	from    *Host
	sent    protocol.Message
	bytes   []byte
	digest  uint64
	opened  bool
	message protocol.Message
	err     error
}

// Packet is a message on its way from one host to another, as hooks see it.
type Packet struct {
	From, To *Host
	Message  protocol.Message // as it was sent
	Bytes    []byte           // sealed
}

// Fate is what happens to a Packet. The zero Fate delivers it after the usual delay.
type Fate struct {
	Drop   bool
	Tell   bool          // the sender learns that the packet was dropped
	Copies int           // further deliveries, each with a delay of its own
	Delay  time.Duration // added to the usual delay
}

// parting is a partition of the network between hosts inside and outside, in one direction or both.
type parting struct {
	until       time.Duration
	inside      map[int]bool
	inTo, outTo bool // cut from the inside to the outside, and the other way
}

func (p parting) cuts(from, to int) bool {
	a, b := p.inside[from], p.inside[to]
	return a && !b && p.inTo || !a && b && p.outTo
}

// stall names a link that delivers nothing for a time, and then everything.
type stall struct{ from, to int }

// network owns the links between the hosts: how they delay and lose packets, and which
// partitions and stalls hold.
type network struct {
	chance  Chance
	loss    int
	doubled int
	told    int
	missed  int
	tails   int
	delays  Span
	tail    Span
	linkKey uint64
	parted  []parting
	stalled map[stall]time.Duration
}

func newNetwork(seed uint64, f Faults, c Chance) network {
	return network{
		chance: NewChance(seed, 3), linkKey: NewChance(seed, 4).r.Uint64(), stalled: map[stall]time.Duration{},
		loss: c.In(f.Loss), doubled: c.In(f.Doubled), told: c.In(f.Told), missed: c.In(f.Missed),
		tails: c.In(f.Tails), delays: f.Delay, tail: f.Tail,
	}
}

// mean is a link's mean delay, which depends only on its ends and the seed.
func (n *network) mean(from, to int) time.Duration {
	if n.delays.Most <= n.delays.Least {
		return n.delays.Least
	}
	x := n.linkKey ^ uint64(from)<<32 ^ uint64(to)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9 // splitmix64
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return n.delays.Least + time.Duration(x%uint64(n.delays.Most-n.delays.Least+1))
}

// cut reports whether a partition separates two hosts now.
func (n *network) cut(now time.Duration, from, to int) bool {
	return slices.ContainsFunc(n.parted, func(p parting) bool { return p.until > now && p.cuts(from, to) })
}

// delay is how long one packet takes.
func (n *network) delay(now time.Duration, from, to int, quiet bool) time.Duration {
	d := n.chance.Around(n.mean(from, to))
	if quiet {
		return d
	}
	if n.chance.Of(n.tails) {
		d += n.chance.For(n.tail)
	}
	if until, ok := n.stalled[stall{from, to}]; ok && until > now {
		d += until - now
	}
	return d
}

// send puts a message on its way to each of its receivers.
func (w *World) send(from *Host, m protocol.Message) {
	for _, h := range w.hear {
		h.Said(from, m)
	}
	var p *packet
	for _, to := range m.Receivers {
		if to != protocol.Everyone && to.Local() {
			from.tellLocal(to, m)
			continue
		}
		if p == nil {
			p = w.pack(from, m)
			w.observe(func(o Observer) { o.Sent(from, m) })
		}
		if to == protocol.Everyone {
			w.gossip(from, p)
		} else {
			w.post(from, to, p)
		}
	}
}

func (w *World) pack(from *Host, m protocol.Message) *packet {
	bytes, err := from.seal(m)
	if err != nil {
		panic(fmt.Sprintf("sim: %s cannot send %s: %v", from.Name, m.Body.Kind(), err))
	}
	return w.packBytes(from, from.ID(), m, bytes)
}

func (w *World) packBytes(from *Host, sender protocol.AgentID, m protocol.Message, bytes []byte) *packet {
	w.stats.Sent++
	w.stats.Bytes += int64(len(bytes))
	return &packet{sender: sender, from: from, sent: m, bytes: bytes, digest: xxhash.Sum64(bytes)}
}

// gossip carries a packet to the subscribers of its topic.
func (w *World) gossip(from *Host, p *packet) {
	hearers := w.hearPresence
	switch body := p.sent.Body.(type) {
	case message.Presence:
		if body.Agent == protocol.KindBank {
			hearers = w.hearBanks
		}
	default:
		hearers = w.hearCalls
	}
	r := &rumour{packet: p, arrivals: make([]arrival, 0, len(hearers))}
	for _, to := range hearers {
		if to != from && !w.net.chance.Of(w.net.missed) {
			w.carry(from, to, p, r)
		}
	}
	r.sort()
	w.spread(r)
}

// spread puts the next arrival of a rumour on the agenda.
func (w *World) spread(r *rumour) {
	if e, ok := r.next(); ok {
		w.agenda.push(e)
	}
}

// post carries a packet to one agent.
func (w *World) post(from *Host, id protocol.AgentID, p *packet) {
	to := w.Leader(id)
	if to == nil && w.summon != nil {
		if s, ok := w.summon(id); ok {
			to = w.Add(s)
		}
	}
	if to == nil {
		w.undeliverable(from, id, p)
		return
	}
	if to.other != nil && to.other.up && w.net.chance.N(2) == 0 {
		to = to.other // the sender does not know the new leader yet
	}
	w.carry(from, to, p, nil)
}

// carry plans the arrival of a packet at a host, unless the network loses it: as part of a
// rumour, or by itself.
func (w *World) carry(from, to *Host, p *packet, r *rumour) {
	fate := w.fate(from, to, p)
	if fate.Drop {
		w.stats.Lost++
		if fate.Tell {
			w.undeliverable(from, to.ID(), p)
		}
		return
	}
	for range 1 + fate.Copies {
		after := w.net.delay(w.now, from.index, to.index, w.faults.quiet()) + fate.Delay
		if r == nil {
			w.plan(after, event{kind: arrives, host: to, packet: p})
			continue
		}
		w.serial++
		r.arrivals = append(r.arrivals, arrival{w.now + max(0, after), w.serial, to})
	}
}

func (w *World) fate(from, to *Host, p *packet) Fate {
	if w.hooks.Fate != nil {
		return w.hooks.Fate(Packet{from, to, p.sent, p.bytes})
	}
	if !w.faults.quiet() && (w.net.cut(w.now, from.index, to.index) || w.net.chance.Of(w.net.loss)) {
		return Fate{Drop: true, Tell: w.net.chance.Of(w.net.told)}
	}
	var f Fate
	if !w.faults.quiet() && w.net.chance.Of(w.net.doubled) {
		f.Copies = 1 + w.net.chance.N(2)
	}
	return f
}

// undeliverable notifies a sender that an agent cannot be reached.
func (w *World) undeliverable(from *Host, to protocol.AgentID, p *packet) {
	m := p.sent
	w.plan(w.net.chance.Around(50*time.Millisecond), event{kind: answers, host: from, life: from.life, local: &protocol.Message{
		Performative: protocol.Failure, Sender: protocol.LocalMesh, Receivers: []protocol.AgentID{from.ID()},
		Protocol: m.Protocol, Conversation: m.Conversation, ReplyWith: m.ReplyWith,
		Body: message.Undeliverable{To: to},
	}})
}

// deliver opens a packet and passes it to the role.
func (w *World) deliver(h *Host, p *packet) {
	if !h.up {
		return
	}
	w.trace.addSum(w.now, h, traceArrived, p.digest)
	from := cmp.Or(p.from, w.byID[p.sender])
	if from == nil || !from.trusted {
		w.refuse(h, p, errStranger) // a transport would reject it
		return
	}
	m, err := h.open(p)
	if err != nil {
		w.refuse(h, p, err)
		return
	}
	w.stats.Delivered++
	for _, o := range w.cfg.Observers {
		o.Delivered(h, from, m)
	}
	h.receive(m)
}

// errStranger rejects a sender without a valid credential.
var errStranger = errors.New("the sender has no valid certificate")

func (w *World) refuse(h *Host, p *packet, err error) {
	w.stats.Refused++
	w.observe(func(o Observer) { o.Refused(h, p.sender, err) })
}

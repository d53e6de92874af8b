package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"ramp/agents"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// Local is a local correspondent of a role in virtual time: a batch system, a store's
// history, an owner. It survives crashes of its host.
type Local interface {
	// Receive takes a message from the role and returns the answers and their delays.
	Receive(now time.Time, m protocol.Message) []Later
	// Advance does what is due. next is when to call it again; zero: after the next message.
	Advance(now time.Time) (said []Later, next time.Time)
}

// Later is a message that arrives after a delay.
type Later struct {
	After   time.Duration
	Message protocol.Message
}

// Spec describes what runs on a host.
type Spec struct {
	Name       string
	Credential *identity.Credential
	// Load creates the role from durable records. Its Output is carried out first.
	Load func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error)
	// Locals are the role's local correspondents; messages to others are dropped.
	Locals map[protocol.AgentID]Local
	// HearPresence and HearCalls subscribe it to topics of gossip.
	HearPresence, HearCalls bool
	// Unavailable answers messages that arrive while the disk cannot be written.
	Unavailable func(self protocol.AgentID, m protocol.Message) (protocol.Message, bool)
	// Standby adds a second machine with the same agent and a shared, fenced disk, which
	// sometimes takes over, as for a bank on a cluster.
	Standby bool
	// Rewinds allows faults that lose the disk or restore an older copy, from which the
	// agent can recover.
	Rewinds bool
	// Steady exempts the host from faults: its agent is dishonest, or has faults of its own.
	Steady bool
	// Late is how late its alarms ring.
	Late time.Duration
}

// probing is how long a host waits before it tries its full disk again.
const probing = 5 * time.Second

// Host is a machine with one agent.
type Host struct {
	Spec
	world   *World
	index   int
	trusted bool // its certificate is valid in this world
	disk    *Disk
	copied  Tables      // the owner's last copy; nil: none
	epoch   int         // of its leadership, if it shares its disk
	other   *Host       // the one that shares the disk
	role    agents.Role // nil: down, or the disk cannot be written
	life    int         // number of starts
	up      bool
	loaded  time.Duration // when the role was loaded
	offset  time.Duration
	drift   int64         // parts per million
	jumped  time.Duration // what its clock was set by, besides
	alarm   time.Duration // in the world's time; negative: not set
	wakeAt  time.Time     // the same by its own clock
	outbox  agents.Outbox[leaving]
	output  int           // over all lives
	second  time.Duration // of the last alarm
	rings   int           // alarms in that second
	cut     bool          // the next write ends in a crash
	stirs   map[protocol.AgentID]time.Duration
}

// leaving is an Output whose messages wait for the disk, and the point at which the host
// will crash.
type leaving struct {
	out   protocol.Output
	point Point
}

// Now is the host's clock.
func (h *Host) Now() time.Time {
	t := h.world.now
	return h.world.cfg.Start.Add(t + h.offset + h.jumped + time.Duration(int64(t)/1_000_000*h.drift))
}

// when is the world's time at which the host's clock shows t, or now if that has passed.
func (h *Host) when(t time.Time) time.Duration {
	ahead := t.Sub(h.Now())
	if ahead <= 0 {
		return h.world.now
	}
	return h.world.now + ahead + time.Duration(int64(ahead)/1_000_000*-h.drift) + time.Microsecond
}

// SetClock sets the clock wrong by a duration. Alarms follow it.
func (h *Host) SetClock(by time.Duration) {
	if h.jumped == by {
		return
	}
	h.jumped = by
	if h.alarm >= 0 {
		h.alarm = -1
		h.setAlarm(h.wakeAt)
	}
	if h.up {
		for _, id := range slices.Sorted(maps.Keys(h.Locals)) {
			delete(h.stirs, id)
			h.stir(id)
		}
	}
}

// Role is the running agent, or nil.
func (h *Host) Role() agents.Role { return h.role }

// Disk is the host's disk.
func (h *Host) Disk() *Disk { return h.disk }

// ID is that of the agent.
func (h *Host) ID() protocol.AgentID { return h.Credential.ID }

// Up reports whether the agent runs and can save.
func (h *Host) Up() bool { return h.role != nil }

// Uptime is how long the role has been running.
func (h *Host) Uptime() time.Duration { return h.world.now - h.loaded }

// Waiting is the number of outputs that wait for the disk.
func (h *Host) Waiting() int { return h.outbox.Len() }

// World is the host's world.
func (h *Host) World() *World { return h.world }

// Trusted reports whether the agent's certificate is valid in this world.
func (h *Host) Trusted() bool { return h.trusted }

// start begins a new life of the host, if it is down and leads.
func (h *Host) start() {
	if h.up || h.world.Leader(h.ID()) != h {
		return
	}
	h.up = true
	h.life++
	h.load()
	for _, id := range slices.Sorted(maps.Keys(h.Locals)) {
		h.stir(id)
	}
}

func (h *Host) load() {
	h.epoch = h.disk.epoch
	role, out, err := h.Load(h.disk, h.Now())
	if err != nil {
		panic(fmt.Sprintf("sim: %s cannot read what it saved: %v", h.Name, err))
	}
	h.role, h.alarm, h.outbox, h.loaded = role, -1, agents.Outbox[leaving]{}, h.world.now
	h.carryOut(out)
}

// receive passes a message to the role.
func (h *Host) receive(m protocol.Message) {
	if h.role == nil {
		h.refuse(m)
		return
	}
	h.carryOut(h.role.Receive(h.Now(), m))
}

// refuse answers while the disk cannot be written.
func (h *Host) refuse(m protocol.Message) {
	if h.Unavailable == nil {
		return
	}
	if answer, ok := h.Unavailable(h.ID(), m); ok {
		h.world.send(h, answer)
	}
}

// carryOut carries out an Output. It may crash the host before its records are written;
// crashes during writing and sending come later.
func (h *Host) carryOut(out protocol.Output) {
	h.output++
	for _, m := range out.Hint {
		h.world.send(h, m)
	}
	point := h.world.faults.crashPoint(h, out)
	if point == BeforeSave {
		h.crash(h.world.faults.downtime())
		return
	}
	h.cut = h.cut || point == InSave
	h.setAlarm(out.WakeAt)
	if o := (leaving{out, point}); h.outbox.Put(o, out.Save) {
		h.send(o)
	}
	h.write()
}

// takeOver makes a standby the leader. The former leader may still run, without knowing;
// its writes are refused.
func (h *Host) takeOver() {
	if h.up || len(h.other.disk.frame) > 0 && h.other.up {
		return // a write is in progress; try again next time
	}
	h.disk.epoch++
	h.world.byID[h.ID()] = h
	h.world.stats.TakeOvers++
	h.start()
}

// setAlarm sets the alarm to t, unless it rings earlier anyway.
func (h *Host) setAlarm(t time.Time) {
	if t.IsZero() {
		return
	}
	if at := h.when(t) + h.Late; h.alarm < 0 || at < h.alarm {
		h.alarm, h.wakeAt = at, t
		h.world.plan(at-h.world.now, event{kind: rings, host: h, life: h.life})
	}
}

// ring wakes the role, unless the alarm was moved to an earlier time.
func (h *Host) ring() {
	if h.role == nil || h.alarm != h.world.now {
		return
	}
	h.alarm = -1
	h.countRing()
	h.carryOut(h.role.Wake(h.Now()))
}

// maxRings limits the alarms within a second, to catch a role that sets its alarm again
// without doing anything.
const maxRings = 1000

func (h *Host) countRing() {
	if second := h.world.now / time.Second; second != h.second {
		h.second, h.rings = second, 0
	}
	if h.rings++; h.rings > maxRings {
		panic(fmt.Sprintf("sim: %s rings its alarm more than %d times a second", h.Name, maxRings))
	}
}

// write begins the next append, if records wait for one.
func (h *Host) write() {
	records, ok := h.outbox.Write()
	if !ok {
		return
	}
	if err := h.disk.begin(records, h.epoch); err != nil {
		h.outbox.Failed()
		h.role, h.alarm = nil, -1
		if errors.Is(err, ErrFenced) {
			h.up = false // until it takes over again
			return
		}
		h.world.plan(probing, event{kind: probes, host: h, life: h.life})
		return
	}
	if h.cut {
		h.crash(h.world.faults.downtime())
		return
	}
	h.world.plan(h.world.faults.crashes.Skewed(h.world.faults.faults.Write), event{kind: written, host: h, life: h.life})
}

// written ends an append and sends the messages that waited for it.
func (h *Host) written() {
	records, frame := h.disk.end()
	h.world.durable(h, records, frame)
	life := h.life
	for _, o := range h.outbox.Written() {
		if h.send(o); h.life != life || !h.up {
			return
		}
	}
	h.write()
}

// send sends the messages of an Output; a crash may come before, or in the middle.
func (h *Host) send(o leaving) {
	most := len(o.out.Send)
	switch o.point {
	case AfterSave:
		most = 0
	case InSend:
		most = h.world.faults.crashes.N(most + 1)
	}
	for _, m := range o.out.Send[:most] {
		h.world.send(h, m)
	}
	if o.point >= AfterSave {
		h.crash(h.world.faults.downtime())
	}
}

// crash ends the host's life; it starts again after down.
func (h *Host) crash(down time.Duration) {
	if !h.up {
		return
	}
	h.world.stats.Crashes++
	if len(h.disk.frame) > 0 && h.epoch == h.disk.epoch {
		records, frame := h.disk.crash(h.world.faults.torn(len(h.disk.frame)))
		h.world.durable(h, records, frame)
	}
	h.up, h.role, h.alarm, h.cut = false, nil, -1, false
	h.outbox = agents.Outbox[leaving]{}
	h.world.plan(down, event{kind: starts, host: h})
}

// probe loads the role again if its disk can be written.
func (h *Host) probe() {
	if h.role != nil || !h.up {
		return
	}
	if h.world.Leader(h.ID()) != h {
		h.up = false // another host took over meanwhile
		return
	}
	if h.disk.full {
		h.world.plan(probing, event{kind: probes, host: h, life: h.life})
		return
	}
	h.load()
}

// tellLocal passes a message from the role to a local correspondent.
func (h *Host) tellLocal(id protocol.AgentID, m protocol.Message) {
	l := h.Locals[id]
	if l == nil {
		return
	}
	h.planAnswers(l.Receive(h.Now(), m))
	h.stir(id)
}

// stir has a local correspondent do what is due, and plans the next call.
func (h *Host) stir(id protocol.AgentID) {
	said, next := h.Locals[id].Advance(h.Now())
	h.planAnswers(said)
	if next.IsZero() {
		return
	}
	at := max(h.when(next), h.world.now+time.Millisecond)
	if planned, ok := h.stirs[id]; ok && planned > h.world.now && planned <= at {
		return
	}
	h.stirs[id] = at
	h.world.plan(at-h.world.now, event{kind: stirs, call: func() { h.stir(id) }})
}

func (h *Host) planAnswers(list []Later) {
	for _, l := range list {
		h.world.plan(l.After, event{kind: answers, host: h, life: h.life, local: &l.Message})
	}
}

// open opens a packet as a transport does.
func (h *Host) open(p *packet) (protocol.Message, error) {
	if !p.opened {
		p.message, p.err = h.world.opener.Open(p.bytes, p.sender, h.Now())
		p.opened = true
		if x, ok := p.message.Body.(message.Presence); ok {
			x.Issuer = codec.IssuerOf(h.world.byID[p.sender].Credential.Chain)
			p.message.Body = x
		}
	}
	return p.message, p.err
}

var _ agents.Store = (*Disk)(nil)

// seal encodes and signs a message for the network.
func (h *Host) seal(m protocol.Message) ([]byte, error) { return codec.Seal(h.Credential, m, h.Now()) }

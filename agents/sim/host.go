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
)

// Local is a local correspondent of a role in virtual time: a batch system, a
// store's past, an owner. It outlives crashes of its host.
type Local interface {
	// Receive takes a message of the role's and says what comes back, and when.
	Receive(now time.Time, m protocol.Message) []Later
	// Advance lets what is due happen. next is when it wants to be called again;
	// zero: after the next message.
	Advance(now time.Time) (said []Later, next time.Time)
}

// Later is a message that comes after a while.
type Later struct {
	After   time.Duration
	Message protocol.Message
}

// Spec is what runs on a host.
type Spec struct {
	Name       string
	Credential *identity.Credential
	// Load makes the role from what is durable; its Output is carried out first.
	Load func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error)
	// Locals are the role's local correspondents; messages to others are dropped.
	Locals map[protocol.AgentID]Local
	// HearPresence and HearCalls are the topics of gossip that it hears.
	HearPresence, HearCalls bool
	// Unavailable answers what arrives while the disk cannot be written.
	Unavailable func(m protocol.Message) (protocol.Message, bool)
	// Standby is a second machine with the same agent and the same (shared, fenced)
	// disk, which takes over at times: a bank on a cluster.
	Standby bool
	// Rewinds: its disk may be lost, or an older copy be put in its place. Its agent
	// gets over that.
	Rewinds bool
	// Steady hosts have no faults of their own: what runs there is no honest
	// agent, or has its own.
	Steady bool
}

// probing is how long a host waits before it looks at its full disk again.
const probing = 5 * time.Second

// Host is a machine with one agent.
type Host struct {
	Spec
	world   *World
	index   int
	trusted bool // by the world's authorities
	disk    *Disk
	copied  *Disk       // as its owner last copied it; nil: never
	epoch   int         // in which it leads, if it shares its disk
	other   *Host       // with which it shares it
	role    agents.Role // nil: down, or the disk cannot be written
	life    int         // how often it was started
	up      bool
	loaded  time.Duration // when the role was
	offset  time.Duration
	drift   int64         // parts per million
	alarm   time.Duration // in the world's time; below zero: none
	outbox  agents.Outbox[leaving]
	output  int           // over all lives
	second  time.Duration // in which it rang last
	rings   int           // in that second
	cut     bool          // the next write ends in a crash
	stirs   map[protocol.AgentID]time.Duration
}

// leaving is an Output whose messages wait for the disk, and where in it the host
// will crash.
type leaving struct {
	out   protocol.Output
	point Point
}

// Now is the host's clock.
func (h *Host) Now() time.Time {
	t := h.world.now
	return h.world.cfg.Start.Add(t + h.offset + time.Duration(int64(t)/1_000_000*h.drift))
}

// when is the world's time at which the host's clock shows t, not before.
func (h *Host) when(t time.Time) time.Duration {
	ahead := t.Sub(h.Now())
	if ahead <= 0 {
		return h.world.now
	}
	return h.world.now + ahead + time.Duration(int64(ahead)/1_000_000*-h.drift) + time.Microsecond
}

// Role is the agent that runs; nil while there is none.
func (h *Host) Role() agents.Role { return h.role }

// Disk is what is durable.
func (h *Host) Disk() *Disk { return h.disk }

// ID is the agent's.
func (h *Host) ID() protocol.AgentID { return h.Credential.ID }

// Up reports whether an agent runs and can save.
func (h *Host) Up() bool { return h.role != nil }

// Uptime is for how long the role that runs has run.
func (h *Host) Uptime() time.Duration { return h.world.now - h.loaded }

// Waiting is how many outputs wait for the disk.
func (h *Host) Waiting() int { return h.outbox.Len() }

// World is where the host is.
func (h *Host) World() *World { return h.world }

// Trusted reports whether the world's authorities vouch for the host's agent.
func (h *Host) Trusted() bool { return h.trusted }

// ClockOff is how far the host's clock is off the world's.
func (h *Host) ClockOff() time.Duration { return h.Now().Sub(h.world.Now()) }

// Outputs is how many Outputs the agent made, over all its lives.
func (h *Host) Outputs() int { return h.output }

// start gives the host a new life.
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

// receive brings the role a message.
func (h *Host) receive(m protocol.Message) {
	if h.role == nil {
		h.refuse(m)
		return
	}
	h.carryOut(h.role.Receive(h.Now(), m))
}

// refuse answers while the disk cannot be written.
func (h *Host) refuse(m protocol.Message) {
	if h.Unavailable == nil || m.Sender.Local() {
		return
	}
	if answer, ok := h.Unavailable(m); ok {
		h.world.send(h, answer)
	}
}

// carryOut does what a role wants. A crash may come before its records are
// written; those while they are written and while it sends come later.
func (h *Host) carryOut(out protocol.Output) {
	h.output++
	point := h.world.crashPoint(h, out)
	if point == BeforeSave {
		h.crash(h.world.downtime())
		return
	}
	h.cut = h.cut || point == InSave
	h.setAlarm(out.WakeAt)
	if o := (leaving{out, point}); h.outbox.Put(o, out.Save) {
		h.send(o)
	}
	h.write()
}

// takeOver makes a standby the leader. The deposed one may still run: it does not
// know yet, and its writes are refused.
func (h *Host) takeOver() {
	if h.up || len(h.other.disk.frame) > 0 && h.other.up {
		return // a write is on its way; next time
	}
	h.disk.epoch++
	h.world.byID[h.ID()] = h
	h.world.stats.TakeOvers++
	h.start()
}

// setAlarm makes t the alarm, if it is before the standing one.
func (h *Host) setAlarm(t time.Time) {
	if t.IsZero() {
		return
	}
	if at := h.when(t); h.alarm < 0 || at < h.alarm {
		h.alarm = at
		h.world.plan(at-h.world.now, event{kind: rings, host: h, life: h.life})
	}
}

// ring wakes the role, unless the alarm was brought forward.
func (h *Host) ring() {
	if h.role == nil || h.alarm != h.world.now {
		return
	}
	h.alarm = -1
	h.countRing()
	h.carryOut(h.role.Wake(h.Now()))
}

// maxRings is how often an alarm may ring within a second: a role that wants to
// be woken for what it then does not do would ring for ever.
const maxRings = 1000

func (h *Host) countRing() {
	if second := h.world.now / time.Second; second != h.second {
		h.second, h.rings = second, 0
	}
	if h.rings++; h.rings > maxRings {
		panic(fmt.Sprintf("sim: %s rings its alarm more than %d times a second", h.Name, maxRings))
	}
}

// write begins the next append, if something waits for one.
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
		h.crash(h.world.downtime())
		return
	}
	h.world.plan(h.world.writeTime(), event{kind: written, host: h, life: h.life})
}

// written is the end of an append: what rested on it leaves.
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

// send sends what an Output says; a crash may come before, or in the middle.
func (h *Host) send(o leaving) {
	most := len(o.out.Send)
	switch o.point {
	case AfterSave:
		most = 0
	case InSend:
		most = h.world.crashes.N(most + 1)
	}
	for _, m := range o.out.Send[:most] {
		h.world.send(h, m)
	}
	if o.point == AfterSave || o.point == InSend {
		h.crash(h.world.downtime())
	}
}

// crash ends the host's life; it comes up again after a while.
func (h *Host) crash(down time.Duration) {
	if !h.up {
		return
	}
	h.world.stats.Crashes++
	if len(h.disk.frame) > 0 && h.epoch == h.disk.epoch {
		records, frame := h.disk.crash(h.world.kept(len(h.disk.frame)))
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
		h.up = false // deposed while it waited
		return
	}
	if h.disk.full {
		h.world.plan(probing, event{kind: probes, host: h, life: h.life})
		return
	}
	h.load()
}

// tellLocal brings a local correspondent a message of the role's.
func (h *Host) tellLocal(id protocol.AgentID, m protocol.Message) {
	l := h.Locals[id]
	if l == nil {
		return
	}
	h.planAnswers(l.Receive(h.Now(), m))
	h.stir(id)
}

// stir lets a local correspondent do what is due and plans when to do so again.
func (h *Host) stir(id protocol.AgentID) {
	said, next := h.Locals[id].Advance(h.Now())
	h.planAnswers(said)
	if next.IsZero() {
		return
	}
	at := max(h.when(next), h.world.now+time.Millisecond)
	if standing, ok := h.stirs[id]; ok && standing > h.world.now && standing <= at {
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

// open reads what another agent sent, as a transport does.
func (h *Host) open(p *packet) (protocol.Message, error) {
	if !p.opened {
		p.message, p.err = h.world.opener.Open(p.bytes, p.sender, h.Now())
		p.opened = true
	}
	return p.message, p.err
}

var _ agents.Store = (*Disk)(nil)

// seal is what a host puts on the network of a message.
func (h *Host) seal(m protocol.Message) ([]byte, error) {
	return codec.Seal(h.Credential, m, h.Now())
}

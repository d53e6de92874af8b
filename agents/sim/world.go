package sim

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"time"

	"github.com/cespare/xxhash/v2"

	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/identity"
)

// Config is what a world is like.
type Config struct {
	Seed   uint64
	Start  time.Time // of the world's clock
	Trust  *identity.Trust
	Faults Faults
	Peace  time.Duration // at the beginning, without faults
	// Observers are told of what happens, in this order.
	Observers []Observer
}

// Observer watches a world. It is called as things happen and must not change
// anything.
type Observer interface {
	// Durable is told what became durable on a host, after it did.
	Durable(h *Host, records []protocol.Record)
	// Delivered is told what a host's role is about to receive from another's.
	Delivered(to, from *Host, m protocol.Message)
	// Sent is told what a host puts on the network for another agent, or for many.
	Sent(from *Host, m protocol.Message)
	// Refused is told of bytes that could not be opened.
	Refused(h *Host, sender protocol.AgentID, err error)
}

// Hearer is an Observer that is also told what hosts say, when it leaves them: to
// others, and to their own local correspondents.
type Hearer interface {
	Said(from *Host, m protocol.Message)
}

// Hooks let a test place faults by hand; they take the place of the drawn ones.
type Hooks struct {
	Fate  func(Packet) Fate
	Crash func(Boundary) Point
}

// Boundary is an Output about to be carried out. Outputs of a host are numbered
// from 1, over all its lives.
type Boundary struct {
	Host   *Host
	Output int
	Out    protocol.Output
}

// Point is where in an Output a host crashes.
type Point int

// The points.
const (
	Survives   Point = 0
	BeforeSave Point = 1
	InSave     Point = 2 // while its records are written: all, none or torn
	AfterSave  Point = 3 // durable, and nothing sent
	InSend     Point = 4 // some messages have left
)

// Stats counts what happened.
type Stats struct {
	Events    int64
	Sent      int64 // messages sealed; gossip counts once
	Bytes     int64
	Delivered int64 // messages brought to a role
	Lost      int64
	Refused   int64 // that could not be opened
	Crashes   int64
	TakeOvers int64
	Rewound   int64
	Writes    int64
	Torn      int64
}

// maxMemory is how many certificate chains a world remembers as verified.
const maxMemory = 1 << 15

// World is hosts, what lies between them, and the time.
type World struct {
	cfg    Config
	hooks  Hooks
	now    time.Duration
	serial uint64
	agenda agenda
	hosts  []*Host
	hear   []Hearer
	byName map[string]*Host
	byID   map[protocol.AgentID]*Host

	hearPresence, hearCalls []*Host

	opener  codec.Opener
	net     network
	crashes Chance
	weather weather
	calm    bool // faults have stopped
	hash    hash.Hash
	lines   []byte // of the trace, not hashed yet
	stats   Stats
}

// New is an empty world. It panics if the faults are not valid: whoever reads
// them from a file validates them.
func New(cfg Config) *World {
	if err := cfg.Faults.Validate(); err != nil {
		panic("sim: " + err.Error())
	}
	w := &World{
		cfg: cfg, byName: map[string]*Host{}, byID: map[protocol.AgentID]*Host{},
		opener: codec.NewOpener(cfg.Trust, maxMemory), crashes: NewChance(cfg.Seed, 2), hash: sha256.New(),
	}
	for _, o := range cfg.Observers {
		if h, ok := o.(Hearer); ok {
			w.hear = append(w.hear, h)
		}
	}
	w.blow()
	return w
}

// Hook places faults by hand from now on.
func (w *World) Hook(h Hooks) { w.hooks = h }

// Add puts a host into the world; it starts at once.
func (w *World) Add(s Spec) *Host {
	h := w.add(s, s.Name, NewDisk())
	w.byID[s.Credential.ID] = h
	if s.Standby {
		h.other = w.add(s, s.Name+"'", h.disk)
		h.other.other = h
	}
	if s.HearPresence {
		w.hearPresence = append(w.hearPresence, h)
	}
	if s.HearCalls {
		w.hearCalls = append(w.hearCalls, h)
	}
	h.start()
	return h
}

func (w *World) add(s Spec, name string, disk *Disk) *Host {
	s.Name = name
	h := &Host{Spec: s, world: w, index: len(w.hosts), disk: disk, alarm: -1, stirs: map[protocol.AgentID]time.Duration{}}
	w.hosts = append(w.hosts, h)
	w.byName[name] = h
	_, err := w.cfg.Trust.Verify(raw(s.Credential.Chain), w.Now())
	h.trusted = err == nil
	w.setClock(h)
	return h
}

func raw(chain []*x509.Certificate) [][]byte {
	list := make([][]byte, 0, len(chain))
	for _, c := range chain {
		list = append(list, c.Raw)
	}
	return list
}

// Leader is the host of an agent, nil if there is none: of two that share a disk,
// the one that leads.
func (w *World) Leader(id protocol.AgentID) *Host { return w.byID[id] }

// Host is a host by name, nil if there is none.
func (w *World) Host(name string) *Host { return w.byName[name] }

// Hosts are all, in the order in which they were added.
func (w *World) Hosts() []*Host { return w.hosts }

// Now is the world's time.
func (w *World) Now() time.Time { return w.cfg.Start.Add(w.now) }

// Elapsed is the time since the world's start.
func (w *World) Elapsed() time.Duration { return w.now }

// Stats is what happened so far.
func (w *World) Stats() Stats {
	s := w.stats
	for _, h := range w.hosts {
		s.Torn += int64(h.disk.torn)
	}
	return s
}

// Hash is of everything that happened so far, in hexadecimal.
func (w *World) Hash() string {
	w.hash.Write(w.lines)
	w.lines = w.lines[:0]
	return hex.EncodeToString(w.hash.Sum(nil))
}

// quiet reports whether there are no faults: they have not begun, or have stopped.
func (w *World) quiet() bool { return w.calm || w.now < w.cfg.Peace }

// plan puts an event on the agenda.
func (w *World) plan(after time.Duration, e event) {
	w.serial++
	e.at, e.serial = w.now+max(0, after), w.serial
	w.agenda.push(e)
}

// After calls f after a while.
func (w *World) After(d time.Duration, f func()) { w.plan(d, event{kind: happens, call: f}) }

// Tell brings a host's role a message of a local correspondent's now. It reports
// false while the agent is down.
func (w *World) Tell(h *Host, m protocol.Message) bool {
	if h.role == nil {
		return false
	}
	h.receive(m)
	return true
}

// Do carries out what the owner of a host does to its role. It reports false
// while the agent is down.
func (w *World) Do(h *Host, f func(now time.Time) protocol.Output) bool {
	if h.role == nil {
		return false
	}
	h.carryOut(f(h.Now()))
	return true
}

// Inject brings bytes to a host as if an agent had sent them: a replay, or a
// forgery. The transport has authenticated the sender.
func (w *World) Inject(sender protocol.AgentID, to *Host, bytes []byte) {
	p := w.packBytes(nil, sender, protocol.Message{}, bytes)
	w.plan(w.net.chance.Around(time.Millisecond), event{kind: arrives, host: to, packet: p})
}

// Crash ends a host's life now; it comes up again after down.
func (w *World) Crash(h *Host, down time.Duration) { h.crash(down) }

// Run lets so much time pass.
func (w *World) Run(d time.Duration) {
	for end := w.now + d; w.Step(end); {
	}
}

// Step does what is next, if that is not after end (since the world's start).
// Otherwise it sets the clock to end and reports false.
func (w *World) Step(end time.Duration) bool {
	if len(w.agenda) == 0 || w.agenda[0].at > end {
		w.now = end
		return false
	}
	e := w.agenda.pop()
	w.now = e.at
	w.stats.Events++
	w.happen(e)
	return true
}

func (w *World) happen(e event) {
	if e.life != 0 && (e.life != e.host.life || !e.host.up) {
		return // what it belonged to is gone
	}
	switch e.kind {
	case arrives:
		if e.rumour != nil {
			w.spread(e.rumour)
		}
		w.deliver(e.host, e.packet)
	case answers:
		w.trace(e.host, traceAnswered, []byte(e.local.Body.Kind()))
		e.host.receive(*e.local)
	case rings:
		e.host.ring()
	case written:
		e.host.written()
	case starts:
		w.trace(e.host, traceStarted, nil)
		e.host.start()
	case probes:
		e.host.probe()
	case happens, stirs:
		e.call()
	default:
		panic(fmt.Sprintf("sim: event of kind %d", e.kind))
	}
}

func (w *World) durable(h *Host, records []protocol.Record, frame []byte) {
	if len(records) == 0 {
		return
	}
	w.stats.Writes++
	w.traceSum(h, traceSaved, xxhash.Sum64(frame))
	w.observe(func(o Observer) { o.Durable(h, records) })
	w.copyDisk(h)
}

func (w *World) observe(f func(Observer)) {
	for _, o := range w.cfg.Observers {
		f(o)
	}
}

// What a line of the trace is about.
const (
	traceArrived  byte = 1
	traceAnswered byte = 2
	traceSaved    byte = 3
	traceStarted  byte = 4
)

// traceBuffer is how much of the trace is hashed at once.
const traceBuffer = 1 << 14

// traceSum is a line about bytes that are too long for it.
func (w *World) traceSum(h *Host, kind byte, sum uint64) {
	var about [8]byte
	binary.BigEndian.PutUint64(about[:], sum)
	w.trace(h, kind, about[:])
}

// trace adds a line to the hash.
func (w *World) trace(h *Host, kind byte, about []byte) {
	b := binary.BigEndian.AppendUint64(w.lines, uint64(w.now))
	b = binary.BigEndian.AppendUint64(b, uint64(h.index))
	b = append(b, kind, byte(len(about)))
	w.lines = append(b, about...)
	if len(w.lines) >= traceBuffer {
		w.hash.Write(w.lines)
		w.lines = w.lines[:0]
	}
}

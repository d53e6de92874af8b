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

// Config describes a world.
type Config struct {
	Seed   uint64
	Start  time.Time // of the world's clock
	Trust  *identity.Trust
	Faults Faults
	Peace  time.Duration // before the first fault
	// Observers are called in this order.
	Observers []Observer
}

// Observer watches a world. It must not change anything.
type Observer interface {
	// Durable is called after records became durable on a host.
	Durable(h *Host, records []protocol.Record)
	// Delivered is called before a role receives a message from another host.
	Delivered(to, from *Host, m protocol.Message)
	// Sent is called when a host puts a message on the network.
	Sent(from *Host, m protocol.Message)
	// Refused is called when bytes could not be opened.
	Refused(h *Host, sender protocol.AgentID, err error)
}

// Hearer is an Observer that also learns of every message that leaves a role, to other
// agents and to its own local correspondents.
type Hearer interface {
	Said(from *Host, m protocol.Message)
}

// Hooks let a test place faults by hand; they replace the random ones.
type Hooks struct {
	Fate  func(Packet) Fate
	Crash func(Boundary) Point
	Down  time.Duration // from a crash to the next start; 0: a second
}

// Boundary is an Output about to be carried out. A host's Outputs are numbered from 1,
// over all its lives.
type Boundary struct {
	Host   *Host
	Output int
	Out    protocol.Output
}

// Point is the place in an Output at which a host crashes.
type Point int

// The points.
const (
	Survives   Point = 0
	BeforeSave Point = 1
	InSave     Point = 2 // while its records are written: all, none or torn
	AfterSave  Point = 3 // durable, and nothing sent
	InSend     Point = 4 // some messages have left
	AfterSend  Point = 5
)

// Stats counts what happened.
type Stats struct {
	Events    int64
	Sent      int64 // messages sealed; gossip counts once
	Bytes     int64
	Delivered int64 // messages passed to a role
	Lost      int64
	Refused   int64 // messages that could not be opened
	Crashes   int64
	TakeOvers int64
	Rewound   int64
	Writes    int64
	Torn      int64
}

// maxMemory is how many verified certificate chains a world remembers.
const maxMemory = 1 << 15

// World owns the hosts, the agenda of events and the time.
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

	hearPresence, hearCalls, hearBanks []*Host

	summon func(id protocol.AgentID) (Spec, bool) // nil: nobody is

	opener codec.Opener
	net    network
	faults *injector
	trace  trace
	stats  Stats
}

// New creates an empty world. It panics if the faults are not valid; code that reads them
// from a file must validate them.
func New(cfg Config) *World {
	if err := cfg.Faults.Validate(); err != nil {
		panic("sim: " + err.Error())
	}
	w := &World{
		cfg: cfg, byName: map[string]*Host{}, byID: map[protocol.AgentID]*Host{},
		opener: codec.NewOpener(cfg.Trust, maxMemory), trace: trace{hash: sha256.New()},
	}
	for _, o := range cfg.Observers {
		if h, ok := o.(Hearer); ok {
			w.hear = append(w.hear, h)
		}
	}
	w.faults = newInjector(w, cfg.Seed, cfg.Faults)
	return w
}

// Hook replaces random faults by hooks from now on.
func (w *World) Hook(h Hooks) { w.hooks = h }

// Watch adds an observer.
func (w *World) Watch(o Observer) { w.cfg.Observers = append(w.cfg.Observers, o) }

// Summon has f make the host of an agent that is sent a message and that the world lacks;
// false: there is no such agent.
func (w *World) Summon(f func(id protocol.AgentID) (Spec, bool)) { w.summon = f }

// Add adds a host to the world; it starts at once.
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
	if s.HearPresence || s.HearCalls {
		w.hearBanks = append(w.hearBanks, h)
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
	w.faults.setClock(h)
	return h
}

func raw(chain []*x509.Certificate) [][]byte {
	list := make([][]byte, 0, len(chain))
	for _, c := range chain {
		list = append(list, c.Raw)
	}
	return list
}

// Leader is the host of an agent, or nil. If two share a disk, it is the one that leads.
func (w *World) Leader(id protocol.AgentID) *Host { return w.byID[id] }

// Host is the host with a name, or nil.
func (w *World) Host(name string) *Host { return w.byName[name] }

// Hosts are all hosts, in the order in which they were added.
func (w *World) Hosts() []*Host { return w.hosts }

// Now is the world's time.
func (w *World) Now() time.Time { return w.cfg.Start.Add(w.now) }

// Elapsed is the time since the world's start.
func (w *World) Elapsed() time.Duration { return w.now }

// Stats returns the counts so far.
func (w *World) Stats() Stats {
	s := w.stats
	for _, h := range w.hosts {
		s.Torn += int64(h.disk.torn)
	}
	return s
}

// Hash is the hash of everything that happened so far, in hexadecimal.
func (w *World) Hash() string { return w.trace.sum() }

// Calm stops all faults: partitions heal, disks have room, hosts come up. Clocks stay as they are.
func (w *World) Calm() { w.faults.stop() }

// plan puts an event on the agenda.
func (w *World) plan(after time.Duration, e event) {
	w.serial++
	e.at, e.serial = w.now+max(0, after), w.serial
	w.agenda.push(e)
}

// After calls f after d.
func (w *World) After(d time.Duration, f func()) { w.plan(d, event{kind: happens, call: f}) }

// Tell passes a message from a local correspondent to a host's role now. It reports false
// while the agent is down.
func (w *World) Tell(h *Host, m protocol.Message) bool {
	if h.role == nil {
		return false
	}
	h.receive(m)
	return true
}

// Order passes a request from its owner to a host's role, as Tell does.
func (w *World) Order(h *Host, body protocol.Body) bool {
	return w.Tell(h, protocol.Message{
		Performative: protocol.Request, Sender: protocol.LocalControl, Receivers: []protocol.AgentID{h.ID()},
		Protocol: protocol.ProtocolControl, Body: body,
	})
}

// Do carries out an action of the host's owner on the role. It reports false while the
// agent is down.
func (w *World) Do(h *Host, f func(now time.Time) protocol.Output) bool {
	if h.role == nil {
		return false
	}
	h.carryOut(f(h.Now()))
	return true
}

// Inject passes bytes to a host as if an agent had sent them: a replay or a forgery. The
// transport has authenticated the sender.
func (w *World) Inject(sender protocol.AgentID, to *Host, bytes []byte) {
	p := w.packBytes(nil, sender, protocol.Message{}, bytes)
	w.plan(w.net.chance.Around(time.Millisecond), event{kind: arrives, host: to, packet: p})
}

// Crash crashes a host now; it starts again after down.
func (w *World) Crash(h *Host, down time.Duration) { h.crash(down) }

// Run runs the world for d.
func (w *World) Run(d time.Duration) {
	for end := w.now + d; w.Step(end); {
	}
}

// Step handles the next event, if it is not after end (since the world's start). Otherwise
// it sets the clock to end and reports false.
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
		return // it belonged to a former life
	}
	switch e.kind {
	case arrives:
		if e.rumour != nil {
			w.spread(e.rumour)
		}
		w.deliver(e.host, e.packet)
	case answers:
		w.trace.add(w.now, e.host, traceAnswered, []byte(e.local.Body.Kind()))
		e.host.receive(*e.local)
	case rings:
		e.host.ring()
	case written:
		e.host.written()
	case starts:
		w.trace.add(w.now, e.host, traceStarted, nil)
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
	w.trace.addSum(w.now, h, traceSaved, xxhash.Sum64(frame))
	w.observe(func(o Observer) { o.Durable(h, records) })
	w.faults.copyDisk(h)
}

func (w *World) observe(f func(Observer)) {
	for _, o := range w.cfg.Observers {
		f(o)
	}
}

// Kinds of a line of the trace.
const (
	traceArrived  byte = 1
	traceAnswered byte = 2
	traceSaved    byte = 3
	traceStarted  byte = 4
)

// traceBuffer is how many bytes of the trace are hashed at once.
const traceBuffer = 1 << 14

// trace owns the hash of everything that happened in a world.
type trace struct {
	hash  hash.Hash
	lines []byte // not hashed yet
}

// addSum adds a line about bytes that are too long for it.
func (t *trace) addSum(now time.Duration, h *Host, kind byte, sum uint64) {
	var about [8]byte
	binary.BigEndian.PutUint64(about[:], sum)
	t.add(now, h, kind, about[:])
}

// add adds a line to the hash.
func (t *trace) add(now time.Duration, h *Host, kind byte, about []byte) {
	b := binary.BigEndian.AppendUint64(t.lines, uint64(now))
	b = binary.BigEndian.AppendUint64(b, uint64(h.index))
	b = append(b, kind, byte(len(about)))
	t.lines = append(b, about...)
	if len(t.lines) >= traceBuffer {
		t.flush()
	}
}

func (t *trace) flush() {
	t.hash.Write(t.lines)
	t.lines = t.lines[:0]
}

func (t *trace) sum() string {
	t.flush()
	return hex.EncodeToString(t.hash.Sum(nil))
}

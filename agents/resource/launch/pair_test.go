package launch_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"ramp/agents"
	"ramp/agents/resource/launch"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/identity"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// The names of a pair, and when its slot is.
const (
	buyerID  protocol.AgentID    = "ann"
	contract protocol.ContractID = "c"
)

var (
	slotStart = noon.Add(2 * time.Minute)
	slotEnd   = noon.Add(12 * time.Minute)
)

// disk is what is durable of an agent.
type disk map[string]map[string][]byte

func (d disk) Get(table, key string) ([]byte, error) { return d[table][key], nil }

func (d disk) Each(table string, f func(string, []byte) error) error {
	for _, k := range slices.Sorted(maps.Keys(d[table])) {
		if err := f(k, d[table][k]); err != nil {
			return err
		}
	}
	return nil
}

func (d disk) save(records []protocol.Record) {
	for _, r := range records {
		if d[r.Table] == nil {
			d[r.Table] = map[string][]byte{}
		}
		if r.Value == nil {
			delete(d[r.Table], r.Key)
		} else {
			d[r.Table][r.Key] = r.Value
		}
	}
}

// host is an agent that can crash at any of its Outputs.
type host struct {
	id     protocol.AgentID
	disk   disk
	role   agents.Role
	alarm  time.Time     // by the right clock: an alarm is a pause
	ahead  time.Duration // its own clock
	life   int
	load   func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error)
	locals func(now time.Time, m protocol.Message) []protocol.Message // answers
	die    func()                                                     // what else ends with the process
}

// siteRole is a launch.Site as a role.
type siteRole struct{ *launch.Site }

func (s siteRole) Receive(now time.Time, m protocol.Message) protocol.Output {
	out, _ := s.Site.Receive(now, m)
	return out
}

// packet is a message on its way. One between an agent and its own correspondents
// is lost with the process.
type packet struct {
	to   *host
	life int // zero: of another agent
	m    protocol.Message
}

// pair is a buyer with a program for one unit of each of its sellers, the network
// and the time between them, and what is beside each: batch systems, files.
type pair struct {
	t       *testing.T
	now     time.Time
	user    *host
	sites   []*host
	sold    []*oneUnit
	batches []*batch
	depots  []*depot
	wire    []packet
	shown   message.Run
	tell    func(from protocol.AgentID, m protocol.Message)                      // nil: nobody listens
	crash   func(h *host, out protocol.Output) (saved bool, sent int, dead bool) // nil: nobody crashes
}

func newPair(t *testing.T, units int, program message.Program, policy launch.Policy) *pair {
	return newPairTold(t, units, program, policy, nil)
}

// newPairTold is a pair that somebody listens to from the beginning.
func newPairTold(t *testing.T, units int, program message.Program, policy launch.Policy, tell func(protocol.AgentID, protocol.Message)) *pair {
	p := &pair{t: t, now: noon, tell: tell}
	run := message.Run{ID: "p1", Name: "job", Contract: contract, Created: noon, Program: program}
	for i := range units {
		id := protocol.AgentID(fmt.Sprintf("site%d", i+1))
		slot := protocol.Slot{Start: slotStart, End: slotEnd, Cores: 2}
		p.addSite(id, slot, units, policy)
		run.Units = append(run.Units, message.RunUnit{
			Unit: i, Launch: fmt.Sprintf("p1.%d", i+1), Resource: string(id), Seller: id, Slot: slot,
			Status: message.LaunchStatus{Stage: message.StageAsked},
		})
	}
	p.addUser(run)
	return p
}

func (p *pair) addSite(id protocol.AgentID, slot protocol.Slot, units int, policy launch.Policy) {
	i := len(p.sites)
	sold := &oneUnit{reserve.Unit{User: buyerID, Reservation: "r" + string(id), State: reserve.ClaimSold, Units: units, Slot: slot}}
	h := &host{id: id, disk: disk{}}
	b, d := &batch{jobs: map[string]*batchJob{}}, &depot{have: map[string]bool{}, jobs: map[string][]protocol.StagedFile{}}
	p.sites, p.sold, p.batches, p.depots = append(p.sites, h), append(p.sold, sold), append(p.batches, b), append(p.depots, d)
	h.load = func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
		s, out, err := launch.New(launch.Config{Self: id, Address: string(id) + ".example", Root: "/jobs", Policy: policy}, byUnit{i, sold}, t, now)
		return siteRole{s}, out, err
	}
	h.locals = func(now time.Time, m protocol.Message) []protocol.Message {
		if m.Receivers[0] == protocol.LocalFiles {
			return d.take(m)
		}
		return b.take(now, m)
	}
	h.die = func() { b.watched = nil }
	p.start(h)
}

// byUnit is a seller of the unit of this number only.
type byUnit struct {
	number int
	*oneUnit
}

func (s byUnit) Unit(id protocol.ContractID, unit int) (reserve.Unit, bool) {
	return s.unit, id == contract && unit == s.number
}

func (p *pair) addUser(run message.Run) {
	p.user = &host{id: buyerID, disk: disk{}}
	record, err := agentsRecord(run)
	if err != nil {
		p.t.Fatal(err)
	}
	p.user.disk.save([]protocol.Record{record})
	cfg := user.Config{Credential: &identity.Credential{ID: buyerID}}
	p.user.load = func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
		return user.New(cfg, t, now)
	}
	p.user.locals = func(_ time.Time, m protocol.Message) []protocol.Message { return p.porter(m) }
	p.start(p.user)
}

func (p *pair) start(h *host) {
	h.life++
	role, out, err := h.load(h.disk, p.now.Add(h.ahead))
	if err != nil {
		p.t.Fatalf("%s cannot read what it saved: %v", h.id, err)
	}
	h.role, h.alarm = role, time.Time{}
	p.carryOut(h, out)
}

// carryOut does what a role wants, up to where its host crashes.
func (p *pair) carryOut(h *host, out protocol.Output) {
	saved, sent, dead := true, len(out.Send), false
	if p.crash != nil {
		saved, sent, dead = p.crash(h, out)
	}
	if saved {
		h.disk.save(out.Save)
	}
	for _, m := range out.Send[:sent] {
		p.put(h, m)
	}
	if !out.WakeAt.IsZero() {
		h.alarm = protocol.Earlier(h.alarm, out.WakeAt.Add(-h.ahead))
	}
	if dead {
		h.die1()
		p.start(h)
	}
}

func (h *host) die1() {
	h.role = nil
	if h.die != nil {
		h.die()
	}
}

// put puts a message onto its way.
func (p *pair) put(h *host, m protocol.Message) {
	if len(m.Receivers) == 1 && m.Receivers[0] == protocol.LocalHistory {
		return // a question about receipts
	}
	if p.tell != nil {
		p.tell(h.id, m)
	}
	if body, ok := m.Body.(message.RunProgress); ok {
		p.shown = body.Run
		return
	}
	if m.Receivers[0].Local() {
		p.wire = append(p.wire, packet{to: h, life: h.life, m: m})
		return
	}
	if to := p.host(m.Receivers[0]); to != nil {
		p.wire = append(p.wire, packet{to: to, m: m})
	}
}

func (p *pair) host(id protocol.AgentID) *host {
	if id == buyerID {
		return p.user
	}
	for _, s := range p.sites {
		if s.id == id {
			return s
		}
	}
	return nil
}

// deliver brings one message where it goes.
func (p *pair) deliver(k packet) {
	switch {
	case k.life != 0 && k.life != k.to.life: // of a process that is gone
	case k.m.Receivers[0].Local():
		for _, answer := range k.to.locals(p.now, k.m) {
			p.wire = append(p.wire, packet{to: k.to, life: k.to.life, m: answer})
		}
	default:
		p.carryOut(k.to, k.to.role.Receive(p.now.Add(k.to.ahead), k.m))
	}
}

// say brings a local correspondent's own word to an agent.
func (p *pair) say(h *host, from protocol.AgentID, body protocol.Body) {
	p.wire = append(p.wire, packet{to: h, life: h.life, m: local(h.id, from, body)})
}

func local(to, from protocol.AgentID, body protocol.Body) protocol.Message {
	return protocol.Message{Performative: protocol.Inform, Sender: from, Receivers: []protocol.AgentID{to}, Body: body}
}

// quiet delivers everything in order until nothing is on its way.
func (p *pair) quiet() {
	for n := 0; len(p.wire) > 0; n++ {
		if n > 10_000 {
			p.t.Fatalf("the agents never stop talking; the last is %+v", p.wire[0])
		}
		k := p.wire[0]
		p.wire = p.wire[1:]
		p.deliver(k)
	}
}

// step lets time pass to the next instant at which something is due, at most d.
func (p *pair) step(d time.Duration) {
	to := p.now.Add(d)
	for _, h := range append([]*host{p.user}, p.sites...) {
		to = sooner(to, h.alarm)
	}
	for _, b := range p.batches {
		to = sooner(to, b.next(p.now))
	}
	if to.After(p.now) {
		p.now = to
	}
	for i, b := range p.batches {
		for _, body := range b.advance(p.now) {
			p.say(p.sites[i], protocol.LocalQueue, body)
		}
	}
	for _, h := range append([]*host{p.user}, p.sites...) {
		if !h.alarm.IsZero() && !h.alarm.After(p.now) {
			h.alarm = time.Time{}
			p.carryOut(h, h.role.Wake(p.now.Add(h.ahead)))
		}
	}
}

func sooner(a, b time.Time) time.Time {
	if !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// until lets everything happen in order up to an instant.
func (p *pair) until(t time.Time) {
	p.quiet()
	for n := 0; p.now.Before(t); n++ {
		if n > 200_000 {
			p.t.Fatalf("at %s something is due again and again", p.now)
		}
		p.step(t.Sub(p.now))
		p.quiet()
	}
}

// owner gives the buyer's agent an order.
func (p *pair) owner(verb message.LaunchVerb) {
	p.carryOut(p.user, p.user.role.Receive(p.now.Add(p.user.ahead), protocol.Message{
		Performative: protocol.Request, Sender: protocol.LocalControl, Body: message.RunControl{ID: "p1", Verb: verb}}))
}

// run is the run as the buyer's journal has it.
func (p *pair) run() message.Run {
	v, err := user.ReadRun(p.user.disk[user.TableRuns]["p1"])
	if err != nil {
		p.t.Fatal(err)
	}
	return v
}

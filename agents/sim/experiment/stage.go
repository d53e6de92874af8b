package experiment

import (
	"time"

	"ramp/agents"
	"ramp/agents/bank"
	"ramp/agents/index"
	"ramp/agents/queue/swf"
	"ramp/agents/resource"
	"ramp/agents/resource/pricing"
	"ramp/agents/sim"
	"ramp/agents/sim/market"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/message"
)

// seller is a resource of a stage.
type seller struct {
	name  string
	on    machine
	band  pricing.Band
	twist func(r agents.Role, self protocol.AgentID) agents.Role // how a dishonest one tampers with its messages; nil: honest
}

// play describes a stage.
type play struct {
	seed        uint64
	offset      time.Duration // from the base times to the market's start
	sellers     []seller
	users       int
	workstation bool
	prompt      bool                                   // batch systems answer at once
	budget      int                                    // of responses, as in user.Config; 0: the default
	far         func(from, to *sim.Host) time.Duration // delay in addition to the settings'; nil: none
}

// stage is a market in a world of its own.
type stage struct {
	world *sim.World
	read  auction.Reader
	bank  *sim.Host
	users []*sim.Host
	owner []*owner
	over  int // purchases of all users
	watch *watch
	serve *service

	indexes []*sim.Host
	servers []*index.Server
	stop    func() error // an error ends the run; nil: nothing does
}

// Times of a stage. A user forgets a seller after ten times the usual TTL of silence, no
// matter which TTL it announced.
const (
	heartbeat = 5 * time.Minute
	presence  = 10 * protocol.PresenceTTL
	opening   = 2 * time.Second                     // until all have announced themselves
	patience  = 2 * time.Hour                       // for one purchase to end
	purse     = 1_000_000_000_000 * protocol.Credit // of all users together
)

// stage opens a market, users first, so that they receive the presences of the others.
func (l *Lab) stage(p play) *stage {
	s, faults := l.empty(p)
	for i, x := range p.sellers {
		s.addSeller(l, x, sim.NewChance(p.seed, uint64(1000+i)), faults, int64(p.offset/time.Second))
	}
	s.fund()
	s.world.Hook(sim.Hooks{Fate: s.serve.fate})
	s.world.Run(opening)
	return s
}

// empty is a market of users and a bank, without sellers.
func (l *Lab) empty(p play) (*stage, sim.Faults) {
	faults := sim.Faults{
		Delay: sim.Span{Least: l.Settings.DelayMin, Most: l.Settings.DelayMax},
		Write: sim.Span{Least: 200 * time.Microsecond, Most: 2 * time.Millisecond},
		Slow:  sim.Span{Least: time.Millisecond, Most: 50 * time.Millisecond},
	}
	if p.prompt {
		faults.Slow = sim.Span{}
	}
	s := &stage{watch: &watch{calls: map[callKey]call{}, answers: map[string][]time.Duration{}, answered: map[callKey]int{}, proposed: map[callKey]int{}}, read: auction.NewReader()}
	s.world = sim.New(sim.Config{Seed: p.seed, Start: market.Dawn, Trust: l.cast.Trust, Faults: faults, Observers: []sim.Observer{s.watch}})
	s.watch.world = s.world
	serve := &service{
		world: s.world, each: l.Settings.Processing, unit: l.Settings.UnitTime,
		workstation: p.workstation, free: map[*sim.Host]time.Duration{}, watch: s.watch, far: p.far,
	}
	for i := range p.users {
		s.addUser(l, market.UserName(i+1), p.budget)
	}
	s.addBank(l)
	s.serve = serve
	return s, faults
}

func (s *stage) addUser(l *Lab, name string, budget int) {
	cfg := user.Config{Credential: l.cast.Credential(name), Trust: l.cast.Trust, Terms: []protocol.Terms{l.cast.Terms()}, Budget: budget}
	o := &owner{agent: cfg.Credential.ID, done: map[string]message.Purchase{}, over: &s.over}
	s.owner = append(s.owner, o)
	s.users = append(s.users, s.world.Add(sim.Spec{
		Name: name, Credential: cfg.Credential, HearPresence: true,
		Locals: map[protocol.AgentID]sim.Local{protocol.LocalControl: o},
		Load: func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
			return user.New(cfg, t, now)
		},
	}))
}

func (s *stage) addBank(l *Lab) {
	cred := l.cast.Credential(market.BankName)
	cfg := bank.Config{ID: cred.ID, Currencies: []string{market.Currency}, Heartbeat: heartbeat}
	s.bank = s.world.Add(sim.Spec{
		Name: market.BankName, Credential: cred,
		Load: func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
			return bank.New(cfg, t, now)
		},
	})
}

func (s *stage) addSeller(l *Lab, x seller, c sim.Chance, faults sim.Faults, offset int64) {
	s.world.Add(s.sellerSpec(l, x, c, faults, offset))
}

func (s *stage) sellerSpec(l *Lab, x seller, c sim.Chance, faults sim.Faults, offset int64) sim.Spec {
	cfg := resource.Config{
		TrustJournal:     true,                     // banks here keep no past
		BuyerCoreSeconds: int64(x.on.cores) * 3600, // 002 has no vouchers: an hour of the machine needs none
		Credential:       l.cast.Credential(x.name), Properties: protocol.Properties{OS: "Linux", Arch: "x86_64", Cores: x.on.cores},
		Price: x.band, Terms: []protocol.Terms{l.cast.Terms()}, Heartbeat: heartbeat, TTL: presence,
		Read: s.read,
	}
	system := swf.Memory(x.on.replay, x.on.base+offset, market.Dawn, false)
	return sim.Spec{
		Name: x.name, Credential: cfg.Credential, HearCalls: true,
		Locals: map[protocol.AgentID]sim.Local{protocol.LocalQueue: market.NewBatch(cfg.Credential.ID, system, c, faults.Slow, 0)},
		Load: func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
			r, out, err := resource.New(cfg, t, now)
			if err != nil || x.twist == nil {
				return r, out, err
			}
			return x.twist(r, cfg.Credential.ID), out, nil
		},
	}
}

// fund opens all accounts and gives users more than they can spend.
func (s *stage) fund() {
	o := market.Operator{World: s.world, Bank: s.bank}
	for _, h := range s.world.Hosts() {
		if h != s.bank {
			o.Open(h)
		}
	}
	for _, u := range s.users {
		o.Credit(u, purse/protocol.Credits(len(s.users)))
	}
}

// order begins a purchase.
func (s *stage) order(user int, id string, options message.Options, units ...job) {
	h := s.users[user]
	options.Objective = protocol.ObjectiveCost // as the source's users
	s.world.Order(h, message.Buy{ID: id, Name: id, Document: document(h.Now(), units...), Options: options})
}

// await runs the world until n purchases of all users are over.
func (s *stage) await(n int) {
	end := s.world.Elapsed() + patience
	for s.over < n && s.step(end) { //nolint:revive // the condition does the work
	}
}

// buy is a purchase from its order to its end.
func (s *stage) buy(user int, id string, options message.Options, units ...job) message.Purchase {
	s.order(user, id, options, units...)
	s.await(s.over + 1)
	return s.owner[user].done[id]
}

// rest lets time pass.
func (s *stage) rest(d time.Duration) {
	for end := s.world.Elapsed() + d; s.step(end); { //nolint:revive // as in await
	}
}

func (s *stage) step(end time.Duration) bool {
	return (s.stop == nil || s.stop() == nil) && s.world.Step(end)
}

// owner is the person behind a user agent, who approves nothing beyond the request's terms.
type owner struct {
	agent protocol.AgentID
	done  map[string]message.Purchase
	over  *int // purchases of all owners
}

// Receive takes progress reports.
func (o *owner) Receive(_ time.Time, m protocol.Message) []sim.Later {
	p, ok := m.Body.(message.Progress)
	switch {
	case !ok:
	case p.Done:
		if _, known := o.done[p.Purchase.ID]; !known {
			*o.over++
		}
		o.done[p.Purchase.ID] = p.Purchase
	case p.Event == "approval":
		return []sim.Later{{Message: protocol.Message{
			Performative: protocol.Inform, Sender: protocol.LocalControl, Receivers: []protocol.AgentID{o.agent},
			Protocol: protocol.ProtocolControl, Body: message.Approval{ID: p.Purchase.ID},
		}}}
	}
	return nil
}

// Advance has nothing to do.
func (o *owner) Advance(time.Time) ([]sim.Later, time.Time) { return nil, time.Time{} }

// service adds the processing time of messages, which a world does not simulate. A host
// processes its messages one by one, in the order of sending. On a workstation all hosts
// share one processor, like the source's agents (002 §9).
type service struct {
	world       *sim.World
	each, unit  time.Duration
	workstation bool
	free        map[*sim.Host]time.Duration
	shared      time.Duration
	watch       *watch
	far         func(from, to *sim.Host) time.Duration // in addition to a link's own delay; nil: none
}

// fate delays a packet until its receiver has processed it.
func (s *service) fate(p sim.Packet) sim.Fate {
	if _, presence := p.Message.Body.(message.Presence); presence {
		return sim.Fate{}
	}
	s.watch.sent(p, s.world.Elapsed())
	now := s.world.Elapsed()
	begin := max(now, s.free[p.To])
	if s.workstation {
		begin = max(now, s.shared)
	}
	done := begin + s.work(p)
	s.free[p.To], s.shared = done, done
	return sim.Fate{Delay: done - now + s.distance(p)}
}

func (s *service) distance(p sim.Packet) time.Duration {
	if s.far == nil {
		return 0
	}
	return s.far(p.From, p.To)
}

func (s *service) work(p sim.Packet) time.Duration {
	if call, ok := p.Message.Body.(message.CallForProposals); ok {
		return s.each + time.Duration(len(call.Ceilings))*s.unit
	}
	return s.each
}

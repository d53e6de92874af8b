package experiment

import (
	"fmt"
	"time"

	"ramp/agents"
	"ramp/agents/bank"
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

// seller is a resource to put on a stage.
type seller struct {
	name  string
	on    machine
	band  pricing.Band
	twist func(r agents.Role, self protocol.AgentID) agents.Role // what a dishonest one does to its messages; nil: nothing
}

// play says what is put on a stage.
type play struct {
	seed        uint64
	offset      time.Duration // from the base times to the market's start
	sellers     []seller
	users       int
	workstation bool
	prompt      bool                                   // batch systems answer at once
	budget      int                                    // of responses, as user.Config has it; 0: the usual
	far         func(from, to *sim.Host) time.Duration // delay on top of the settings'; nil: none
}

// stage is a market in a world of its own.
type stage struct {
	world *sim.World
	read  auction.Reader
	bank  *sim.Host
	users []*sim.Host
	owner []*owner
	watch *watch
}

// Times of a stage. A user forgets who was silent for ten times the usual TTL,
// whatever TTL it told.
const (
	heartbeat = 5 * time.Minute
	presence  = 10 * protocol.PresenceTTL
	opening   = 2 * time.Second                     // until all have told what they are
	patience  = 2 * time.Hour                       // for one purchase to end
	purse     = 1_000_000_000_000 * protocol.Credit // of all users together
)

// stage opens a market: users first, so that they hear who comes.
func (l *Lab) stage(p play) *stage {
	faults := sim.Faults{
		Delay: sim.Span{Least: l.Settings.DelayMin, Most: l.Settings.DelayMax},
		Write: sim.Span{Least: 200 * time.Microsecond, Most: 2 * time.Millisecond},
		Slow:  sim.Span{Least: time.Millisecond, Most: 50 * time.Millisecond},
	}
	if p.prompt {
		faults.Slow = sim.Span{}
	}
	s := &stage{watch: newWatch(), read: market.Reader()}
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
	for i, x := range p.sellers {
		s.addSeller(l, x, sim.NewChance(p.seed, uint64(1000+i)), faults, int64(p.offset/time.Second))
	}
	s.fund()
	s.world.Hook(sim.Hooks{Fate: serve.fate})
	s.world.Run(opening)
	return s
}

func (s *stage) addUser(l *Lab, name string, budget int) {
	cfg := user.Config{Credential: l.cast.Credential(name), Trust: l.cast.Trust, Terms: []protocol.Terms{l.cast.Terms()}, Budget: budget}
	o := &owner{agent: cfg.Credential.ID, done: map[string]message.Purchase{}}
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
	cfg := resource.Config{
		TrustJournal: true, // banks here keep no past
		Credential:   l.cast.Credential(x.name), Properties: protocol.Properties{OS: "Linux", Arch: "x86_64", Cores: x.on.cores},
		Price: x.band, Terms: []protocol.Terms{l.cast.Terms()}, Heartbeat: heartbeat, TTL: presence,
		Read: s.read,
	}
	system := swf.Memory(x.on.replay, x.on.base+offset, market.Dawn, false)
	s.world.Add(sim.Spec{
		Name: x.name, Credential: cfg.Credential, HearCalls: true,
		Locals: map[protocol.AgentID]sim.Local{protocol.LocalQueue: market.NewBatch(cfg.Credential.ID, system, c, faults.Slow, 0)},
		Load: func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
			r, out, err := resource.New(cfg, t, now)
			if err != nil || x.twist == nil {
				return r, out, err
			}
			return x.twist(r, cfg.Credential.ID), out, nil
		},
	})
}

// fund opens everybody's account; users have all that they can spend.
func (s *stage) fund() {
	for _, h := range s.world.Hosts() {
		if h == s.bank {
			continue
		}
		s.bankDoes(func(b *bank.Role, now time.Time) (protocol.Output, error) {
			_, out, err := b.OpenAccount(now, h.ID(), h.Name, 0)
			return out, err
		})
	}
	for _, u := range s.users {
		s.bankDoes(func(b *bank.Role, now time.Time) (protocol.Output, error) {
			_, out, err := b.Credit(now, u.ID(), market.Currency, purse/protocol.Credits(len(s.users)), "at the beginning")
			return out, err
		})
	}
}

func (s *stage) bankDoes(f func(b *bank.Role, now time.Time) (protocol.Output, error)) {
	s.world.Do(s.bank, func(now time.Time) protocol.Output {
		out, err := f(s.bank.Role().(*bank.Role), now)
		if err != nil {
			panic(fmt.Sprintf("experiment: the bank's operator: %v", err))
		}
		return out
	})
}

// order begins a purchase.
func (s *stage) order(user int, id string, options message.Options, units ...job) {
	h := s.users[user]
	s.world.Tell(h, protocol.Message{
		Performative: protocol.Request, Sender: protocol.LocalControl, Receivers: []protocol.AgentID{h.ID()},
		Protocol: protocol.ProtocolControl,
		Body:     message.Buy{ID: id, Name: id, Document: document(h.Now(), units...), Options: options},
	})
}

// await lives until so many purchases of all users are over.
func (s *stage) await(n int) {
	end := s.world.Elapsed() + patience
	for s.over() < n && s.world.Step(end) { //nolint:revive // the condition does the work
	}
}

func (s *stage) over() int {
	n := 0
	for _, o := range s.owner {
		n += len(o.done)
	}
	return n
}

// buy is a purchase from its order to its end.
func (s *stage) buy(user int, id string, options message.Options, units ...job) message.Purchase {
	s.order(user, id, options, units...)
	s.await(s.over() + 1)
	return s.owner[user].done[id]
}

// rest lets time pass.
func (s *stage) rest(d time.Duration) { s.world.Run(d) }

// owner is the person behind a user agent; who approves nothing that breaks the
// request's terms.
type owner struct {
	agent protocol.AgentID
	done  map[string]message.Purchase
}

// Receive hears of progress.
func (o *owner) Receive(_ time.Time, m protocol.Message) []sim.Later {
	p, ok := m.Body.(message.Progress)
	switch {
	case !ok:
	case p.Done:
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

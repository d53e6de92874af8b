package market

import (
	"fmt"
	"time"

	"ramp/agents"
	"ramp/agents/bank"
	"ramp/agents/resource"
	"ramp/agents/resource/pricing"
	"ramp/agents/sim"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// Streams of chance, so that one part of a market does not disturb another; the
// world uses those below.
const (
	streamSites  = 100
	streamOrders = 101
	streamQueues = 102
	streamRecall = 103
	streamLearnt = 104
	streamBatch  = 1_000 // and one for each site above it
	streamUser   = 1_000_000
	streamRogue  = 2_000_000
	streamLaunch = 3_000_000 // and one for each user above it
)

// Market is a market in a world.
type Market struct {
	World   *sim.World
	Cast    *Cast
	cfg     Config
	read    auction.Reader
	sites   []*Site
	users   []*User
	bySite  map[*sim.Host]*Site
	bank    *sim.Host
	rogues  []rogue
	calm    bool
	calmed  time.Time // since when; zero: it is not
	parties map[protocol.AgentID]party

	orders, cancels int
}

// Site is a seller and its machine.
type Site struct {
	Host    *sim.Host
	Config  resource.Config
	Cluster *Cluster
	Batch   *Batch
}

// User is a buyer and its owner.
type User struct {
	Host   *sim.Host
	Config user.Config
	chance sim.Chance
	runs   sim.Chance // what it runs, and does to that
	bought []string   // IDs of its orders, oldest first
}

// New opens a market: everybody has an account, users have money. Observers watch
// it from the beginning.
func New(cast *Cast, cfg Config, observers ...sim.Observer) *Market {
	m := &Market{Cast: cast, cfg: cfg, read: Reader(), bySite: map[*sim.Host]*Site{}, parties: map[protocol.AgentID]party{}}
	m.World = sim.New(sim.Config{Seed: cfg.Seed, Start: Dawn, Trust: cast.Trust, Faults: cfg.Faults, Peace: peace, Observers: observers})
	m.addBank()
	for i := 1; i <= cfg.Resources; i++ {
		m.addSite(i)
	}
	for i := 1; i <= cfg.Users; i++ {
		m.addUser(i)
	}
	m.addRogues()
	m.fund()
	m.troubleQueues()
	return m
}

// Sites are the sellers, in order.
func (m *Market) Sites() []*Site { return m.sites }

// site is the site of a host, nil if it is none.
func (m *Market) site(h *sim.Host) *Site { return m.bySite[h] }

// Users are the buyers, in order.
func (m *Market) Users() []*User { return m.users }

// Bank is the bank's first host; a second one shares its disk.
func (m *Market) Bank() *sim.Host { return m.bank }

func (m *Market) addBank() {
	cfg := bank.Config{ID: m.Cast.ID(BankName), Currencies: []string{Currency}, Heartbeat: m.cfg.Heartbeat}
	m.bank = m.World.Add(sim.Spec{
		Name: BankName, Credential: m.Cast.Credential(BankName), Standby: true, Unavailable: unavailable(cfg.ID),
		Locals: map[protocol.AgentID]sim.Local{protocol.LocalHistory: past{&m.bank}},
		Load: func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
			return bank.New(cfg, t, now)
		},
	})
}

// addSite draws a site: its size, its prices, its local load.
func (m *Market) addSite(i int) {
	c := sim.NewChance(m.cfg.Seed, streamBatch+uint64(i))
	name := SiteName(i)
	least := protocol.Credits(10+c.N(30)) * protocol.Credit
	cfg := resource.Config{
		Credential: m.Cast.Credential(name),
		Properties: protocol.Properties{OS: "Linux", Arch: "x86_64", Cores: 64 << c.N(5)},
		Price:      pricing.Band{Start: least + protocol.Credits(5+c.N(35))*protocol.Credit, Min: least},
		Terms:      []protocol.Terms{m.Cast.Terms()}, Heartbeat: m.cfg.Heartbeat, TTL: 3 * m.cfg.Heartbeat,
		Modes:        m.cfg.Modes,
		Read:         m.read,
		Cancellation: reserve.CancelPolicy{Allowed: c.N(4) > 0, Before: time.Minute, FeePerMille: c.N(200)},
	}
	if m.cfg.Launches > 0 {
		cfg.Launch = launchesOf(name)
	}
	cluster := NewCluster(cfg.Properties.Cores, c.In(m.cfg.Faults.LocalJobs), m.cfg.Faults.Overstated, c, Dawn)
	if m.cfg.Sharpen {
		cluster.over.on, cfg.Sharpen, cfg.BrokenPerMille = true, true, 200
		cfg.Learnt = learnt(m.cfg.Faults.Overstated, sim.NewChance(m.cfg.Seed, streamLearnt))
	}
	batch := NewBatch(cfg.Credential.ID, cluster, c, m.cfg.Faults.Slow, c.In(m.cfg.Faults.Short))
	s := &Site{Config: cfg, Cluster: cluster, Batch: batch}
	s.Host = m.World.Add(sim.Spec{
		Name: name, Credential: cfg.Credential, HearCalls: true, Rewinds: true, Unavailable: unavailable(cfg.Credential.ID),
		Locals: map[protocol.AgentID]sim.Local{protocol.LocalQueue: batch, protocol.LocalFiles: shelf{cfg.Credential.ID}},
		Load: func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
			return resource.New(cfg, t, now)
		},
	})
	m.sites = append(m.sites, s)
	m.parties[s.Host.ID()] = partySite
	m.bySite[s.Host] = s
}

func (m *Market) addUser(i int) {
	name := UserName(i)
	cfg := user.Config{Credential: m.Cast.Credential(name), Trust: m.Cast.Trust, Terms: []protocol.Terms{m.Cast.Terms()}}
	u := &User{Config: cfg, chance: sim.NewChance(m.cfg.Seed, streamUser+uint64(i)), runs: sim.NewChance(m.cfg.Seed, streamLaunch+uint64(i))}
	u.Host = m.World.Add(sim.Spec{
		Name: name, Credential: cfg.Credential, HearPresence: true,
		Locals: map[protocol.AgentID]sim.Local{protocol.LocalControl: &owner{user: u}},
		Load: func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
			return user.New(cfg, t, now)
		},
	})
	m.users = append(m.users, u)
	m.parties[u.Host.ID()] = partyUser
	m.orderNext(u)
}

// peace is how long nothing fails at first.
const peace = time.Minute

// What users have at first: more than they can spend, or, every fourth, hardly
// enough.
const (
	rich = 1_000_000_000 * protocol.Credit
	poor = 3_000 * protocol.Credit
)

func credit(user int) protocol.Credits {
	if user%4 == 3 {
		return poor
	}
	return rich
}

// fund opens everybody's account and gives users their money, before anything
// can fail.
func (m *Market) fund() {
	m.makePolicy()
	open := func(h *sim.Host) {
		m.bankDoes(func(b *bank.Role, now time.Time) (protocol.Output, error) {
			_, out, err := b.OpenAccount(now, h.ID(), h.Name, 0)
			return out, err
		})
	}
	for _, s := range m.sites {
		open(s.Host)
	}
	pay := func(h *sim.Host, money protocol.Credits) {
		open(h)
		if money == 0 || m.cfg.Barter {
			return
		}
		m.bankDoes(func(b *bank.Role, now time.Time) (protocol.Output, error) {
			_, out, err := b.Credit(now, h.ID(), Currency, money, "at the beginning")
			return out, err
		})
	}
	for i, u := range m.users {
		pay(u.Host, credit(i))
	}
	for _, r := range m.rogues {
		pay(r.host, r.money)
	}
	if m.cfg.Barter {
		m.barter()
	}
}

// bankDoes lets the bank's operator act, in the market's first instant.
func (m *Market) bankDoes(f func(b *bank.Role, now time.Time) (protocol.Output, error)) {
	m.World.Do(m.bank, func(now time.Time) protocol.Output {
		out, err := f(m.bank.Role().(*bank.Role), now)
		if err != nil {
			panic(fmt.Sprintf("market: the bank's operator: %v", err))
		}
		return out
	})
}

// troubleQueues lets batch systems go away now and then, and forget what they
// granted and what they released.
func (m *Market) troubleQueues() {
	c := sim.NewChance(m.cfg.Seed, streamQueues)
	perDay, forgotten := c.In(m.cfg.Faults.QueueDown), c.In(m.cfg.Faults.Forgotten)
	if perDay == 0 {
		return
	}
	r := sim.NewChance(m.cfg.Seed, streamRecall)
	recalled := r.In(m.cfg.Faults.Recalled)
	for _, s := range m.sites {
		m.troubleQueue(c, s, 24*time.Hour/time.Duration(perDay), func(k *Cluster) {
			each(c, sorted(k.Slots()), forgotten, k.Forget)
			each(r, sorted(k.Released()), recalled, k.Recall)
		})
	}
}

// each does something to so many IDs in a thousand.
func each(c sim.Chance, ids []string, perMille int, do func(id string)) {
	for _, id := range ids {
		if c.Of(perMille) {
			do(id)
		}
	}
}

func (m *Market) troubleQueue(c sim.Chance, s *Site, gap time.Duration, forget func(*Cluster)) {
	m.World.After(c.Waiting(gap), func() {
		if m.calm {
			return
		}
		s.Batch.Away(s.Host.Now().Add(c.Skewed(m.cfg.Faults.QueueAway)))
		forget(s.Cluster)
		m.troubleQueue(c, s, gap, forget)
	})
}

// Calm stops all faults and all orders.
func (m *Market) Calm() {
	m.calm, m.calmed = true, m.World.Now()
	for _, s := range m.sites {
		s.Batch.Away(time.Time{})
	}
	m.World.Calm()
}

// unavailable answers for an agent whose disk is full, as the live one does.
func unavailable(self protocol.AgentID) func(m protocol.Message) (protocol.Message, bool) {
	return func(m protocol.Message) (protocol.Message, bool) {
		p := protocol.Failure
		switch m.Performative {
		case protocol.CFP, protocol.AcceptProposal:
			p = protocol.Refuse
		case protocol.Confirm, protocol.Request, protocol.QueryRef:
		default:
			return protocol.Message{}, false
		}
		return m.Reply(self, p, message.Refused(protocol.CodeUnavailable, "this agent cannot write its journal")), true
	}
}

package market

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"time"

	"ramp/agents"
	"ramp/agents/bank"
	"ramp/agents/resource"
	"ramp/agents/resource/pricing"
	"ramp/agents/sim"
	"ramp/agents/user"
	"ramp/bank/ledger"
	"ramp/bank/row"
	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// Streams of chance keep the parts of a market independent. The world uses lower numbers.
const (
	streamQueues = 102
	streamRecall = 103
	streamLearnt = 104
	streamBatch  = 1_000 // plus the site's number
	streamUser   = 1_000_000
	streamRogue  = 2_000_000
	streamLaunch = 3_000_000 // plus the user's number

	streamExchange = 4_000_000 // plus the user's number
	streamClerk    = 5_000_000 // plus the clerk's number
	streamSweep    = 6_000_000 // plus the user's number
	streamOutputs  = 7_000_000 // plus the user's number
	streamTask     = 8_000_000 // plus the site's number
)

// Market is a market in a simulated world.
type Market struct {
	World   *sim.World
	Cast    *Cast
	cfg     Config
	read    auction.Reader
	sites   []*Site
	users   []*User
	bySite  map[*sim.Host]*Site
	bank    *sim.Host
	log     *entryLog
	rogues  []rogue
	calm    bool
	calmed  time.Time // when faults and orders were stopped
	backup  backup
	parties map[protocol.AgentID]party
	grants  []grant // given again after each crash
	clerks  *clerks

	orders, cancels int
	together        map[[sha256.Size]byte]bool // documents whose units must begin together
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
	runs   sim.Chance // its programs and what it does to them
	bought []string   // IDs of its orders, oldest first

	exchanges *exchanger
	sweeps    *sweepOwner
	outputs   *outputs
}

// New opens a market: every party has an account, users have money. Observers watch it
// from the beginning.
func New(cast *Cast, cfg Config, observers ...sim.Observer) *Market {
	m := &Market{Cast: cast, cfg: cfg, read: auction.NewReader(), bySite: map[*sim.Host]*Site{}, together: map[[sha256.Size]byte]bool{}, parties: map[protocol.AgentID]party{}}
	m.World = sim.New(sim.Config{Seed: cfg.Seed, Start: Dawn, Trust: cast.Trust, Faults: cfg.Faults, Peace: peace, Observers: observers})
	m.addBank()
	m.clerks = &clerks{market: m, ended: map[string]bool{}, given: map[string]int{}, shown: map[uint64]string{}}
	for i := 1; i <= cfg.Resources; i++ {
		m.addSite(i)
	}
	for i := 1; i <= cfg.Users; i++ {
		m.addUser(i)
	}
	m.addRogues()
	m.fund()
	m.troubleQueues()
	m.backUp()
	return m
}

func (m *Market) site(h *sim.Host) *Site { return m.bySite[h] }

// Users are the buyers, in order.
func (m *Market) Users() []*User { return m.users }

func (m *Market) addBank() {
	cfg := bank.Config{ID: m.Cast.ID(BankName), Currencies: m.cfg.currencies(), Heartbeat: m.cfg.Heartbeat}
	m.log = newEntryLog()
	m.bank = m.World.Add(sim.Spec{
		Name: BankName, Credential: m.Cast.Credential(BankName), Standby: true, Unavailable: agents.Unavailable,
		Locals: map[protocol.AgentID]sim.Local{protocol.LocalHistory: past{&m.bank, m.log}},
		Load: func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
			b, out, err := bank.New(cfg, t, now)
			if err != nil || m.World.Now().Sub(Dawn) > protocol.OrderMemory/2 {
				return b, out, err
			}
			for _, g := range m.grants { // their answers may have been lost
				more, err := g.once(b, now)
				if err != nil {
					panic(fmt.Sprintf("market: an order given again: %v", err))
				}
				out = out.Join(more)
			}
			return b, out, nil
		},
	})
}

// addSite draws a site: its size, prices and local load.
func (m *Market) addSite(i int) {
	c := sim.NewChance(m.cfg.Seed, streamBatch+uint64(i))
	name := SiteName(i)
	least := protocol.Credits(10+c.N(30)) * protocol.Credit
	cfg := resource.Config{
		Credential: m.Cast.Credential(name), Trust: m.Cast.Trust,
		Properties: protocol.Properties{OS: "Linux", Arch: "x86_64", Cores: 64 << c.N(5)},
		Price:      pricing.Band{Start: least + protocol.Credits(5+c.N(35))*protocol.Credit, Min: least, Rule: ruleOf(i)},
		Terms:      []protocol.Terms{m.Cast.Terms()}, Heartbeat: m.cfg.Heartbeat, TTL: 3 * m.cfg.Heartbeat,
		Modes:        m.cfg.Modes,
		Read:         m.read,
		Cancellation: reserve.CancelPolicy{Allowed: c.N(4) > 0, Before: time.Minute, FeePerMille: c.N(200)},
	}
	jobs := m.tasksOf(i)
	if m.cfg.Machines != nil {
		x := m.cfg.Machines[i-1]
		cfg.Properties.Cores, cfg.Price, jobs = x.Cores, pricing.Band{Start: x.Price, Min: x.Price, Rule: pricing.List}, x.Jobs
	}
	if m.cfg.Launches > 0 || m.cfg.Sweeps > 0 || m.cfg.Machines != nil {
		cfg.Launch = launchesOf(name)
	}
	cluster := NewCluster(cfg.Properties.Cores, c.In(m.cfg.Faults.LocalJobs), m.cfg.Faults.Overstated, c, Dawn)
	if m.cfg.Overbook {
		cluster.overbooked.on, cfg.Overbook, cfg.BrokenPerMille = true, true, 200
		cfg.Learnt = learnt(m.cfg.Faults.Overstated, sim.NewChance(m.cfg.Seed, streamLearnt))
	}
	batch := NewBatch(cfg.Credential.ID, cluster, c, m.cfg.Faults.Slow, c.In(m.cfg.Faults.Short))
	batch.programs.behaves = jobs
	s := &Site{Config: cfg, Cluster: cluster, Batch: batch}
	s.Host = m.World.Add(sim.Spec{
		Name: name, Credential: cfg.Credential, HearCalls: true, Rewinds: true, Unavailable: agents.Unavailable,
		Locals: map[protocol.AgentID]sim.Local{protocol.LocalQueue: batch, protocol.LocalFiles: shelf{cfg.Credential.ID}, protocol.LocalHistory: journal{m.World, name}},
		Load: func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
			return resource.New(cfg, t, now)
		},
	})
	m.sites = append(m.sites, s)
	m.parties[s.Host.ID()] = partySite
	m.bySite[s.Host] = s
}

// ruleOf is a site's price rule: every fourth has that of 002.
func ruleOf(i int) pricing.Rule {
	if i%4 == 3 {
		return pricing.Ramp
	}
	return pricing.List
}

func (m *Market) addUser(i int) {
	name := UserName(i)
	cfg := user.Config{Credential: m.Cast.Credential(name), Trust: m.Cast.Trust, Terms: []protocol.Terms{m.Cast.Terms()}}
	u := &User{Config: cfg, chance: sim.NewChance(m.cfg.Seed, streamUser+uint64(i)), runs: sim.NewChance(m.cfg.Seed, streamLaunch+uint64(i))}
	u.exchanges = newExchanger(m, u, i)
	u.sweeps = &sweepOwner{market: m, user: u, chance: sim.NewChance(m.cfg.Seed, streamSweep+uint64(i)), given: map[string]sweepTerms{}}
	u.outputs = &outputs{cfg.Credential.ID, sim.NewChance(m.cfg.Seed, streamOutputs+uint64(i)), map[string]string{}}
	u.Host = m.World.Add(sim.Spec{
		Name: name, Credential: cfg.Credential, HearPresence: true,
		Locals: map[protocol.AgentID]sim.Local{protocol.LocalControl: &owner{user: u}, protocol.LocalFiles: u.outputs, protocol.LocalHistory: journal{m.World, name}},
		Load: func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
			role, out, err := user.New(cfg, t, now)
			return userRole{role, u.exchanges}, out, err
		},
	})
	m.users = append(m.users, u)
	m.parties[u.Host.ID()] = partyUser
	m.orderNext(u)
	u.exchanges.next()
	u.sweeps.next()
}

// peace is the initial period without faults.
const peace = time.Minute

// Initial balances: more than a user can spend; or, for every fourth user, hardly enough.
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

// fund opens all accounts and gives users their money, before the first fault.
func (m *Market) fund() {
	m.makePolicy()
	o := m.operator()
	for _, s := range m.sites {
		o.Open(s.Host)
	}
	pay := func(h *sim.Host, money protocol.Credits) {
		o.Open(h)
		if money != 0 && !m.cfg.Barter {
			m.grant(grant{h.Name, h.ID(), Currency, money})
		}
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
	m.openExchange()
}

func (m *Market) operator() Operator { return Operator{m.World, m.bank} }

// troubleQueues makes batch systems fail from time to time, and forget grants and releases.
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

// each calls do for a share of the IDs, in thousandths, at random.
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
	m.restoreBank()
}

// Operator acts for the owner of a simulated bank in the first instant of its world.
type Operator struct {
	World *sim.World
	Bank  *sim.Host
}

// Do carries out an action, which the bank must accept.
func (o Operator) Do(f func(b *bank.Role, now time.Time) (protocol.Output, error)) {
	o.World.Do(o.Bank, func(now time.Time) protocol.Output {
		out, err := f(o.Bank.Role().(*bank.Role), now)
		if err != nil {
			panic(fmt.Sprintf("market: the bank's operator: %v", err))
		}
		return out
	})
}

// Open opens an account for the agent of a host.
func (o Operator) Open(h *sim.Host) {
	o.Do(func(b *bank.Role, now time.Time) (protocol.Output, error) {
		_, out, err := b.OpenAccount(now, h.ID(), h.Name, 0)
		return out, err
	})
}

// Credit gives money to the agent of a host.
func (o Operator) Credit(h *sim.Host, money protocol.Credits) {
	o.Do(grant{h.Name, h.ID(), Currency, money}.once)
}

// grant is an order of the operator to give money to an account.
type grant struct {
	key      string
	to       protocol.AgentID
	currency string
	money    protocol.Credits
}

// AtTheBeginning is the reference of the money that a market begins with.
const AtTheBeginning = "at the beginning"

// once gives the money once, however often it is ordered.
func (g grant) once(b *bank.Role, now time.Time) (protocol.Output, error) {
	_, _, out, err := b.Orders.Once(now, g.key, g.money.String(), func(string) bool { return false }, func() (ledger.Entry, protocol.Output, error) {
		return b.Credit(now, g.to, g.currency, g.money, AtTheBeginning)
	})
	return out, err
}

func (m *Market) grant(g grant) {
	m.operator().Do(g.once)
	m.grants = append(m.grants, g)
}

// outcomeIn reads what a bank has decided about a contract, and how its units ended.
func outcomeIn(t protocol.Tables, bank protocol.AgentID, id protocol.ContractID) (found message.FoundOutcome, err error) {
	legs := map[uint32]ledger.Leg{}
	err = t.Each(ledger.TableLines, func(key string, value []byte) error {
		n, err1 := row.Number32(key)
		account, currency, err2 := ledger.DecodeLine(value)
		legs[n] = ledger.Leg{Account: account, Currency: currency}
		return cmp.Or(err1, err2)
	})
	return found, cmp.Or(err, t.Each(ledger.TableEntries, func(key string, value []byte) error {
		e, err := ledger.DecodeEntry(key, value)
		found.AsOf = e.Number
		for i := range e.Legs {
			leg := legs[e.Legs[i].Line]
			e.Legs[i].Account, e.Legs[i].Currency = leg.Account, leg.Currency
		}
		switch {
		case err != nil || e.Contract != id:
		case found.Found:
			e.AddTo(&found.Receipt)
		default:
			found.Found = true
			found.Receipt, err = e.Receipt(bank)
		}
		return err
	}))
}

// past is a bank's local correspondent History, which reads durable records.
type past struct {
	host **sim.Host
	log  *entryLog
}

// Receive answers a little later.
func (p past) Receive(now time.Time, m protocol.Message) []sim.Later {
	var body protocol.Body
	var list []protocol.Sold
	var err error
	switch q := m.Body.(type) {
	case message.SoldLookup:
		list, err = ledger.SoldIn((*p.host).Disk(), q.Seller, q.Query.Ends)
		body = page(list, q.Query.After)
	case message.OutcomeLookup: // of a bank whose clock was far ahead: otherwise outcomes stay in memory
		body, err = outcomeIn((*p.host).Disk(), (*p.host).ID(), q.Contract)
	case message.ProofLookup:
		body, err = p.log.prove(now, *p.host, q.Query)
	default:
		return nil
	}
	if err != nil {
		panic(fmt.Sprintf("market: the bank's past: %v", err))
	}
	return []sim.Later{{After: time.Millisecond, Message: m.Reply(protocol.LocalHistory, protocol.Inform, body)}}
}

// pageSize is small, so that answers have several pages.
const pageSize = 3

// page returns the sales after a contract.
func page(list []protocol.Sold, after protocol.ContractID) message.SoldList {
	for i, s := range list {
		if s.Contract == after {
			list = list[i+1:]
			break
		}
	}
	n := min(pageSize, len(list))
	return message.SoldList{Sold: list[:n], More: n < len(list), Complete: true}
}

// Advance has nothing to do.
func (past) Advance(time.Time) ([]sim.Later, time.Time) { return nil, time.Time{} }

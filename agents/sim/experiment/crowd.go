package experiment

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"ramp/agents"
	"ramp/agents/index"
	"ramp/agents/resource"
	"ramp/agents/resource/pricing"
	"ramp/agents/sim"
	"ramp/agents/sim/market"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/message"
)

// Bounds of a crowd and of its users.
const (
	MaxCrowd  = 100_000
	MaxBuyers = 10_000
)

// states are the different machines of a crowd: each resource of table 2 at each hour.
const states = 20 * 24

// throng is a market of many sellers, who are made when somebody calls them. Their records
// are in indexes; below index.From there are none, and the users hear the sellers.
type throng struct {
	lab     *Lab
	stop    func() error
	sellers []seller
	records []message.Record // signed at market.Dawn
	by      map[protocol.AgentID]int
	probes  [states]glimpse
}

// glimpse is the state of a machine at the time of the request.
type glimpse struct {
	load  int     // in the seller's record
	idle  float64 // share of its band by which the seller goes down in a round
	offer bool    // whether it has room
}

// newCrowd makes n sellers from the seed, until stop returns an error. Each has prices of its own, within a tenth of
// those of its resource, and live sites' price rule.
func (l *Lab) newCrowd(n int, stop func() error, progress func(done, of int)) (*throng, error) {
	c := &throng{lab: l, stop: stop, sellers: l.sellersUpTo(n), by: map[protocol.AgentID]int{}}
	c.probe()
	draw := sim.NewChance(l.Seed, 7)
	spread := l.Settings.Spread
	for i := range c.sellers {
		b := &c.sellers[i].band
		b.Rule = pricing.List
		b.Start = b.Start / 1000 * protocol.Credits(1000-spread+draw.N(2*spread+1))
		b.Min = min(b.Min/1000*protocol.Credits(1000-spread+draw.N(2*spread+1)), b.Start)
		s := c.sellers[i]
		cred := l.cast.Credential(s.name)
		r, err := codec.SealRecord(cred, message.Record{
			Issued: market.Dawn, Load: c.probes[i%states].load,
			Presence: message.Presence{
				Agent: protocol.KindResource, Properties: protocol.Properties{OS: "Linux", Arch: "x86_64", Cores: s.on.cores}, Start: b.Start, Min: b.Min,
				Terms: []protocol.Terms{l.cast.Terms()}, Modes: []protocol.Mode{protocol.ModeOnReservation}, TTL: index.Life, Counter: 1,
			},
		})
		if err = errors.Join(err, stop()); err != nil {
			return nil, err
		}
		c.records = append(c.records, r)
		c.by[cred.ID] = i
		progress(i+1, n)
	}
	return c, nil
}

// issueCrowd creates the credentials of n indexes, of the users and of who brings the records.
func (l *Lab) issueCrowd(n int) {
	l.issue(l.Buyers, nil)
	l.cast.Credential(carrierName)
	for i := range n {
		l.cast.Credential(indexName(i + 1))
	}
}

const carrierName = "carrier"

// crowdRounds is low enough for prices to stay above the minima.
const crowdRounds = 3

func crowdJob() job { return job{"crowd", 16, time.Hour, credits(70)} }

func (l *Lab) crowdOptions() message.Options {
	return message.Options{Rounds: crowdRounds, RoundLimit: l.Settings.RoundLimit, QuoteOnly: true}
}

// probe calls a seller in each state once, to learn its load and what it goes down.
func (c *throng) probe() {
	list := c.lab.sellersUpTo(states)
	c.lab.issue(1, list)
	s := c.lab.stage(play{seed: c.lab.Seed, sellers: list, users: 1, prompt: true, budget: -1})
	options := c.lab.crowdOptions()
	options.Rounds = 1
	s.buy(0, "probe", options, crowdJob())
	at := map[string]int{}
	for i, x := range list {
		at[x.name] = i
		c.probes[i].load = resource.LoadOf(s.world.Host(x.name).Role().(*resource.Role), s.world.Now())
	}
	for _, b := range s.watch.of("probe") {
		i := at[b.seller]
		if fall := float64(b.standing - b.price); b.round == 1 {
			c.probes[i].offer, c.probes[i].idle = true, fall/float64(list[i].band.Start-list[i].band.Min)
		}
	}
}

// asks is the price that an auction among the first n sellers reaches if everybody is
// asked in every round, and the lowest minimum of them all. It is worked out from the
// price rule, not played: each but the one that leads goes down from what stands.
func (c *throng) asks(n int) (price, floor float64) {
	standing, leader := float64(crowdJob().price), -1
	floor = standing
	for range crowdRounds {
		best, who := standing, leader
		for i, s := range c.sellers[:n] {
			p, least := c.probes[i%states], float64(s.band.Min)
			floor = min(floor, least)
			if !p.offer || i == leader || least > standing {
				continue
			}
			ask := max(standing-p.idle*float64(s.band.Start-s.band.Min), least)
			if start := float64(s.band.Start); standing > start {
				ask = start
			}
			if ask < best {
				best, who = ask, i
			}
		}
		standing, leader = best, who
	}
	return standing / float64(protocol.Credit), floor / float64(protocol.Credit)
}

// summon makes a seller's host.
func (c *throng) summon(s *stage, faults sim.Faults) func(protocol.AgentID) (sim.Spec, bool) {
	return func(id protocol.AgentID) (sim.Spec, bool) {
		i, ok := c.by[id]
		if !ok {
			return sim.Spec{}, false
		}
		spec := s.sellerSpec(c.lab, c.sellers[i], sim.NewChance(c.lab.Seed, uint64(1000+i)), faults, 0)
		load := spec.Load
		spec.Load = func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
			r, out, err := load(t, now)
			return quiet{r}, withoutPresence(out), err
		}
		return spec, true
	}
}

// quiet is a seller whose presences a large market does not hear.
type quiet struct{ agents.Role }

// Receive leaves presences out.
func (q quiet) Receive(now time.Time, m protocol.Message) protocol.Output {
	return withoutPresence(q.Role.Receive(now, m))
}

// Wake leaves presences out.
func (q quiet) Wake(now time.Time) protocol.Output { return withoutPresence(q.Role.Wake(now)) }

func withoutPresence(out protocol.Output) protocol.Output {
	kept := out.Send[:0:0]
	for _, m := range out.Send {
		if _, ok := m.Body.(message.Presence); !ok {
			kept = append(kept, m)
		}
	}
	out.Send = kept
	return out
}

// volunteer is a site that only keeps an index. It announces itself now and then.
type volunteer struct {
	self    protocol.AgentID
	counter uint64
	next    time.Time
}

// Receive does nothing.
func (v *volunteer) Receive(time.Time, protocol.Message) protocol.Output { return protocol.Output{} }

// Wake announces the volunteer.
func (v *volunteer) Wake(now time.Time) protocol.Output {
	if now.Before(v.next) {
		return protocol.Output{WakeAt: v.next}
	}
	v.counter++
	v.next = now.Add(index.Beat)
	return protocol.Output{WakeAt: v.next, Send: []protocol.Message{{
		Performative: protocol.Inform, Sender: v.self, Receivers: []protocol.AgentID{protocol.Everyone},
		Protocol: protocol.ProtocolPresence, Conversation: "presence",
		Body: message.Presence{Agent: protocol.KindBank, TTL: presence, Counter: v.counter},
	}}}
}

func indexName(i int) string { return fmt.Sprintf("index%d", i) }

// indexesOf is how many indexes a market of n sellers has: at most 200 volunteer.
func indexesOf(n int) int {
	if n < index.From {
		return 0
	}
	return min(max(n/500, 5), 200)
}

// addIndexes adds the indexes to a stage; twist may make one dishonest.
func (s *stage) addIndexes(l *Lab, n int, twist func(i int, r agents.Role) agents.Role) {
	for i := range n {
		cred := l.cast.Credential(indexName(i + 1))
		s.indexes = append(s.indexes, s.world.Add(sim.Spec{
			Name: indexName(i + 1), Credential: cred, HearPresence: true,
			Load: func(_ protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
				server, out := index.NewServer(index.Home{ID: cred.ID, Issuer: codec.IssuerOf(cred.Chain)}, &volunteer{self: cred.ID}, now)
				s.servers = append(s.servers, server)
				role := agents.Role(server)
				if twist != nil {
					role = twist(i, role)
				}
				return role, out.Join(role.Wake(now)), nil
			},
		}))
	}
}

// carrier brings the records of the whole crowd to the indexes: whoever does, they are the
// sellers'.
type carrier struct{}

// Receive does nothing.
func (carrier) Receive(time.Time, protocol.Message) protocol.Output { return protocol.Output{} }

// Wake does nothing.
func (carrier) Wake(time.Time) protocol.Output { return protocol.Output{} }

// atOnce is how many messages an index takes in a beat from a carrier, with room to spare.
const atOnce = index.MaxSent * 3 / 4

// list has the records of n sellers kept: first in classes that are not split yet; when
// the indexes have counted them, in their shards.
func (c *throng) list(s *stage, n int) {
	cred := c.lab.cast.Credential("carrier")
	host := s.world.Add(sim.Spec{Name: carrierName, Credential: cred, Load: func(protocol.Tables, time.Time) (agents.Role, protocol.Output, error) {
		return carrier{}, protocol.Output{}, nil
	}})
	homes := each(s.indexes, func(h *sim.Host) index.Home { return index.Home{ID: h.ID(), Issuer: codec.IssuerOf(cred.Chain)} })
	counts := map[int]int{}
	for _, split := range []bool{false, true} {
		count := func(_ protocol.Terms, class int) int {
			if !split {
				return 0
			}
			return counts[class]
		}
		batches := map[message.Shard][]message.Record{}
		var order []message.Shard
		for _, r := range c.records[:n] {
			shard := index.Shards(r, count, 0)[0]
			if batches[shard] == nil {
				order = append(order, shard)
			}
			batches[shard] = append(batches[shard], r)
			if !split {
				counts[shard.Class]++
			}
		}
		c.carry(s, host, homes, order, batches)
		s.rest(3 * index.Beat) // they know each other, have counted, and announce the sum
	}
}

// carry sends batches of records to the homes of their shards.
func (c *throng) carry(s *stage, from *sim.Host, homes []index.Home, order []message.Shard, batches map[message.Shard][]message.Record) {
	sent := map[protocol.AgentID]int{}
	for _, shard := range order {
		to := index.Place(shard, homes, index.Replicas)
		for list := range slices.Chunk(batches[shard], message.MaxRecords) {
			for _, id := range to {
				if sent[id]++; sent[id] >= atOnce {
					s.rest(2 * index.Beat)
					clear(sent)
				}
			}
			s.world.Do(from, func(time.Time) protocol.Output {
				return protocol.Output{Send: []protocol.Message{{
					Performative: protocol.Request, Sender: from.ID(), Receivers: to, Protocol: protocol.ProtocolIndex,
					Conversation: "record", Body: message.Records{List: list},
				}}}
			})
		}
	}
}

// crowdResult is one market of the crowd.
type crowdResult struct {
	resources, buyers, settled     int
	price, worst, everybody, floor float64
	seconds                        float64 // mean time of an auction
	messages, bytes                float64 // of one auction
	proposals                      int     // most in a round
	offers                         int     // proposals of all rounds and users
	callsMean, callsMost           float64 // of the sellers that were called
	called                         int     // sellers
	perRound                       int     // most sellers called in a round
	indexes                        int
	records                        int     // most in an index
	queries, queriesMost           float64 // of an index
	memory                         uint64
}

// play runs one market: users ask for a quote at the same instant. Once the crowd is to stop,
// the result means nothing.
func (c *throng) play(n, buyers int, twist func(i int, r agents.Role) agents.Role) crowdResult {
	l := c.lab
	s, faults := l.empty(play{seed: l.seed(n), prompt: true})
	s.stop = c.stop
	x := crowdResult{resources: n, buyers: buyers, indexes: indexesOf(n)}
	x.everybody, x.floor = c.asks(n)
	s.world.Hook(sim.Hooks{Fate: s.serve.fate})
	addUsers := func() {
		for i := range buyers {
			s.addUser(l, market.UserName(i+1), 0)
		}
	}
	if x.indexes == 0 {
		addUsers()
		for i, y := range c.sellers[:n] {
			s.addSeller(l, y, sim.NewChance(l.Seed, uint64(1000+i)), faults, 0)
		}
		s.rest(opening)
	} else {
		s.world.Summon(c.summon(s, faults))
		s.addIndexes(l, x.indexes, twist)
		s.rest(opening)
		c.list(s, n)
		addUsers()
		s.rest(heartbeat) // they hear the bank and the indexes
	}
	calls := &callCounter{heard: map[protocol.AgentID]int{}, round: map[callKey]int{}}
	s.world.Watch(calls)
	for i := range buyers {
		s.order(i, fmt.Sprintf("crowd%d", i+1), l.crowdOptions(), crowdJob())
	}
	s.await(buyers)
	x.messages, x.bytes = float64(calls.messages)/float64(buyers), float64(calls.bytes)/float64(buyers)
	x.sum(s, calls)
	return x
}

// sum fills in what the users and the indexes have got.
func (x *crowdResult) sum(s *stage, calls *callCounter) {
	for i, o := range s.owner {
		p := o.done[fmt.Sprintf("crowd%d", i+1)]
		if p.State != "quoted" || len(p.Units) == 0 {
			continue
		}
		price := float64(p.Units[0].Price) / float64(protocol.Credit)
		x.settled++
		x.price += price
		x.worst = max(x.worst, price)
		x.seconds += p.AuctionMS / 1000
	}
	x.price, x.seconds = x.price/float64(max(x.settled, 1)), x.seconds/float64(max(x.settled, 1))
	for _, k := range s.watch.proposed {
		x.proposals = max(x.proposals, k)
		x.offers += k
	}
	x.called = len(calls.heard)
	for _, k := range calls.heard {
		x.callsMean += float64(k)
		x.callsMost = max(x.callsMost, float64(k))
	}
	x.callsMean /= float64(max(x.called, 1))
	for _, k := range calls.round {
		x.perRound = max(x.perRound, k)
	}
	for _, server := range s.servers {
		k := server.Counts()
		x.records = max(x.records, server.Sizes()[0].N)
		x.queries += float64(k.Queries) / float64(len(s.servers))
		x.queriesMost = max(x.queriesMost, float64(k.Queries))
	}
	x.memory = peakMemory()
}

// callCounter counts the calls that sellers hear, the sellers of a round, and the messages
// of auctions and searches.
type callCounter struct {
	heard           map[protocol.AgentID]int
	round           map[callKey]int
	messages, bytes int
}

// Delivered counts a message.
func (c *callCounter) Delivered(to, _ *sim.Host, m protocol.Message) {
	if !counted(m) {
		return
	}
	c.messages++
	if body, ok := m.Body.(message.CallForProposals); ok {
		c.heard[to.ID()]++
		c.round[callKey{m.Conversation, body.Round}]++
	}
}

// Durable does nothing.
func (*callCounter) Durable(*sim.Host, []protocol.Record) {}

// Refused does nothing.
func (*callCounter) Refused(*sim.Host, protocol.AgentID, error) {}

// Sent counts the bytes for every receiver.
func (c *callCounter) Sent(_ *sim.Host, m protocol.Message) {
	if !counted(m) {
		return
	}
	if b, err := codec.Encode(m); err == nil { // a world has encoded it
		c.bytes += len(b) * len(m.Receivers)
	}
}

// counted reports whether a message belongs to an auction or a search.
func counted(m protocol.Message) bool {
	_, digest := m.Body.(message.IndexDigest)
	return m.Protocol == protocol.ProtocolAuction || m.Protocol == protocol.ProtocolIndex && !digest
}

// peakMemory is the most memory that the process has held.
func peakMemory() uint64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return uint64(u.Maxrss) << 10
}

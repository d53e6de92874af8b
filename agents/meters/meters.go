// Package meters has an agent's figures for Prometheus.
package meters

import (
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"ramp/agents/control"
	"ramp/protocol"
	"ramp/protocol/message"
)

// maxTimed bounds how many contracts are timed until the bank decides; further ones are not.
const maxTimed = 4096

// Meters counts the messages that arrived at one agent and left it, for Prometheus.
// Messages leave when they are durable, so the figures have nothing that is not.
type Meters struct {
	Registry *prometheus.Registry

	auctions, rounds, offers prometheus.Counter
	refusals                 counters
	votes                    *prometheus.CounterVec
	purchases, decisions     *prometheus.CounterVec
	settlement               prometheus.Histogram

	mu    sync.Mutex
	asked map[protocol.ContractID]time.Time // when the first copy of an undecided contract passed
}

// New are the meters of an agent, all at zero.
func New(agent protocol.AgentID) *Meters {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	vector := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	}
	refusals := vector("ramp_refusals_total", "Refusals to bid, to hold or to settle, made or heard, by reason.", "reason")
	m := &Meters{
		Registry: prometheus.NewRegistry(), asked: map[protocol.ContractID]time.Time{},
		auctions:  counter("ramp_auctions_total", "Auctions that this agent took part in."),
		rounds:    counter("ramp_rounds_total", "Rounds of bidding that it took part in."),
		offers:    counter("ramp_offers_total", "Offers made by a resource, or heard by a user."),
		refusals:  counters{vec: refusals},
		votes:     vector("ramp_votes_total", "Answers to accepted offers, made or heard.", "answer"),
		purchases: vector("ramp_purchases_total", "Purchases that are over, by how they ended.", "state"),
		decisions: vector("ramp_decisions_total", "Contracts that the bank decided, made or heard, by outcome.", "outcome"),
		settlement: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ramp_settlement_seconds", Help: "From the first copy of a contract at the bank to the decision.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
		}),
	}
	about := prometheus.NewGauge(prometheus.GaugeOpts{Name: "ramp_agent_info", Help: "Which agent this is; always 1.",
		ConstLabels: prometheus.Labels{"agent": string(agent)}})
	about.Set(1)
	m.Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), about,
		m.auctions, m.rounds, m.offers, refusals, m.votes, m.purchases, m.decisions, m.settlement)
	return m
}

// Gauge adds a figure that is computed when Prometheus reads it.
func (m *Meters) Gauge(name, help string, read func() float64) {
	m.Registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
}

// counters are those of a vector, found faster than in it: an auction has hundreds of refusals.
type counters struct {
	vec   *prometheus.CounterVec
	known sync.Map // of prometheus.Counter, by label: few, as codes are a closed set
}

func (c *counters) of(label string) prometheus.Counter {
	if found, ok := c.known.Load(label); ok {
		return found.(prometheus.Counter)
	}
	made := c.vec.WithLabelValues(label)
	c.known.Store(label, made)
	return made
}

// See counts a message that arrived or left.
func (m *Meters) See(at time.Time, in bool, msg protocol.Message) {
	switch body := msg.Body.(type) {
	case message.CallForProposals:
		m.rounds.Inc()
		if body.Round == 1 {
			m.auctions.Inc()
		}
	case message.Proposal:
		m.offers.Add(float64(len(body.Offers)))
	case message.Refusal:
		m.refused(msg, body)
	case message.Vote:
		m.votes.WithLabelValues("agree").Inc()
	case message.Settlement:
		m.settles(at, body.Sale.Verified.ID)
	case message.Decision:
		m.decided(at, body)
	case message.Progress:
		if body.Done && !in {
			m.purchases.WithLabelValues(body.Purchase.State).Inc()
		}
	}
}

func (m *Meters) refused(msg protocol.Message, body message.Refusal) {
	if msg.Performative != protocol.Refuse || len(body.Reasons) == 0 {
		return
	}
	m.refusals.of(string(body.Reasons[0].Code)).Inc()
	if msg.Protocol == protocol.ProtocolCommit {
		m.votes.WithLabelValues("refuse").Inc()
	}
}

func (m *Meters) settles(at time.Time, id protocol.ContractID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.asked[id]; !known && len(m.asked) < maxTimed {
		m.asked[id] = at
	}
}

// decided counts a decision once, though several agents hear it, repeatedly. A refund names
// a contract that was decided earlier.
func (m *Meters) decided(at time.Time, d message.Decision) {
	if d.Outcome != protocol.OutcomeSettled && d.Outcome != protocol.OutcomeVoid {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	since, known := m.asked[d.Contract]
	if !known {
		return
	}
	delete(m.asked, d.Contract)
	m.decisions.WithLabelValues(string(d.Outcome)).Inc()
	m.settlement.Observe(at.Sub(since).Seconds())
}

// Gossip adds the figures of gossip, read when Prometheus asks.
func (m *Meters) Gossip(read func() control.Gossip) {
	const bytes, peers = "ramp_presence_bytes_total", "ramp_gossip_peers"
	for way, of := range map[string]func(control.Gossip) uint64{
		"in": func(g control.Gossip) uint64 { return g.In }, "out": func(g control.Gossip) uint64 { return g.Out },
	} {
		m.Registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: bytes, Help: "Bytes of presences and of the gossip that carries them.", ConstLabels: prometheus.Labels{"direction": way},
		}, func() float64 { return float64(of(read())) }))
	}
	for score, of := range map[string]func(control.Gossip) int{
		"any": func(g control.Gossip) int { return g.Peers }, "low": func(g control.Gossip) int { return g.Low }, "graylisted": func(g control.Gossip) int { return g.Deaf },
	} {
		m.Registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: peers, Help: "Peers by their score in gossip: any, below zero, so low that nothing of theirs is taken.", ConstLabels: prometheus.Labels{"score": score},
		}, func() float64 { return float64(of(read())) }))
	}
	m.Gauge("ramp_gossip_worst_score", "The lowest score of a peer; 0: none is below.", func() float64 { return read().Worst })
}

// Index adds the figures of an index, read when Prometheus asks; nil: it does not answer.
func (m *Meters) Index(read func() *control.IndexStand) {
	for _, g := range []struct {
		name, help string
		of         func(s *control.IndexStand) int
	}{
		{"records", "Sellers' records that this index keeps.", func(s *control.IndexStand) int { return s.Records }},
		{"servers", "Other indexes that it knows.", func(s *control.IndexStand) int { return s.Servers }},
		{"market", "Sellers of the market, as far as it knows.", func(s *control.IndexStand) int { return s.Market }},
		{"brought", "Records that were brought to it.", func(s *control.IndexStand) int { return s.Brought }},
		{"refused", "Records of them that it has refused.", func(s *control.IndexStand) int { return s.Refused }},
		{"queries", "Queries that it has answered.", func(s *control.IndexStand) int { return s.Queries }},
		{"fetched", "Records that it has sent to users.", func(s *control.IndexStand) int { return s.Fetched }},
		{"dropped", "Messages beyond the allowance of their sender.", func(s *control.IndexStand) int { return s.Dropped }},
	} {
		m.Gauge("ramp_index_"+g.name, g.help, func() float64 {
			if s := read(); s != nil {
				return float64(g.of(s))
			}
			return math.NaN()
		})
	}
}

// Package meters has an agent's figures for Prometheus.
package meters

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

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

package meters

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"ramp/agents/control"
)

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

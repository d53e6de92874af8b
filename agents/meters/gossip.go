package meters

import (
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

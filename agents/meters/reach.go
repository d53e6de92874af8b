package meters

import (
	"github.com/prometheus/client_golang/prometheus"

	"ramp/agents/control"
)

// Reach adds the figures of how the agent is reached, read when Prometheus asks.
func (m *Meters) Reach(read func() control.Reach) {
	m.Registry.MustRegister(&reach{
		read:        read,
		connections: prometheus.NewDesc("ramp_connections", "Open connections, by path.", []string{"path"}, nil),
		figures: map[*prometheus.Desc]func(control.Reach) int{
			prometheus.NewDesc("ramp_relays", "Relays through which others reach this agent.", nil, nil):         func(r control.Reach) int { return len(r.Relays) },
			prometheus.NewDesc("ramp_relay_reservations", "Agents that are reached through this one.", nil, nil): func(r control.Reach) int { return r.Reservations },
			prometheus.NewDesc("ramp_relay_circuits", "Connections of others through this agent.", nil, nil):     func(r control.Reach) int { return r.Circuits },
		},
		bytes:   prometheus.NewDesc("ramp_relay_bytes_total", "Bytes relayed for others.", nil, nil),
		punched: prometheus.NewDesc("ramp_punches_total", "Attempts to punch a direct path, by how they ended.", []string{"result"}, nil),
	})
}

// reach reads all its figures at once.
type reach struct {
	read        func() control.Reach
	connections *prometheus.Desc
	figures     map[*prometheus.Desc]func(control.Reach) int
	bytes       *prometheus.Desc
	punched     *prometheus.Desc
}

func (r *reach) Describe(out chan<- *prometheus.Desc) {
	out <- r.connections
	out <- r.bytes
	out <- r.punched
	for d := range r.figures {
		out <- d
	}
}

func (r *reach) Collect(out chan<- prometheus.Metric) {
	now := r.read()
	gauge := func(d *prometheus.Desc, n int, label ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), label...)
	}
	count := func(d *prometheus.Desc, n float64, label ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, n, label...)
	}
	gauge(r.connections, now.TCP, "tcp")
	gauge(r.connections, now.QUIC, "quic")
	gauge(r.connections, now.Relayed, "relayed")
	for d, of := range r.figures {
		gauge(d, of(now))
	}
	count(r.bytes, float64(now.RelayedBytes))
	count(r.punched, float64(now.Punched), "direct")
	count(r.punched, float64(now.Unpunched), "failed")
}

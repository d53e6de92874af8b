package node

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"ramp/agents"
	"ramp/agents/exit"
	"ramp/agents/meters"
	"ramp/agents/web"
	"ramp/protocol"
)

// healthTime is how long a healthy agent may take to answer.
const healthTime = 2 * time.Second

type health struct {
	Status string           `json:"status"` // ok, or why not
	Agent  protocol.AgentID `json:"agent"`
	Peers  int              `json:"peers"` // agents that it is connected to
}

// watchfulStore notes whether the last write succeeded, and raises writes after it.
// If a write fails, it ends what owners follow: the runner drops the role then.
type watchfulStore struct {
	store
	lost    func(err error)
	failing *atomic.Bool
	writes  *wakeup
}

func (s watchfulStore) Append(records []protocol.Record) error {
	err := s.store.Append(records)
	s.failing.Store(err != nil)
	if err != nil {
		s.lost(errUnwritten)
	} else {
		s.writes.raise()
	}
	return err
}

// monitor tells other programs how the agent is: its metrics and its health.
type monitor struct {
	*meters.Meters
	agent   protocol.AgentID
	failing atomic.Bool // the last write failed
	runner  *agents.Runner
	peers   func() int // connected agents
	log     *slog.Logger
}

// health checks that the role answers, which it does unless something hangs.
func (m *monitor) health(ctx context.Context) health {
	h := health{Status: "ok", Agent: m.agent, Peers: m.peers()}
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	err := m.runner.Do(ctx, func(time.Time, agents.Role) protocol.Output { return protocol.Output{} })
	switch {
	case m.failing.Load() || errors.Is(err, agents.ErrUnavailable):
		h.Status = "the store cannot be written"
	case err != nil:
		h.Status = "the agent does not answer: " + err.Error()
	}
	return h
}

// routes answers monitoring programs. They change nothing.
func (m *monitor) routes(mux *http.ServeMux) {
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.Registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		h := m.health(r.Context())
		w.Header().Set("Content-Type", "application/json")
		if h.Status != "ok" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(h) // the caller has gone, or sees it
	})
}

// serve serves the routes on a loopback address until stop is called; without an address
// it does nothing.
func (m *monitor) serve(address string) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, exit.Fail(exit.Failed, "choose another address under 'monitor', or stop the other process", "monitor: %w", err)
	}
	mux := http.NewServeMux()
	m.routes(mux)
	server := &http.Server{Handler: web.OnlyLoopback(mux), ReadHeaderTimeout: time.Minute, ReadTimeout: time.Minute, MaxHeaderBytes: 1 << 14}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }() // it ends with Close
	m.log.Info("monitor", "address", l.Addr().String())
	return func() { _ = server.Close(); <-done }, nil
}

// figure adds a gauge that is read from the role: NaN if the role does not answer in time.
func (m *monitor) figure(name, help string, read func(now time.Time, r agents.Role) int) {
	m.Gauge(name, help, func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), healthTime)
		defer cancel()
		value, err := agents.Read(ctx, m.runner, read)
		if err != nil {
			return math.NaN()
		}
		return float64(value)
	})
}

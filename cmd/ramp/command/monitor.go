package command

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"ramp/agents"
	"ramp/protocol"
)

// healthTime is how long a healthy agent takes to answer at most.
const healthTime = 2 * time.Second

// health is what /healthz says.
type health struct {
	Status string           `json:"status"` // ok, or why not
	Agent  protocol.AgentID `json:"agent"`
	Peers  int              `json:"peers"` // agents that it is connected to
}

// watchfulStore remembers whether the last write went well.
type watchfulStore struct {
	store
	failing *atomic.Bool
}

// Append is the store's.
func (s watchfulStore) Append(records []protocol.Record) error {
	err := s.store.Append(records)
	s.failing.Store(err != nil)
	return err
}

// health asks the role to answer, which it does if nothing hangs.
func (n *node) health(ctx context.Context) health {
	h := health{Status: "ok", Agent: n.cred.ID}
	if n.mesh != nil {
		h.Peers = n.mesh.Peers()
	}
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	err := n.runner.Do(ctx, func(time.Time, agents.Role) protocol.Output { return protocol.Output{} })
	switch {
	case n.failing.Load() || errors.Is(err, agents.ErrUnavailable):
		h.Status = "the store cannot be written"
	case err != nil:
		h.Status = "the agent does not answer: " + err.Error()
	}
	return h
}

// monitorRoutes are what machines ask that look after the agent. They change
// nothing.
func (n *node) monitorRoutes(mux *http.ServeMux) {
	mux.Handle("GET /metrics", promhttp.HandlerFor(n.meters.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		h := n.health(r.Context())
		w.Header().Set("Content-Type", "application/json")
		if h.Status != "ok" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(h) // the caller has gone, or sees it
	})
}

// checkMonitor holds that an address is one of this machine only: figures tell
// who trades with whom, and there is no password.
func checkMonitor(address string) error {
	if address == "" {
		return nil
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().IsLoopback() {
		return fail(exitUsage, "", "configuration: monitor: %q: want a loopback address and a port, such as 127.0.0.1:9301", address)
	}
	return nil
}

// monitor serves the figures on the configured loopback address until stop is
// called; without one it does nothing.
func (n *node) monitor() (stop func(), err error) {
	if n.cfg.Monitor == "" {
		return func() {}, nil
	}
	l, err := net.Listen("tcp", n.cfg.Monitor)
	if err != nil {
		return nil, fail(exitFailed, "choose another address under 'monitor', or stop the other process", "monitor: %w", err)
	}
	mux := http.NewServeMux()
	n.monitorRoutes(mux)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute, ReadTimeout: time.Minute, MaxHeaderBytes: 1 << 14}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }() // it ends with Close
	n.log.Info("monitor", "address", l.Addr().String())
	return func() { _ = server.Close(); <-done }, nil
}

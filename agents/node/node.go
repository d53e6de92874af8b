// Package node runs one agent on this machine: it connects a role to its store, the mesh,
// the batch driver, staged files, metrics and the control socket, and it starts, reloads
// and stops them. Daemons, commands without a daemon, the demo and tests use it. The role
// decides; the node only carries out.
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"ramp/agents"
	"ramp/agents/background"
	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/index"
	"ramp/agents/journal"
	"ramp/agents/mesh"
	"ramp/agents/meters"
	"ramp/agents/stage"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/identity"
)

// Bounds of a node.
const (
	TraceBytes      = 256 << 20        // traced messages in a journal
	VerifiedBundles = 1 << 12          // verified bundles that the codec remembers
	flushPeriod     = time.Second      // until a traced message is on the disk
	ShutdownTime    = 5 * time.Second  // for a daemon to stop
	JoinTime        = 10 * time.Second // for a command to find the market
	FirstSite       = 5 * time.Second  // then for an order to hear of a first site
)

// Node is one agent on this machine: a role, its store, and what connects it.
type Node struct {
	Cfg     *config.Config
	Cred    *identity.Credential
	trust   *identity.Trust
	store   store
	journal *journal.Journal // of user and resource agents
	Mesh    *mesh.Mesh       // nil: without the network
	Runner  *agents.Runner
	pending *pending
	Log     *slog.Logger
	ready   func(background.Ready) error // reports that a daemon is ready

	News     news
	monitor  *monitor
	settings settings
	Index    *index.Keeper // of banks and sites

	queue   func(protocol.Message) // the batch system of a resource
	files   func(protocol.Message) // the transfers of jobs' files, of users and resources
	history func(protocol.Message) // the past of a bank; of the others their receipts
	leads   func() bool            // nil: no other process can speak for this agent
	prepare func(protocol.Message) // called before a message is encoded; may be nil

	writes     *wakeup // raised by each write
	sendEvents control.FollowEvents

	porter *stage.Porter   // of users
	life   context.Context //nolint:containedctx // of transfers that other agents began
	die    context.CancelFunc
	cancel context.CancelFunc
	wg     sync.WaitGroup
	ended  chan struct{} // closed when the runner has ended
	failed error         // of the runner
	since  time.Time     // when the daemon was ready
}

// Prepare reads who the agent is.
func Prepare(path string, log *slog.Logger) (*Node, error) {
	s, err := readSettings(path, log)
	if err != nil {
		return nil, err
	}
	n := &Node{
		Cfg: s.cfg, Cred: s.cred, trust: s.trust, settings: s, Log: log, pending: &pending{waiting: map[string]chan protocol.Message{}}, ready: background.TellReady, writes: newWakeup(), ended: make(chan struct{}),
		News: newNews(s.cfg.Kind(), time.Now()), monitor: &monitor{Meters: meters.New(s.cred.ID), agent: s.cred.ID, log: log, peers: func() int { return 0 }},
	}
	n.sendEvents = n.News.events.follow
	n.life, n.die = context.WithCancel(context.Background())
	return n, nil
}

// Wire is the codec of this agent. If seal is not nil, it completes each message before it
// is encoded: a bank signs its receipts there.
type Wire struct {
	codec.Opener
	seal func(protocol.Message) (protocol.Message, error)
}

// Encode completes and encodes a message.
func (w Wire) Encode(m protocol.Message) ([]byte, error) {
	if w.seal != nil {
		var err error
		if m, err = w.seal(m); err != nil {
			return nil, err
		}
	}
	return codec.Encode(m)
}

// connect opens the network. Sellers hear calls for proposals; adapt may change the mesh's
// configuration.
func (n *Node) connect(hearCalls bool, seal func(protocol.Message) (protocol.Message, error), adapt ...func(*mesh.Config)) error {
	cfg := mesh.Config{
		Credential: n.Cred, Trust: n.trust,
		Codec:   Wire{codec.NewOpener(n.trust, VerifiedBundles), seal},
		Deliver: n.deliver,
		Listen:  n.Cfg.Listen, Announce: n.Cfg.Announce,
		Bootstrap: n.Cfg.Bootstrap, Peers: n.Cfg.Peers(), Revocations: n.Cfg.Revocations(n.Cred, n.trust), Nearby: n.Cfg.MDNS, HearPresence: true, HearCalls: hearCalls,
		Visitor: n.Cfg.User != nil, Log: n.Log,
	}
	for _, f := range adapt {
		f(&cfg)
	}
	mesh.LibraryLog(n.Log.Handler())
	m, err := mesh.Listen(cfg)
	switch {
	case errors.Is(err, mesh.ErrAddressInUse):
		return exit.Fail(exit.Failed, "choose another address under 'listen', or stop the other process", "%w", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return exit.Fail(exit.Usage, "choose an address of this machine under 'listen', or 0.0.0.0 for all of them", "%w", err)
	case err != nil:
		return exit.Fail(exit.Usage, "", "%w", err)
	}
	n.Mesh, n.settings.recheck, n.monitor.peers = m, m.Recheck, m.Peers
	n.monitor.Reach(func() control.Reach { return control.Reach(m.Reach()) })
	n.monitor.Gossip(n.gossip)
	return nil
}

// deliver passes a message of the network to the command that waits for it, or to the role.
func (n *Node) deliver(m protocol.Message) error {
	if n.pending.take(m) {
		return nil
	}
	return n.Runner.Deliver(m)
}

// start makes the runner of the role, which load restores.
func (n *Node) start(load func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error)) {
	cfg := agents.Config{
		Load: load, Store: watchfulStore{n.store, n.News.lost, &n.monitor.failing, n.writes}, Route: n.route, Prepare: n.prepare,
		Unavailable: func(m protocol.Message) (protocol.Message, bool) { return agents.Unavailable(n.Cred.ID, m) }, Now: time.Now, Log: n.Log,
	}
	cfg.Trace = n.observe
	n.Runner = agents.NewRunner(cfg)
	n.monitor.runner = n.Runner
}

// Run starts the goroutines of the node; stop ends them.
func (n *Node) Run(ctx context.Context) {
	ctx, n.cancel = context.WithCancel(ctx)
	n.wg.Go(func() {
		defer close(n.ended)
		if n.failed = n.Runner.Run(ctx); errors.Is(n.failed, protocol.ErrDisk) {
			n.failed = fmt.Errorf("the agent has ended: %w", n.failed)
		}
		n.cancel()
	})
	if n.journal != nil {
		n.wg.Go(func() { n.flush(ctx) })
	}
}

// flush makes traced messages durable while nothing else is written.
func (n *Node) flush(ctx context.Context) {
	for {
		select {
		case <-n.journal.Traced():
			agents.Pause(ctx, flushPeriod) // if ctx ends, what waits is written at once
			if err := n.journal.Flush(); err != nil {
				n.Log.Error("cannot write the trace", "err", err)
				n.endOn(ctx, err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// endOn ends the runner if the disk has failed: the store refuses what it writes now.
func (n *Node) endOn(ctx context.Context, err error) {
	if errors.Is(err, protocol.ErrDisk) {
		_ = n.Runner.Do(ctx, func(time.Time, agents.Role) protocol.Output {
			return protocol.Output{Save: []protocol.Record{{Table: "probe", Key: "probe", Value: []byte("1")}}}
		})
	}
}

// Stop ends the node. It carries out what the role has answered first.
func (n *Node) Stop() error {
	if n.cancel != nil {
		n.cancel()
	}
	n.die()
	if n.porter != nil {
		n.porter.Close()
	}
	n.wg.Wait()
	var errs []error
	if n.Mesh != nil {
		errs = append(errs, n.Mesh.Close())
	}
	if n.store != nil {
		errs = append(errs, n.store.Close())
	}
	return errors.Join(append(errs, n.failed)...)
}

func (n *Node) route(m protocol.Message) {
	var others []protocol.AgentID
	for _, to := range m.Receivers {
		switch to {
		case protocol.LocalControl:
			n.News.publish(m)
		case protocol.LocalQueue:
			n.queue(m)
		case protocol.LocalFiles:
			n.files(m)
		case protocol.LocalHistory:
			n.history(m)
		default:
			others = append(others, to)
		}
	}
	if len(others) == 0 || n.Mesh == nil || n.leads != nil && !n.leads() {
		return
	}
	m.Receivers = others
	n.Mesh.Send(m)
}

// addressesName is the file of a daemon's addresses, one per line, for the 'bootstrap' of
// other agents.
const addressesName = "addresses"

// serve answers on the control socket until the context is done, then calls leave.
func (n *Node) serve(ctx context.Context, routes func(*http.ServeMux), leave func()) error {
	l, err := control.Listen(n.Cfg.Dir)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	routes(mux)
	n.since = time.Now()
	n.statusRoutes(mux)
	n.settings.routes(mux)
	n.monitor.routes(mux)
	stopRest, err := n.serveRest(mux)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer stopRest()
	server := &http.Server{Handler: control.Versioned(mux), ReadHeaderTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return ctx }}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	defer n.settings.watch(ctx)()
	if err := n.tellReady(ctx); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-n.ended:
	case err := <-served:
		return err
	}
	n.Log.Info("stopping")
	leave()
	done, cancel := context.WithTimeout(context.WithoutCancel(ctx), ShutdownTime)
	defer cancel()
	err = server.Shutdown(done)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	return errors.Join(err, os.RemoveAll(control.SocketPath(n.Cfg.Dir)))
}

// tellReady reports that the daemon is ready, once its state is loaded.
func (n *Node) tellReady(ctx context.Context) error {
	err := n.Runner.Do(ctx, func(time.Time, agents.Role) protocol.Output { return protocol.Output{} })
	if errors.Is(err, agents.ErrStopped) {
		return nil // it could not be loaded, which ends the daemon
	}
	n.Log.Info("ready", "agent", n.Cred.ID, "addresses", n.Mesh.Addresses(), "socket", control.SocketPath(n.Cfg.Dir))
	addresses := strings.Join(n.Mesh.Addresses(), "\n") + "\n"
	if err := config.ReplaceFile(filepath.Join(n.Cfg.Dir, addressesName), []byte(addresses), 0o644); err != nil { // the disk is full, but decisions that are on it can still be sent
		n.Log.Error("cannot write the file of addresses", "err", err)
	}
	if len(n.Cfg.Bootstrap) == 0 && !n.Cfg.MDNS {
		n.Log.Info("no bootstrap addresses: other agents join by the addresses of this one", "file", filepath.Join(n.Cfg.Dir, addressesName))
	}
	return n.ready(background.Ready{Agent: n.Cred.ID, Addresses: n.Mesh.Addresses()})
}

package command

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"ramp/agents"
	"ramp/agents/journal"
	"ramp/agents/mesh"
	"ramp/agents/stage"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// Bounds of a node.
const (
	journalName     = "journal.db"
	traceBytes      = 256 << 20        // of messages that a journal keeps
	verifiedBundles = 1 << 12          // verified bundles that are remembered
	flushPeriod     = time.Second      // until a traced message is on the disk at the latest
	shutdownTime    = 5 * time.Second  // for a daemon to leave
	joinTime        = 10 * time.Second // for a command to find the market
)

// store is a Store that can be closed.
type store interface {
	agents.Store
	io.Closer
}

// tellingStore ends what owners follow when it cannot write: the role is dropped
// then, and with it what it would have told.
type tellingStore struct {
	store
	fail func(err error)
}

// Append is the store's.
func (s tellingStore) Append(records []protocol.Record) error {
	err := s.store.Append(records)
	if err != nil {
		s.fail(errUnwritten)
	}
	return err
}

// node is one agent on this machine: a role, its store, and what connects it.
type node struct {
	cfg     *config
	cred    *identity.Credential
	trust   *identity.Trust
	store   store
	journal *journal.Journal // of user and resource agents
	papers  *papers          // likewise
	proofs  *proofs          // likewise
	mesh    *mesh.Mesh       // nil: without the network
	runner  *agents.Runner
	hub     *hub[message.Progress] // of purchases
	runs    *hub[message.Run]      // and of what runs in them
	asks    *asks
	log     *slog.Logger
	tell    func(ready) error // that a daemon is ready

	queue   func(protocol.Message) // the batch system of a resource
	files   func(protocol.Message) // what travels with jobs, of users and resources
	history func(protocol.Message) // the past of a bank
	leads   func() bool            // nil: nobody else could speak for this agent
	prepare func(protocol.Message) // nil: nothing is to be done before a message is encoded

	hup     <-chan os.Signal        // of a daemon
	file    string                  // the configuration
	adopt   func(cfg *config) error // takes what may change while it runs; nil: nothing
	meters  *meters
	failing atomic.Bool // the last write went wrong

	porter *stage.Porter   // of users
	life   context.Context //nolint:containedctx // of what others ask of this agent's files
	die    context.CancelFunc
	cancel context.CancelFunc
	wg     sync.WaitGroup
	failed error     // of the runner
	since  time.Time // when the daemon was ready
}

// prepare reads who the agent is.
func prepare(path string, log *slog.Logger) (*node, error) {
	cfg, err := readConfig(path)
	if err != nil {
		return nil, err
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	n := &node{cfg: cfg, hub: newHub[message.Progress](), runs: newHub[message.Run](), asks: newAsks(), log: log, tell: tellReady, file: path}
	n.life, n.die = context.WithCancel(context.Background())
	if n.cred, err = cfg.credential(); err != nil {
		return nil, err
	}
	if n.trust, err = cfg.trust(); err != nil {
		return nil, err
	}
	if _, err := n.trust.Verify(n.cred.ChainDER(), time.Now()); err != nil {
		return nil, certificateFault(cfg.path(cfg.Certificate), err)
	}
	n.meters = newMeters(n.cred.ID)
	return n, nil
}

// commandLog tells a person at a command line only what went wrong.
func commandLog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// openJournal opens the journal; somebody else's lock says who holds it.
func (n *node) openJournal() error {
	j, err := openJournal(n.cfg.dir)
	if err != nil {
		return err
	}
	n.journal, n.store = j, j
	return nil
}

// wire is the codec of this agent; seal, if set, completes a message before it
// is encoded (a bank signs its receipts there).
type wire struct {
	codec.Opener
	seal func(protocol.Message) (protocol.Message, error)
}

// Encode completes and encodes a message.
func (w wire) Encode(m protocol.Message) ([]byte, error) {
	if w.seal != nil {
		var err error
		if m, err = w.seal(m); err != nil {
			return nil, err
		}
	}
	return codec.Encode(m)
}

// connect opens the network. hearCalls is for sellers; adapt may change the
// mesh's configuration.
func (n *node) connect(hearCalls bool, seal func(protocol.Message) (protocol.Message, error), adapt ...func(*mesh.Config)) error {
	cfg := mesh.Config{
		Credential: n.cred, Trust: n.trust,
		Codec:     wire{codec.NewOpener(n.trust, verifiedBundles), seal},
		Deliver:   n.deliver,
		Listen:    n.cfg.Listen,
		Bootstrap: n.cfg.Bootstrap, Nearby: n.cfg.MDNS, HearPresence: true, HearCalls: hearCalls, Log: n.log,
	}
	for _, f := range adapt {
		f(&cfg)
	}
	mesh.LibraryLog(n.log.Handler())
	m, err := mesh.Listen(cfg)
	switch {
	case errors.Is(err, mesh.ErrAddressInUse):
		return fail(exitFailed, "choose another address under 'listen', or stop the other process", "%w", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fail(exitUsage, "choose an address of this machine under 'listen', or 0.0.0.0 for all of them", "%w", err)
	case err != nil:
		return fail(exitUsage, "", "%w", err)
	}
	n.mesh = m
	return nil
}

// deliver takes a message from the network: an answer to a command, or
// something for the role.
func (n *node) deliver(m protocol.Message) error {
	if n.asks.take(m) {
		return nil
	}
	switch told := m.Body.(type) {
	case message.Presence:
		n.papers.hear(m.Sender, told)
	case message.Decision:
		n.proofs.hear(told)
	}
	return n.runner.Deliver(m)
}

// lose ends what everybody follows: the role that told of it is gone.
func (n *node) lose(err error) {
	n.hub.fail(err)
	n.runs.fail(err)
}

// start runs the role. load restores it.
func (n *node) start(load func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error)) {
	cfg := agents.Config{
		Load: load, Store: watchfulStore{tellingStore{n.store, n.lose}, &n.failing}, Route: n.route, Prepare: n.prepare,
		Unavailable: n.unavailable, Now: time.Now, Log: n.log,
	}
	cfg.Trace = n.observe
	n.runner = agents.NewRunner(cfg)
}

// run starts the goroutines of the node; stop ends them.
func (n *node) run(ctx context.Context) {
	ctx, n.cancel = context.WithCancel(ctx)
	n.wg.Add(1)
	go func() {
		defer n.wg.Done()
		n.failed = n.runner.Run(ctx)
		n.cancel()
	}()
	if n.journal != nil {
		n.wg.Go(func() { n.flush(ctx) })
		n.wg.Go(func() { n.proofs.run(n.life) })
	}
}

// flush makes traced messages durable while nothing else is written.
func (n *node) flush(ctx context.Context) {
	t := time.NewTicker(flushPeriod)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if err := n.journal.Flush(); err != nil {
				n.log.Error("cannot write the trace", "err", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// stop ends the node: what the role has answered is carried out first.
func (n *node) stop() error {
	if n.cancel != nil {
		n.cancel()
	}
	n.die()
	n.papers.end()
	if n.porter != nil {
		n.porter.Close()
	}
	n.wg.Wait()
	var errs []error
	if n.mesh != nil {
		errs = append(errs, n.mesh.Close())
	}
	if n.store != nil {
		errs = append(errs, n.store.Close())
	}
	return errors.Join(append(errs, n.failed)...)
}

// route carries a message to its receivers.
func (n *node) route(m protocol.Message) {
	var others []protocol.AgentID
	for _, to := range m.Receivers {
		switch to {
		case protocol.LocalControl:
			n.publish(m)
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
	if len(others) == 0 || n.mesh == nil || n.leads != nil && !n.leads() {
		return
	}
	m.Receivers = others
	n.mesh.Send(m)
}

func localOnly(m protocol.Message) bool {
	return m.Sender.Local() || len(m.Receivers) == 1 && m.Receivers[0].Local() && m.Receivers[0] != protocol.Everyone
}

// unavailable answers while the store cannot be written.
func (n *node) unavailable(m protocol.Message) (protocol.Message, bool) {
	if m.Sender.Local() {
		return protocol.Message{}, false
	}
	switch m.Performative {
	case protocol.CFP, protocol.AcceptProposal, protocol.Confirm, protocol.Request, protocol.QueryRef:
	default:
		return protocol.Message{}, false // it expects no answer
	}
	p := protocol.Failure
	if m.Performative == protocol.CFP || m.Performative == protocol.AcceptProposal {
		p = protocol.Refuse
	}
	return m.Reply(n.cred.ID, p, message.Refused(protocol.CodeUnavailable, "this agent cannot write its journal")), true
}

// addressesName is the file of a daemon's addresses, one per line: what others
// write under 'bootstrap'.
const addressesName = "addresses"

func (n *node) writeAddresses() error {
	return replaceFile(filepath.Join(n.cfg.dir, addressesName), []byte(strings.Join(n.mesh.Addresses(), "\n")+"\n"), 0o644)
}

// serve runs the control socket until the context is done, then leaves.
func (n *node) serve(ctx context.Context, routes func(*http.ServeMux), leave func()) error {
	l, err := listenControl(n.cfg.dir)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	routes(mux)
	n.since = time.Now()
	n.statusRoutes(mux)
	n.reloadRoute(mux)
	n.monitorRoutes(mux)
	stopMonitor, err := n.monitor()
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer stopMonitor()
	server := &http.Server{Handler: versioned(mux), ReadHeaderTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return ctx }}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	defer n.reloading(ctx)()
	n.log.Info("ready", "agent", n.cred.ID, "addresses", n.mesh.Addresses(), "socket", socketPath(n.cfg.dir))
	if err := n.writeAddresses(); err != nil { // a full disk: decisions that are on it can still be told
		n.log.Error("cannot write the file of addresses", "err", err)
	}
	if len(n.cfg.Bootstrap) == 0 && !n.cfg.MDNS {
		n.log.Info("no bootstrap addresses: others join by this agent's", "file", filepath.Join(n.cfg.dir, addressesName))
	}
	if err := n.tell(ready{Agent: n.cred.ID, Addresses: n.mesh.Addresses()}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case err := <-served:
		return err
	}
	n.log.Info("leaving")
	leave()
	done, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	err = server.Shutdown(done)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	return errors.Join(err, os.RemoveAll(socketPath(n.cfg.dir)))
}

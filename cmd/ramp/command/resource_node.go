package command

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents"
	"ramp/agents/resource"
	"ramp/agents/stage"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// resourceNode is a resource agent on this machine.
type resourceNode struct {
	*node
	driver driver
	depot  *stage.Depot
	trust  bool
}

// newResourceNode prepares the resource agent of a configuration; trust: it does
// not ask its banks whether its journal is complete.
func newResourceNode(path string, log *slog.Logger, network, trust bool) (*resourceNode, error) {
	n, err := prepare(path, log)
	if err != nil {
		return nil, err
	}
	if n.cfg.Resource == nil {
		return nil, fail(exitUsage, n.cfg.kindHint("resource", "write a section 'resource:'"), "configuration %s is not a resource's", path)
	}
	open := drivers[n.cfg.Resource.Driver]
	if open == nil {
		return nil, fail(exitUsage, "", "configuration %s: resource.driver %q: want %s", path, n.cfg.Resource.Driver, driverNames())
	}
	if err := n.openJournal(); err != nil {
		return nil, err
	}
	r := &resourceNode{node: n, trust: trust}
	if err := r.assemble(open, network); err != nil {
		return nil, errors.Join(err, n.store.Close())
	}
	return r, nil
}

func driverNames() string {
	names := make([]string, 0, len(drivers))
	for name := range drivers {
		names = append(names, name)
	}
	sort.Strings(names)
	return strings.Join(names, " or ")
}

func (r *resourceNode) assemble(open func(*config, protocol.AgentID, *slog.Logger) (driver, error), network bool) error {
	var err error
	if r.driver, err = open(r.cfg, r.cred.ID, r.log); err != nil {
		return err
	}
	cfg, err := r.cfg.Resource.role(r.cred, r.driver.cores, r.cfg.Heartbeat)
	if err != nil {
		return err
	}
	if cfg.Launch, err = r.cfg.launches(r.cred.ID, r.log); err != nil {
		return err
	}
	cfg.TrustJournal, cfg.Offline = r.trust, !network
	r.adopt = func(next *config) error { return r.adoptResource(next, &cfg) }
	r.queue, cfg.Learnt = r.driver.Send, r.driver.learnt
	r.keepFiles(cfg.Launch)
	r.start(func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
		return resource.New(cfg, t, now)
	})
	r.gauges()
	r.showsPapers(false, reserve.EachSold)
	r.keepsProofs(reserve.EachSold)
	if !network {
		return nil
	}
	if wantsBare() {
		return r.connect(true, nil, r.serveFiles, answerBare(r.node))
	}
	return r.connect(true, nil, r.serveFiles)
}

// run starts the agent and its batch system.
func (r *resourceNode) run(ctx context.Context) {
	r.node.run(ctx)
	ctx, cancel := context.WithCancel(ctx)
	stop := r.cancel
	r.cancel = func() { cancel(); stop() }
	r.wg.Go(func() { r.watchRoom(ctx) })
	r.wg.Go(func() {
		r.depot.Run(ctx, func(m protocol.Message) { _ = r.runner.Deliver(m) }) // the role has stopped: so will the depot
	})
	r.wg.Go(func() {
		deliver := func(m protocol.Message) { _ = r.runner.Deliver(m) } // the role has stopped: so will the driver
		if err := r.driver.Run(ctx, deliver); err != nil && ctx.Err() == nil {
			r.log.Error("the batch system cannot be used; no offers are made", "err", err)
		}
	})
}

// checkCall asks what the agent would offer for a document.
type checkCall struct {
	Document string `json:"document"`
	Rounds   int    `json:"rounds"`
}

func (r *resourceNode) routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/check", handler(r.check))
	mux.HandleFunc("POST /v1/dryrun", handler(r.dryRun))
	mux.HandleFunc("POST /v1/offers", handler(r.offers))
	mux.HandleFunc("POST /v1/reservations", handler(r.reservations))
	mux.HandleFunc("POST /v1/status", handler(r.status))
	mux.HandleFunc("POST /v1/drain", handler(r.drain))
	mux.HandleFunc("POST /v1/resume", handler(r.resume))
	mux.HandleFunc("POST /v1/signed", handler(r.signed))
	h := holder{self: r.cred.ID, runner: r.runner, asks: r.asks, banks: r.ownBanks}
	mux.HandleFunc("POST /v1/balance", handler(within(answerTime, h.balance)))
	mux.HandleFunc("POST /v1/statement", handler(within(answerTime, h.statements)))
}

// with reads something of the role in the goroutine that owns it.
func (r *resourceNode) with(ctx context.Context, f func(now time.Time, role *resource.Role)) error {
	return r.runner.Do(ctx, func(now time.Time, role agents.Role) protocol.Output {
		f(now, role.(*resource.Role))
		return protocol.Output{}
	})
}

func (r *resourceNode) check(ctx context.Context, q checkCall) ([]message.QuoteLine, error) {
	ctx, cancel := context.WithTimeout(ctx, queueTime)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		var lines []message.QuoteLine
		var failed error
		err := r.with(ctx, func(now time.Time, role *resource.Role) {
			lines, failed = role.Check(now, []byte(q.Document), q.Rounds)
		})
		if err != nil || !errors.Is(failed, resource.ErrNotReady) {
			return lines, errors.Join(failed, err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, fail(exitFailed, "", "the batch system has not told its state within %s", queueTime)
		}
	}
}

// queueTime is how long a command waits for the batch system's first state.
const queueTime = 30 * time.Second

// lastCall asks for the last lines of a list, at most Limit; zero: all.
type lastCall struct {
	Limit int `json:"limit"`
}

// lastOf are the last n of a list; zero: all.
func lastOf[T any](list []T, n int) []T {
	if n > 0 && len(list) > n {
		return list[len(list)-n:]
	}
	return list
}

func (r *resourceNode) offers(ctx context.Context, q lastCall) ([]message.QuoteLine, error) {
	lines := []message.QuoteLine{}
	err := r.with(ctx, func(_ time.Time, role *resource.Role) { lines = append(lines, lastOf(role.Offers(), q.Limit)...) })
	return lines, err
}

func (r *resourceNode) reservations(ctx context.Context, q lastCall) ([]message.ReservationLine, error) {
	lines := []message.ReservationLine{}
	err := r.with(ctx, func(_ time.Time, role *resource.Role) { lines = append(lines, lastOf(role.Reservations(), q.Limit)...) })
	return lines, err
}

// openResource reaches a resource agent: its daemon, or one in this process that
// trades with nobody.
func openResource(c *cobra.Command, path, dir string) (*caller, func(), error) {
	if err := meant(path, "resource"); err != nil {
		return nil, nil, err
	}
	if d, ok := awaitDaemon(c, dir); ok {
		return d, func() {}, nil
	}
	r, err := newResourceNode(path, commandLog(stderr(c)), false, false)
	if err != nil {
		return nil, nil, err
	}
	r.run(context.WithoutCancel(c.Context()))
	mux := http.NewServeMux()
	r.routes(mux)
	return localCaller(mux), func() {
		if err := r.stop(); err != nil {
			r.log.Error("stop", "err", err)
		}
	}, nil
}

// serveResource runs a resource agent as a daemon.
func serveResource(ctx context.Context, path string, trust bool, logTo io.Writer) error {
	lean()
	return serveAgent(ctx, path, trust, daemonLog(logTo, path), tellReady)
}

// serveAgent runs a resource agent until ctx is done; tell hears when it is ready.
func serveAgent(ctx context.Context, path string, trust bool, log *slog.Logger, tell func(ready) error) error {
	hup, stop := hangups()
	defer stop()
	r, err := newResourceNode(path, log, true, trust)
	if err != nil {
		return err
	}
	r.tell = tell
	r.hup = hup
	r.run(context.WithoutCancel(ctx))
	leave := func() {
		_ = r.runner.Do(context.WithoutCancel(ctx), func(_ time.Time, role agents.Role) protocol.Output { // it may have stopped
			return role.(*resource.Role).Leave()
		})
	}
	err = r.serve(ctx, r.routes, leave)
	return errors.Join(err, r.stop())
}

package node

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"ramp/agents"
	"ramp/agents/background"
	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/federated"
	"ramp/agents/mesh"
	"ramp/agents/resource"
	"ramp/agents/stage"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// Resource is a resource agent on this machine.
type Resource struct {
	*Node
	driver config.Driver
	depot  *stage.Depot
	trust  bool
}

// NewResource prepares the resource agent of a configuration; trust: it does
// not ask its banks whether its journal is complete.
func NewResource(path string, log *slog.Logger, network, trust bool) (*Resource, error) {
	n, err := Prepare(path, log)
	if err != nil {
		return nil, err
	}
	if n.Cfg.Resource == nil {
		return nil, exit.Fail(exit.Usage, n.Cfg.KindHint("resource", "write a section 'resource:'"), "configuration %s is not a resource's", path)
	}
	open := config.Drivers[n.Cfg.Resource.Driver]
	if open == nil {
		return nil, exit.Fail(exit.Usage, "", "configuration %s: resource.driver %q: want %s", path, n.Cfg.Resource.Driver, config.DriverNames())
	}
	if err := n.openJournal(); err != nil {
		return nil, err
	}
	r := &Resource{Node: n, trust: trust}
	if err := r.assemble(open, network); err != nil {
		return nil, errors.Join(err, n.store.Close())
	}
	return r, nil
}

func (r *Resource) assemble(open func(*config.Config, protocol.AgentID, *slog.Logger) (config.Driver, error), network bool) error {
	var err error
	if r.driver, err = open(r.Cfg, r.Cred.ID, r.Log); err != nil {
		return err
	}
	cfg, err := r.Cfg.Resource.Role(r.Cred, r.driver.Cores, r.Cfg.Heartbeat)
	if err != nil {
		return err
	}
	if cfg.Launch, err = r.Cfg.Launches(r.Cred.ID, r.Log); err != nil {
		return err
	}
	if cfg.Federation, err = r.Cfg.Federation(r.Cred.ID, cfg.Launch.Policy.MaxInput); err != nil {
		return err
	}
	cfg.Trust, cfg.TrustJournal, cfg.Offline = r.Node.trust, r.trust, !network
	r.settings.adopt = func(next *config.Config) error { return r.adoptResource(next, &cfg) }
	r.queue, cfg.Learnt = r.driver.Send, r.driver.Learnt
	r.keepFiles(cfg.Launch)
	r.start(r.indexed(true, func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
		return resource.New(cfg, t, now)
	}))
	r.gauges()
	if !network {
		return nil
	}
	if os.Getenv(BareEnv) == "1" {
		return r.connect(true, nil, r.serveFiles, answerBare(r.Node))
	}
	return r.connect(true, nil, r.serveFiles)
}

// Run starts the agent and its batch system.
func (r *Resource) Run(ctx context.Context) {
	r.Node.Run(ctx)
	ctx, cancel := context.WithCancel(ctx)
	stop := r.cancel
	r.cancel = func() { cancel(); stop() }
	r.wg.Go(func() { r.watchDisks(ctx) })
	r.wg.Go(func() { r.watchReservations(ctx) })
	r.wg.Go(func() {
		r.depot.Run(ctx, func(m protocol.Message) { _ = r.Runner.Deliver(m) }) // the role has stopped: so will the depot
	})
	r.wg.Go(func() {
		deliver := func(m protocol.Message) { _ = r.Runner.Deliver(m) } // the role has stopped: so will the driver
		if err := r.driver.Run(ctx, deliver); err != nil && ctx.Err() == nil {
			r.Log.Error("the batch system cannot be used; no offers are made", "err", err)
		}
	})
}

func (r *Resource) Routes(mux *http.ServeMux) {
	control.Check.Answer(mux, r.check)
	control.DryRun.Answer(mux, r.dryRun)
	control.Offers.Answer(mux, r.offers)
	control.Reservations.Answer(mux, r.reservations)
	control.Calendar.Answer(mux, r.calendar)
	control.Status.Answer(mux, r.status)
	federated.Sites{Runner: r.Runner, Self: r.Cred.ID}.Routes(mux)
	control.Drain.Answer(mux, func(ctx context.Context, q control.DrainCall) (message.ResourceStatus, error) {
		return r.act(ctx, func(now time.Time, role *resource.Role) protocol.Output { return role.Drain(now, q.Why) })
	})
	control.Resume.Answer(mux, r.resume)
	control.SignedParts.Answer(mux, r.signed)
	h := ownAccounts{self: r.Cred.ID, runner: r.Runner, pending: r.pending, banks: r.ownBanks}
	control.Balance.Answer(mux, control.Within(control.AnswerTime, h.balance))
	control.Statements.Answer(mux, control.Within(control.AnswerTime, h.statements))
}

// with reads something of the role in the goroutine that owns it.
func (r *Resource) with(ctx context.Context, f func(now time.Time, role *resource.Role)) error {
	return r.Runner.Do(ctx, func(now time.Time, role agents.Role) protocol.Output {
		f(now, role.(*resource.Role))
		return protocol.Output{}
	})
}

func (r *Resource) check(ctx context.Context, q control.CheckCall) ([]message.QuoteLine, error) {
	if q.Rounds < 1 {
		return nil, exit.Fail(exit.Usage, "", "rounds %d: want 1 or more", q.Rounds)
	}
	ctx, cancel := context.WithTimeout(ctx, queueTime)
	defer cancel()
	for {
		var lines []message.QuoteLine
		var failed error
		err := r.with(ctx, func(now time.Time, role *resource.Role) {
			lines, failed = role.Check(now, []byte(q.Document), q.Rounds)
		})
		if err != nil || !errors.Is(failed, resource.ErrNotReady) {
			return lines, errors.Join(exit.WithCode(exit.Usage, failed), err)
		}
		if !agents.Pause(ctx, 50*time.Millisecond) {
			return nil, exit.Fail(exit.Failed, "", "the batch system did not report its state within %s", queueTime)
		}
	}
}

// queueTime is how long a command waits for the batch system's first state.
const queueTime = 30 * time.Second

func (r *Resource) offers(ctx context.Context, q control.LastCall) (lines []message.QuoteLine, err error) {
	if err := r.with(ctx, func(_ time.Time, role *resource.Role) { lines = append([]message.QuoteLine{}, role.Offers()...) }); err != nil {
		return nil, err
	}
	return control.Page(lines, q, func(l message.QuoteLine) string { return l.At.Format(time.RFC3339Nano) })
}

func (r *Resource) reservations(ctx context.Context, q control.LastCall) (lines []message.ReservationLine, err error) {
	if err := r.with(ctx, func(_ time.Time, role *resource.Role) {
		lines = append([]message.ReservationLine{}, role.Reservations()...)
	}); err != nil {
		return nil, err
	}
	return control.Page(lines, q, func(l message.ReservationLine) string { return l.ID })
}

func (r *Resource) calendar(ctx context.Context, q control.CalendarCall) (bins []message.CalendarBin, err error) {
	step, n, err := q.Steps()
	if err == nil {
		err = r.with(ctx, func(now time.Time, role *resource.Role) { bins = resource.Calendar(role, now.Truncate(step), step, n) })
	}
	return bins, err
}

// ServeResource runs a resource agent as a daemon.
func ServeResource(ctx context.Context, path string, trust bool, logTo io.Writer) error {
	return ServeAgent(ctx, path, trust, DaemonLog(logTo, path), background.TellReady)
}

// ServeAgent runs a resource agent until ctx is done; it calls ready when it is ready.
func ServeAgent(ctx context.Context, path string, trust bool, log *slog.Logger, ready func(background.Ready) error) error {
	hup, stop := hangups(ctx)
	defer stop()
	r, err := NewResource(path, log, true, trust)
	if err != nil {
		return err
	}
	r.ready = ready
	r.settings.hup = hup
	r.Run(context.WithoutCancel(ctx))
	leave := func() {
		_ = r.Runner.Do(context.WithoutCancel(ctx), func(_ time.Time, role agents.Role) protocol.Output { // it may have stopped
			return role.(*resource.Role).Leave()
		})
	}
	err = r.serve(ctx, r.Routes, leave)
	return errors.Join(err, r.Stop())
}

func (r *Resource) status(ctx context.Context, _ struct{}) (message.ResourceStatus, error) {
	return r.act(ctx, func(time.Time, *resource.Role) protocol.Output { return protocol.Output{} })
}

func (r *Resource) resume(ctx context.Context, _ struct{}) (message.ResourceStatus, error) {
	return r.act(ctx, func(_ time.Time, role *resource.Role) protocol.Output { return role.Resume() })
}

// act changes the role, and says how it stands once that is durable. An agent of
// this process alone is given a moment to hear of its batch system.
func (r *Resource) act(ctx context.Context, f func(now time.Time, role *resource.Role) protocol.Output) (message.ResourceStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, queueTime)
	defer cancel()
	for {
		var s message.ResourceStatus
		err := r.Runner.Do(ctx, func(now time.Time, a agents.Role) protocol.Output {
			role := a.(*resource.Role)
			out := f(now, role)
			s = role.Status(now)
			return out
		})
		s.Queue.Driver = r.Cfg.Resource.Driver
		if err != nil || r.Mesh != nil || s.Queue.State != "unknown" {
			return s, err
		}
		if !agents.Pause(ctx, 50*time.Millisecond) {
			return s, nil
		}
	}
}

// adoptResource takes a site's prices and limits; role is what the agent is made
// from again after a failed write, in the same goroutine.
func (r *Resource) adoptResource(cfg *config.Config, role *resource.Config) error {
	if cfg.Resource == nil {
		return exit.Fail(exit.Usage, "", "configuration %s is no longer a resource's", r.settings.file)
	}
	next, err := cfg.Resource.Role(r.Cred, r.driver.Cores, cfg.Heartbeat)
	if err != nil {
		return err
	}
	return r.inRole(func(a agents.Role) error {
		kept := a.(*resource.Role).Retune(next)
		*role = kept
		return nil
	})
}

// watchDisks pauses the sales while a disk is full.
func (r *Resource) watchDisks(ctx context.Context) {
	for {
		why := r.Cfg.FullDisk()
		_ = r.Runner.Do(ctx, func(now time.Time, role agents.Role) protocol.Output { // it stops, or refuses anyway
			role.(*resource.Role).Hinder(now, why)
			return protocol.Output{}
		})
		if !agents.Pause(ctx, config.DiskPeriod) {
			return
		}
	}
}

func (r *Resource) gauges() {
	for _, g := range []struct{ name, help, state string }{
		{"ramp_holds", "Units that are held and not sold.", string(reserve.ClaimHeld)},
		{"ramp_in_doubt", "Units that are countersigned and not decided.", string(reserve.ClaimCountersigned)},
		{"ramp_sold", "Units that are sold and remembered.", string(reserve.ClaimSold)},
	} {
		r.monitor.figure(g.name, g.help, func(_ time.Time, a agents.Role) int {
			n := 0
			for _, line := range a.(*resource.Role).Reservations() {
				if line.State == g.state {
					n++
				}
			}
			return n
		})
	}
	r.overbookGauges()
}

// overbookGauges are how a site keeps its promises that sells over running jobs.
func (r *Resource) overbookGauges() {
	if !r.Cfg.Resource.Forecast.Overbook {
		return
	}
	for _, g := range []struct {
		name, help string
		of         func(s *message.OverbookStatus) int
	}{
		{"ramp_promises", "The last promises whose slots have begun, of a site that overbooks.", func(s *message.OverbookStatus) int { return s.Ended }},
		{"ramp_promises_broken", "Broken ones of them.", func(s *message.OverbookStatus) int { return s.Broken }},
		{"ramp_sharpened", "Units sold over jobs that were expected to end early, of those remembered.", func(s *message.OverbookStatus) int { return s.Overbooked }},
		{"ramp_sharpening", "1 while such units are sold, 0 while too many promises were broken.", func(s *message.OverbookStatus) int {
			if s.Selling {
				return 1
			}
			return 0
		}},
	} {
		r.monitor.figure(g.name, g.help, func(now time.Time, a agents.Role) int { return g.of(a.(*resource.Role).Status(now).Forecast.Overbook) })
	}
}

func (r *Resource) dryRun(ctx context.Context, _ struct{}) (control.DryRunAnswer, error) {
	hold, err := r.Cfg.Held(r.Cred.ID)
	if err != nil {
		return control.DryRunAnswer{}, err
	}
	a := control.DryRunAnswer{Hold: hold, Offers: control.Typicals(r.driver.Cores, r.Cfg.Resource.Properties.NodeCores)}
	if err := r.with(ctx, func(_ time.Time, role *resource.Role) { a.Price = max(role.ListPrice(), 1) }); err != nil {
		return a, err
	}
	for i := range a.Offers {
		o := &a.Offers[i]
		b, err := o.Document(time.Now(), a.Price)
		if err != nil {
			return a, err
		}
		lines, err := r.check(ctx, control.CheckCall{Document: string(b), Rounds: 1})
		if err != nil {
			return a, err
		}
		if len(lines) > 0 {
			o.Line = lines[0]
		}
	}
	s, err := r.status(ctx, struct{}{})
	a.Sales, a.Why = s.Sales, s.Why
	return a, err
}

func answerBare(n *Node) func(*mesh.Config) {
	return func(c *mesh.Config) {
		c.Bare = func(from protocol.AgentID, f []byte) {
			if len(f) < 4 {
				return
			}
			size := int(binary.BigEndian.Uint32(f))
			if size == 0 || size > protocol.MaxMessage {
				return
			}
			if err := n.Mesh.SendBare(from, make([]byte, size)); err != nil {
				n.Log.Warn("bare answer", "err", err)
			}
		}
	}
}

// BareEnv makes 'resource serve' answer bare frames, for 'bench auction'.
const BareEnv = "RAMP_BENCH_BARE"

package node

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"time"

	"ramp/agents"
	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/federated"
	"ramp/agents/mesh"
	"ramp/agents/user"
	"ramp/protocol"
)

// UserRecordsOf reaches the journal of a user agent through its daemon, or by opening it.
func UserRecordsOf(dir string) (*control.Client, func(), error) {
	if err := config.Meant(filepath.Join(dir, config.Name), "user"); err != nil {
		return nil, nil, err
	}
	if d, ok := control.Meet(dir); ok {
		return d, func() {}, nil
	}
	cfg, err := config.Read(filepath.Join(dir, config.Name))
	if err != nil {
		return nil, nil, err
	}
	j, err := openJournal(dir)
	if err != nil {
		return nil, nil, err
	}
	mux := http.NewServeMux()
	u := (&Node{journal: j, Cfg: cfg}).userRecords()
	u.routes(mux, u.signed)
	return control.Local(mux), func() { _ = j.Close() }, nil // it was only read
}

// NewUser prepares a user agent of a directory.
func NewUser(dir string, log *slog.Logger, adapt ...func(*mesh.Config)) (*Node, error) {
	n, err := Prepare(filepath.Join(dir, config.Name), log)
	if err != nil {
		return nil, err
	}
	role, err := n.Cfg.UserRole(n.Cred, n.trust)
	if err != nil {
		return nil, err
	}
	n.settings.adopt = func(cfg *config.Config) error { return n.adoptUser(cfg, &role) }
	if err := n.openJournal(); err != nil {
		return nil, err
	}
	n.start(func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
		return user.New(role, t, now)
	})
	n.userGauges()
	if err := n.connect(false, nil, adapt...); err != nil {
		return nil, errors.Join(err, n.store.Close())
	}
	n.carry()
	return n, nil
}

// UserRoutes makes a mux answer the calls of user agents.
func (n *Node) UserRoutes(mux *http.ServeMux) {
	u := n.userAgent()
	u.routes(mux)
	control.Joined.Answer(mux, n.awaitMarket)
	userRuns{u, n.News.runs, n.Mesh}.routes(mux)
	u.sweepRoutes(mux)
	federated.Users{Runner: n.Runner, Journal: n.journal, Joined: n.Mesh.Acquainted}.Routes(mux)
}

// StartUser runs a user agent in this process for one command.
func StartUser(ctx context.Context, dir string, logTo io.Writer) (*control.Client, func(), error) {
	return startUserBeside(ctx, dir, logTo, func(*Node, http.Handler) (func(), error) { return func() {}, nil })
}

// StartUserServing is StartUser with a control socket.
func StartUserServing(ctx context.Context, dir string, logTo io.Writer) (*control.Client, func(), error) {
	return startUserBeside(ctx, dir, logTo, func(n *Node, h http.Handler) (func(), error) {
		l, err := control.Listen(n.Cfg.Dir)
		if err != nil {
			return nil, err
		}
		server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
		served := make(chan error, 1)
		go func() { served <- server.Serve(l) }()
		return func() { _ = errors.Join(server.Close(), <-served) }, nil // callers see that it is gone
	})
}

// CutOffHint helps with an agent that the market does not hear.
const CutOffHint = "is its certificate of this market, and not revoked? 'ramp ca show' shows who issued it; others admit a renewed one within 30 s; else ask the bank, or join by a new invitation"

func joinHint(dir string, err error) string {
	if errors.Is(err, mesh.ErrCutOff) {
		return CutOffHint
	}
	return "check 'bootstrap' in " + filepath.Join(dir, config.Name) + "; 'ramp doctor' finds the cause"
}

// awaitMarket waits until the agent has joined, for JoinTime at most.
func (n *Node) awaitMarket(ctx context.Context, _ control.None) (none control.None, err error) {
	join, cancel := context.WithTimeout(ctx, JoinTime)
	defer cancel()
	switch err = n.Mesh.Acquainted(join); {
	case ctx.Err() != nil: // interrupted, which is no fault of the market
		return none, ctx.Err()
	case err != nil:
		return none, exit.Fail(exit.Unreachable, joinHint(n.Cfg.Dir, err), "%w", err)
	}
	return none, nil
}

func startUserBeside(ctx context.Context, dir string, logTo io.Writer, beside func(*Node, http.Handler) (func(), error)) (*control.Client, func(), error) {
	n, err := NewUser(dir, CommandLog(logTo))
	if err != nil {
		return nil, nil, err
	}
	n.Run(context.WithoutCancel(ctx))
	if _, err := n.awaitMarket(ctx, control.None{}); err != nil {
		return nil, nil, errors.Join(err, n.Stop())
	}
	mux := http.NewServeMux()
	n.UserRoutes(mux)
	n.since = time.Now()
	n.statusRoutes(mux)
	end, err := beside(n, mux)
	if err != nil {
		return nil, nil, errors.Join(err, n.Stop())
	}
	return control.Local(mux), func() {
		end()
		n.awaitProofs()
		if err := n.Stop(); err != nil {
			n.Log.Error("stop", "err", err)
		}
	}, nil
}

// ServeUser runs a user agent as a daemon.
func ServeUser(ctx context.Context, dir string, logTo io.Writer) error {
	hup, stop := hangups(ctx)
	defer stop()
	n, err := NewUser(dir, DaemonLog(logTo, filepath.Join(dir, config.Name)))
	if err != nil {
		return err
	}
	n.settings.hup = hup
	n.Run(context.WithoutCancel(ctx))
	err = n.serve(ctx, n.UserRoutes, n.awaitProofs)
	return errors.Join(err, n.Stop())
}

func (n *Node) userGauges() {
	n.monitor.figure("ramp_resources_known", "Resources that are there now.", func(now time.Time, r agents.Role) int {
		return len(r.(*user.Role).Known(now, protocol.KindResource))
	})
	n.monitor.figure("ramp_purchases_going", "Purchases that are not over.", func(_ time.Time, r agents.Role) int {
		return r.(*user.Role).Purchases()
	})
}

// adoptUser takes a user's banks and limits from a configuration read again.
func (n *Node) adoptUser(cfg *config.Config, role *user.Config) error {
	next, err := cfg.UserRole(n.Cred, n.trust)
	if err != nil {
		return err
	}
	return n.inRole(func(a agents.Role) error {
		a.(*user.Role).Retune(next)
		*role = next
		return nil
	})
}

package command

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"time"

	"ramp/agents"
	"ramp/agents/mesh"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/identity"
	"ramp/protocol/reserve"
)

// userRecordsOf reaches the journal of a user agent: through its daemon, or by
// opening it.
func userRecordsOf(dir string) (*caller, func(), error) {
	if err := meant(filepath.Join(dir, configName), "user"); err != nil {
		return nil, nil, err
	}
	if d, ok := meetDaemon(dir); ok {
		return d, func() {}, nil
	}
	cfg, err := readConfig(filepath.Join(dir, configName))
	if err != nil {
		return nil, nil, err
	}
	j, err := openJournal(dir)
	if err != nil {
		return nil, nil, err
	}
	mux := http.NewServeMux()
	userRecords{j, cfg}.routes(mux)
	return localCaller(mux), func() { _ = j.Close() }, nil // it was only read
}

// minHold is the shortest hold that leaves time to settle: clocks may differ by
// one skew at the bank and by one at the seller.
const minHold = 3 * protocol.ClockSkew

// checkCalls reports whether a round calls no more sellers than there can be
// connections for.
func (u *userConfig) checkCalls() error {
	const most = mesh.MaxConnections / 2
	if u.CallAtMost < 0 || u.CallAtMost > most {
		return fail(exitUsage, "", "configuration: user.call_at_most %d: want 0 (%d) or 1..%d", u.CallAtMost, protocol.MaxGossipless, most)
	}
	if u.ResponseBudget < user.AskEverybody || u.ResponseBudget > most {
		return fail(exitUsage, "", "configuration: user.response_budget %d: want %d (everybody), 0 (%d) or 1..%d",
			u.ResponseBudget, user.AskEverybody, auction.DefaultBudget, most)
	}
	return nil
}

// userRole is the configuration as the user agent wants it.
func (c *config) userRole(cred *identity.Credential, trust *identity.Trust) (user.Config, error) {
	role := user.Config{Credential: cred, Trust: trust}
	if u := c.User; u != nil {
		role.Hold, role.Settle, role.CallAtMost, role.Budget = time.Duration(u.Hold), time.Duration(u.Settle), u.CallAtMost, u.ResponseBudget
		role.AskUsage = u.AskUsage
		if err := u.checkCalls(); err != nil {
			return role, err
		}
		if u.Hold != 0 && (role.Hold < minHold || role.Hold > reserve.MaxHold) {
			return role, fail(exitUsage, "", "configuration: user.hold %s: want %s..%s", role.Hold, minHold, reserve.MaxHold)
		}
		if role.Settle > protocol.MaxSettleAhead {
			return role, fail(exitUsage, "", "configuration: user.settle %s: want at most %s", role.Settle, protocol.MaxSettleAhead)
		}
		var err error
		if role.Terms, err = payTerms("user.pay", u.Pay); err != nil {
			return role, err
		}
		if u.Mode != "" {
			if role.Mode, err = parseMode(u.Mode); err != nil {
				return role, fail(exitUsage, "", "configuration: user.mode: %w", err)
			}
		}
	}
	return role, nil
}

// newUserNode prepares a user agent of a directory.
func newUserNode(dir string, log *slog.Logger, adapt ...func(*mesh.Config)) (*node, error) {
	n, err := prepare(filepath.Join(dir, configName), log)
	if err != nil {
		return nil, err
	}
	role, err := n.cfg.userRole(n.cred, n.trust)
	if err != nil {
		return nil, err
	}
	n.adopt = func(cfg *config) error { return n.adoptUser(cfg, &role) }
	if err := n.openJournal(); err != nil {
		return nil, err
	}
	n.start(func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
		return user.New(role, t, now)
	})
	n.userGauges()
	n.showsPapers(true, reserve.EachBought)
	n.keepsProofs(reserve.EachBought)
	if err := n.connect(false, nil, adapt...); err != nil {
		return nil, errors.Join(err, n.store.Close())
	}
	n.carry()
	return n, nil
}

func (n *node) userRoutes(mux *http.ServeMux) {
	u := n.userAgent()
	u.routes(mux)
	userRuns{u, n.runs, n.mesh}.routes(mux)
}

// startUser runs a user agent in this process for one command.
func startUser(ctx context.Context, dir string, logTo io.Writer) (*caller, func(), error) {
	return startUserBeside(ctx, dir, logTo, func(*node, http.Handler) (func(), error) { return func() {}, nil })
}

// startUserServing is startUser with a control socket.
func startUserServing(ctx context.Context, dir string, logTo io.Writer) (*caller, func(), error) {
	return startUserBeside(ctx, dir, logTo, func(n *node, h http.Handler) (func(), error) {
		l, err := listenControl(n.cfg.dir)
		if err != nil {
			return nil, err
		}
		server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
		served := make(chan error, 1)
		go func() { served <- server.Serve(l) }()
		return func() { _ = errors.Join(server.Close(), <-served) }, nil // whoever asked sees that it is gone
	})
}

// cutOffHint is what helps an agent that the market does not hear.
const cutOffHint = "is its certificate of this market, and not revoked since? 'ramp ca show' shows who issued it; ask the bank, or join by a new invitation"

// joinHint is what to look at if an agent cannot join.
func joinHint(dir string, err error) string {
	if errors.Is(err, mesh.ErrCutOff) {
		return cutOffHint
	}
	return "check 'bootstrap' in " + filepath.Join(dir, configName) + "; 'ramp doctor' looks closer"
}

func startUserBeside(ctx context.Context, dir string, logTo io.Writer, beside func(*node, http.Handler) (func(), error)) (*caller, func(), error) {
	n, err := newUserNode(dir, commandLog(logTo))
	if err != nil {
		return nil, nil, err
	}
	n.run(context.WithoutCancel(ctx))
	join, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	switch err := n.mesh.Joined(join); {
	case ctx.Err() != nil: // somebody had enough of waiting; no fault of the market
		return nil, nil, errors.Join(ctx.Err(), n.stop())
	case err != nil:
		return nil, nil, errors.Join(fail(exitUnreachable, joinHint(dir, err), "cannot join the market: %w", err), n.stop())
	}
	mux := http.NewServeMux()
	n.userRoutes(mux)
	n.since = time.Now()
	n.statusRoutes(mux)
	end, err := beside(n, mux)
	if err != nil {
		return nil, nil, errors.Join(err, n.stop())
	}
	return localCaller(mux), func() {
		end()
		n.proofs.finish()
		if err := n.stop(); err != nil {
			n.log.Error("stop", "err", err)
		}
	}, nil
}

// serveUser runs a user agent as a daemon.
func serveUser(ctx context.Context, dir string, logTo io.Writer) error {
	lean()
	hup, stop := hangups()
	defer stop()
	n, err := newUserNode(dir, daemonLog(logTo, filepath.Join(dir, configName)))
	if err != nil {
		return err
	}
	n.hup = hup
	n.run(context.WithoutCancel(ctx))
	err = n.serve(ctx, n.userRoutes, n.proofs.finish)
	return errors.Join(err, n.stop())
}

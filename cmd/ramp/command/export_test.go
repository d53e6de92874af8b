package command

import (
	"context"
	"log/slog"
	"net/http"
	"path/filepath"

	"github.com/spf13/cobra"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/node"
)

// Root is the tree of commands.
func Root() *cobra.Command { return newRoot() }

// Controls are the fronts of the control sockets of a bank, a user and a resource agent
// that run in this process, each in the directory of its name, without a market.
func Controls(dir string) (fronts []http.Handler, stop func(), err error) {
	ctx, log := context.Background(), slog.New(slog.DiscardHandler)
	b, err := node.NewBank(ctx, filepath.Join(dir, "bank", config.Name), "", log, false)
	if err != nil {
		return nil, nil, err
	}
	u, err := node.NewUser(filepath.Join(dir, "user"), log)
	if err != nil {
		return nil, nil, err
	}
	r, err := node.NewResource(filepath.Join(dir, "site", config.Name), log, false, false)
	if err != nil {
		return nil, nil, err
	}
	b.Run(ctx)
	u.Run(ctx)
	r.Run(ctx)
	for _, routes := range []func(*http.ServeMux){b.Routes, u.UserRoutes, r.Routes} {
		mux := http.NewServeMux()
		routes(mux)
		fronts = append(fronts, control.Versioned(mux))
	}
	return fronts, func() {
		_, _, _ = b.Stop(), u.Stop(), r.Stop()
	}, nil
}

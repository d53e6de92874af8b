package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/background"
	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/node"
	"ramp/bank/boltfile"
)

// OpenBank reaches the command's bank: its daemon, or a bank in this process that serves only
// this command.
func OpenBank(c *cobra.Command) (*control.Client, func(), error) {
	dir, err := DirOf(c, "bank")
	if err != nil {
		return nil, nil, err
	}
	d, b, err := ReachBank(c, dir)
	if err != nil || d != nil {
		return d, func() {}, err
	}
	b.Run(context.WithoutCancel(c.Context()))
	mux := http.NewServeMux()
	b.Routes(mux)
	return control.Local(mux), b.End, nil
}

// ReachBank is the daemon of a bank, or the bank opened in this process, which has not written
// anything yet.
func ReachBank(c *cobra.Command, dir string) (*control.Client, *node.Bank, error) {
	if err := config.Meant(filepath.Join(dir, config.Name), "bank"); err != nil {
		return nil, nil, err
	}
	var d *control.Client
	var b *node.Bank
	err := untilListening(func() (err error) {
		d, b, err = daemonOrBooks(c, dir)
		return err
	})
	return d, b, err
}

// untilListening repeats reach while a daemon that is starting, or taking over the lead, has the
// agent's file open already and its control socket not yet.
func untilListening(reach func() error) error {
	for late := time.Now().Add(control.BusyTime); ; time.Sleep(control.BusyPause) {
		err := reach()
		var l *boltfile.InUseError
		if !errors.As(err, &l) || node.CommandHas(err) || time.Now().After(late) {
			return err
		}
	}
}

// daemonOrBooks is a bank's daemon, or the bank opened in this process.
func daemonOrBooks(c *cobra.Command, dir string) (*control.Client, *node.Bank, error) {
	if d, ok := awaitDaemon(c, dir); ok {
		return d, nil, nil
	}
	b, err := node.NewBank(c.Context(), filepath.Join(dir, config.Name), "", node.CommandLog(Stderr(c)), false)
	return nil, b, err
}

// resourcePaths are the configuration and the directory that --config and --dir select.
func resourcePaths(c *cobra.Command) (path, dir string, err error) {
	file, err := c.Flags().GetString("config")
	if err != nil {
		return "", "", err
	}
	path, err = ConfigPath(c, file, "resource")
	return path, filepath.Dir(path), err
}

// Fleet lists the configurations that a command is for: that of the directory, or, if it has
// none, those of its subdirectories in order of name.
func Fleet(c *cobra.Command) ([]string, error) {
	path, dir, err := resourcePaths(c)
	if err != nil || config.IsThere(path) || c.Flags().Changed("config") {
		return []string{path}, err
	}
	list := config.Below(dir)
	if len(list) == 0 {
		return []string{path}, nil // reading it reports that it does not exist
	}
	list = slices.DeleteFunc(list, func(path string) bool { // an unreadable one stays: serving it reports why
		cfg, err := config.Read(path)
		return err == nil && cfg.Resource == nil
	})
	if len(list) > config.MaxFleet {
		return nil, exit.Fail(exit.Usage, "", "%d agents below %s: one daemon runs at most %d", len(list), dir, config.MaxFleet)
	}
	return list, nil
}

// OneOfFleet is the configuration for a command that handles one agent only.
func OneOfFleet(c *cobra.Command) (string, error) {
	paths, err := Fleet(c)
	if err != nil || len(paths) == 1 {
		return strings.Join(paths, ""), err
	}
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = filepath.Base(filepath.Dir(path))
	}
	dir := filepath.Dir(paths[0])
	return "", exit.Fail(exit.Usage, "choose one, such as --dir "+dir, "%s has several agents, and this command handles one: %s", filepath.Dir(dir), strings.Join(names, ", "))
}

// AskFleet makes the same call to every agent that a command is for. The JSON is a list if
// there are several.
func AskFleet[Q, A any](c *cobra.Command, call control.Endpoint[Q, A], q Q, print func(w io.Writer, a A)) error {
	paths, err := Fleet(c)
	if err != nil {
		return err
	}
	answers := make([]A, len(paths))
	for i, path := range paths {
		if err := AskResourceAt(c, path, call, q, &answers[i]); err != nil {
			return err
		}
	}
	return Show(c, oneOrAll(answers), func(w io.Writer) {
		for i, a := range answers {
			if len(paths) > 1 {
				_, _ = io.WriteString(w, filepath.Base(filepath.Dir(paths[i]))+":\n")
			}
			print(w, a)
		}
	})
}

// AskResourceAt makes one call to the resource agent with a configuration.
func AskResourceAt[Q, A any](c *cobra.Command, path string, call control.Endpoint[Q, A], q Q, a *A) error {
	open := func(c *cobra.Command) (*control.Client, func(), error) { return openResource(c, path) }
	return Ask(c, open, call, q, a)
}

// ServeFleet runs several agents in one daemon. If one ends, all do.
func ServeFleet(ctx context.Context, paths []string, trust bool, logTo io.Writer) error {
	if err := config.Distinct(paths); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all := &gathering{left: len(paths)}
	errs := make([]error, len(paths))
	shared := &lockedWriter{w: logTo}
	var wg sync.WaitGroup
	for i, path := range paths {
		wg.Go(func() {
			defer cancel()
			errs[i] = node.ServeAgent(ctx, path, trust, node.DaemonLog(shared, path).With("of", filepath.Base(filepath.Dir(path))), all.tell)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// gathering reports that a daemon is ready once all its agents are.
type gathering struct {
	mu   sync.Mutex
	left int
	all  background.Ready
}

func (g *gathering) tell(r background.Ready) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all.Agent = cmp.Or(g.all.Agent, r.Agent)
	g.all.Addresses = append(g.all.Addresses, r.Addresses...)
	if g.left--; g.left > 0 {
		return nil
	}
	return background.TellReady(g.all)
}

// lockedWriter keeps concurrent writes of several logs apart.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// openResource reaches a resource agent: its daemon, or one in this process that does not join
// the market.
func openResource(c *cobra.Command, path string) (*control.Client, func(), error) {
	if err := config.Meant(path, "resource"); err != nil {
		return nil, nil, err
	}
	var d *control.Client
	var r *node.Resource
	err := untilListening(func() (err error) {
		var runs bool
		if d, runs = awaitDaemon(c, filepath.Dir(path)); !runs {
			r, err = node.NewResource(path, node.CommandLog(Stderr(c)), false, false)
		}
		return err
	})
	if err != nil || r == nil {
		return d, func() {}, err
	}
	r.Run(context.WithoutCancel(c.Context()))
	mux := http.NewServeMux()
	r.Routes(mux)
	return control.Local(mux), func() {
		if err := r.Stop(); err != nil {
			r.Log.Error("stop", "err", err)
		}
	}, nil
}

// DirOf is the directory of the command's agent.
func DirOf(c *cobra.Command, kind string) (string, error) {
	flag, err := c.Flags().GetString("dir")
	if err != nil {
		return "", err
	}
	return config.AgentDir(flag, kind)
}

// ConfigOf reads the configuration of the command's agent.
func ConfigOf(c *cobra.Command, kind string) (dir string, cfg *config.Config, err error) {
	if dir, err = DirOf(c, kind); err == nil {
		cfg, err = config.Read(filepath.Join(dir, config.Name))
	}
	return dir, cfg, err
}

// Ask makes one call to the agent that open reaches.
func Ask[Q, A any](c *cobra.Command, open Opener, call control.Endpoint[Q, A], q Q, a *A) error {
	agent, done, err := open(c)
	if err != nil {
		return err
	}
	defer done()
	return call.Ask(c.Context(), agent, q, a)
}

// An Opener reaches the agent of a command. done releases it.
type Opener func(c *cobra.Command) (agent *control.Client, done func(), err error)

// OpenUserRecords reaches the journal of the command's user agent.
func OpenUserRecords(c *cobra.Command) (*control.Client, func(), error) {
	return openUserOf(c, node.UserRecordsOf)
}

// OpenUser reaches the command's user agent, or starts it in this process.
func OpenUser(c *cobra.Command) (*control.Client, func(), error) {
	return openUserBy(c, node.StartUser)
}

// OpenUserServing is OpenUser for a long-running command: an agent in this process also serves
// other commands, as a daemon does.
func OpenUserServing(c *cobra.Command) (*control.Client, func(), error) {
	return openUserBy(c, node.StartUserServing)
}

type startsUser func(ctx context.Context, dir string, logTo io.Writer) (*control.Client, func(), error)

func openUserBy(c *cobra.Command, start startsUser) (*control.Client, func(), error) {
	return openUserOf(c, func(dir string) (*control.Client, func(), error) { return reachUserBy(c, dir, start) })
}

func openUserOf(c *cobra.Command, open func(dir string) (*control.Client, func(), error)) (agent *control.Client, done func(), err error) {
	dir, err := DirOf(c, "user")
	if err != nil {
		return nil, nil, err
	}
	err = untilListening(func() (err error) {
		agent, done, err = open(dir)
		return err
	})
	return agent, done, err
}

// reachUserBy reaches the daemon of a user agent, or starts the agent in this process.
func reachUserBy(c *cobra.Command, dir string, start startsUser) (*control.Client, func(), error) {
	if err := config.Meant(filepath.Join(dir, config.Name), "user"); err != nil {
		return nil, nil, err
	}
	d, runs := awaitDaemon(c, dir)
	defer Awaiting(c, "looking for the market", node.JoinTime)()
	switch cfg, err := config.Read(filepath.Join(dir, config.Name)); {
	case err != nil || !cfg.StartsDaemon():
		if runs {
			return d, func() {}, nil
		}
		return start(c.Context(), dir, Stderr(c)) // it reports err
	case !runs:
		if d, err = background.Start(c.Context(), dir); err != nil {
			return nil, nil, err
		}
	}
	return d, func() {}, control.Joined.Ask(c.Context(), d, control.None{}, nil)
}

// UserName is the name of the account that runs the program.
func UserName() string {
	if u, err := user.Current(); err == nil {
		return filepath.Base(u.Username)
	}
	return ""
}

// DirWords repeat --dir, if it was given, in a command that is suggested next.
func DirWords(c *cobra.Command) string {
	if d, err := c.Flags().GetString("dir"); err == nil && d != "" {
		return " --dir " + d
	}
	return ""
}

// Self is the program as it was called, so that suggested commands can be copied: bin/ramp if
// it is not in $PATH.
func Self() string {
	if filepath.Base(os.Args[0]) == "ramp" {
		return os.Args[0]
	}
	return "ramp"
}

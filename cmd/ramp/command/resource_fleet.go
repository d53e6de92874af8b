package command

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"ramp/protocol"
)

// Several agents of one site, such as one for each partition of a cluster: each
// has a directory of its own, and all lie below one.

// maxFleet bounds the agents of one daemon.
const maxFleet = 64

// fleet are the configurations that a command is for: the one that was named, or,
// if there is none, those of the directories in that directory, in order of name.
func fleet(c *cobra.Command) ([]string, error) {
	path, dir, err := resourcePaths(c)
	if err != nil || isThere(path) || c.Flags().Changed("config") {
		return []string{path}, err
	}
	list := configsBelow(dir)
	if len(list) == 0 {
		return []string{path}, nil // whoever reads it says that it is not there
	}
	list = slices.DeleteFunc(list, func(path string) bool { // what cannot be read is told by whoever serves it
		cfg, err := readConfig(path)
		return err == nil && cfg.Resource == nil
	})
	if len(list) > maxFleet {
		return nil, fail(exitUsage, "", "%d agents below %s: want at most %d in one daemon", len(list), dir, maxFleet)
	}
	return list, nil
}

// configsBelow are the configurations in the directories of a directory, in order.
func configsBelow(dir string) []string {
	list, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*", configName))
	if err != nil {
		return nil // only a bad pattern is an error
	}
	slices.Sort(list)
	return list
}

// oneOfFleet is the configuration that a command for one agent is for.
func oneOfFleet(c *cobra.Command) (string, error) {
	paths, err := fleet(c)
	if err != nil || len(paths) == 1 {
		return strings.Join(paths, ""), err
	}
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = filepath.Base(filepath.Dir(path))
	}
	dir := filepath.Dir(paths[0])
	return "", fail(exitUsage, "--dir "+dir+" is one of them", "%s has several agents, and this is for one: %s", filepath.Dir(dir), strings.Join(names, ", "))
}

// askFleet makes the same call to every agent that a command is for. With several
// the JSON is a list.
func askFleet[A any](c *cobra.Command, call string, body any, print func(w io.Writer, a A)) error {
	paths, err := fleet(c)
	if err != nil {
		return err
	}
	answers := make([]A, len(paths))
	for i, path := range paths {
		if err := askResourceAt(c, path, call, body, &answers[i]); err != nil {
			return err
		}
	}
	switch {
	case wantsJSON(c) && len(paths) == 1:
		return printJSON(stdout(c), answers[0])
	case wantsJSON(c):
		return printJSON(stdout(c), answers)
	}
	for i, a := range answers {
		if len(paths) > 1 {
			_, _ = io.WriteString(stdout(c), filepath.Base(filepath.Dir(paths[i]))+":\n")
		}
		print(stdout(c), a)
	}
	return nil
}

// askResourceAt makes one call to the resource agent of a configuration.
func askResourceAt(c *cobra.Command, path, call string, body, v any) error {
	agent, done, err := openResource(c, path, filepath.Dir(path))
	if err != nil {
		return err
	}
	defer done()
	return agent.call(c.Context(), "POST", call, body, v)
}

// distinct refuses two agents of one credential, such as a directory that was copied:
// each would take what the other sells for a stranger's.
func distinct(paths []string) error {
	of := map[protocol.AgentID]string{}
	for _, path := range paths {
		cfg, err := readConfig(path)
		if err != nil {
			continue // whoever serves it says so
		}
		cred, err := cfg.credential()
		if err != nil {
			continue
		}
		if other := of[cred.ID]; other != "" {
			return fail(exitUsage, "each agent has a credential of its own: 'ramp ca issue', or 'ramp resource init' in another directory",
				"%s and %s are both of %s", filepath.Dir(other), filepath.Dir(path), cred.ID)
		}
		of[cred.ID] = path
	}
	return nil
}

// serveFleet runs several agents in one daemon. One that ends ends all.
func serveFleet(ctx context.Context, paths []string, trust bool, logTo io.Writer) error {
	if err := distinct(paths); err != nil {
		return err
	}
	lean()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all := &gathering{left: len(paths)}
	errs := make([]error, len(paths))
	shared := &lockedWriter{w: logTo}
	var wg sync.WaitGroup
	for i, path := range paths {
		wg.Go(func() {
			defer cancel()
			errs[i] = serveAgent(ctx, path, trust, daemonLog(shared, path).With("of", filepath.Base(filepath.Dir(path))), all.tell)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// gathering tells that a daemon is ready once all its agents are.
type gathering struct {
	mu   sync.Mutex
	left int
	all  ready
}

func (g *gathering) tell(r ready) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all.Agent == "" {
		g.all.Agent = r.Agent
	}
	g.all.Addresses = append(g.all.Addresses, r.Addresses...)
	if g.left--; g.left > 0 {
		return nil
	}
	return tellReady(g.all)
}

// lockedWriter keeps the lines of several logs apart.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// Write is the writer's, one at a time.
func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

package lab

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/join"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
)

// ownDir makes the directory of --dir, which must be empty: the demonstration puts about fifty files
// there, with names such as bank and user, and people later remove it as a whole.
func (d *demo) ownDir() error {
	if _, err := os.Stat(filepath.Join(d.dir, "ca", join.KeyFile)); err == nil {
		return exit.Fail(exit.Usage, "choose another directory, or 'ramp demo --stop --dir "+words.ShellWord(d.dir)+"' and remove it", "%s already has a market", d.dir)
	}
	dir, err := filepath.Abs(d.dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return exit.Fail(exit.Usage, "", "--dir: %w", err)
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return exit.Fail(exit.Usage, "", "--dir: %w", err)
	}
	if len(list) > 0 {
		return exit.Fail(exit.Usage, "choose an empty directory, or a new one such as "+filepath.Join(d.dir, "market"), "%s is not empty: it has %s", d.dir, list[0].Name())
	}
	d.dir = dir
	return nil
}

// onTheWay shows on a terminal how many agents are up so far.
func (d *demo) onTheWay() *cli.Progress {
	if d.quiet {
		return cli.NewProgress(io.Discard)
	}
	return cli.ProgressOf(d.c)
}

// showFound lists the resources that were found, by the size of their machines.
func (d *demo) showFound(known []control.ResourceLine) {
	d.progress("%d resources found after %.1f s", len(known), time.Since(d.begun).Seconds())
	slices.SortFunc(known, func(a, b control.ResourceLine) int {
		return cmp.Or(cmp.Compare(a.Cores, b.Cores), cmp.Compare(a.Name, b.Name))
	})
	for len(known) > 0 {
		n := slices.IndexFunc(known, func(r control.ResourceLine) bool { return r.Cores != known[0].Cores })
		if n < 0 {
			n = len(known)
		}
		names := make([]string, n)
		for i, r := range known[:n] {
			names[i] = r.Name
		}
		d.progress("  %6d cores: %s", known[0].Cores, strings.Join(names, ", "))
		known = known[n:]
	}
}

package demo

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/join"
	"ramp/agents/words"
)

// ownDir makes the directory of --dir, which must be empty: the demonstration puts about fifty files
// there, with names such as bank and user, and people later remove it as a whole.
func (d *Market) ownDir() error {
	if _, err := os.Stat(filepath.Join(d.Dir, "ca", join.KeyFile)); err == nil {
		return exit.Fail(exit.Usage, "choose another directory, or 'ramp demo --stop --dir "+words.ShellWord(d.Dir)+"' and remove it", "%s already has a market", d.Dir)
	}
	dir, err := filepath.Abs(d.Dir)
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
		return exit.Fail(exit.Usage, "choose an empty directory, or a new one such as "+filepath.Join(d.Dir, "market"), "%s is not empty: it has %s", d.Dir, list[0].Name())
	}
	d.Dir = dir
	return nil
}

// showFound lists the resources that were found, by the size of their machines.
func (d *Market) showFound(known []control.ResourceLine) {
	d.progress("%d resources found after %.1f s", len(known), time.Since(d.Begun).Seconds())
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

package command

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ownDir is the directory that was asked for, which must have nothing in it: some
// fifty files come there, with names such as bank and user, and it is removed as a
// whole when the market is not wanted any more.
func (d *demo) ownDir() error {
	if _, err := os.Stat(filepath.Join(d.dir, "ca", caKey)); err == nil {
		return fail(exitUsage, "choose another directory, or 'ramp demo --stop --dir "+shellWord(d.dir)+"' and remove it", "%s has a market already", d.dir)
	}
	dir, err := filepath.Abs(d.dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fail(exitUsage, "", "--dir: %w", err)
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return fail(exitUsage, "", "--dir: %w", err)
	}
	if len(list) > 0 {
		return fail(exitUsage, "choose an empty directory, or a new one such as "+filepath.Join(d.dir, "market"), "%s is not empty: it has %s", d.dir, list[0].Name())
	}
	d.dir = dir
	return nil
}

// onTheWay shows on a terminal how many agents are there so far.
func (d *demo) onTheWay() *progress {
	if d.quiet {
		return newProgress(io.Discard)
	}
	return progressOf(d.c)
}

func (p *progress) soFar(format string, args ...any) {
	if p.live {
		p.line(fmt.Sprintf(format, args...))
	}
}

// tellFound says who was found: by the size of their machines.
func (d *demo) tellFound(known []resourceLine) {
	d.tell("%d resources found after %.1f s", len(known), time.Since(d.begun).Seconds())
	slices.SortFunc(known, func(a, b resourceLine) int {
		return cmp.Or(cmp.Compare(a.Cores, b.Cores), cmp.Compare(a.Name, b.Name))
	})
	for len(known) > 0 {
		n := slices.IndexFunc(known, func(r resourceLine) bool { return r.Cores != known[0].Cores })
		if n < 0 {
			n = len(known)
		}
		names := make([]string, n)
		for i, r := range known[:n] {
			names[i] = r.Name
		}
		d.tell("  %6d cores: %s", known[0].Cores, strings.Join(names, ", "))
		known = known[n:]
	}
}

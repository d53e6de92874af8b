package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"ramp/agents/sim/nat"
	"ramp/agents/sim/wan"
)

// natBuys are the purchases of a cell besides its two programs, natDelay the one-way delay of
// every pair, and natForget when a router forgets a mapping.
const (
	natBuys   = 10
	natDelay  = 20 * time.Millisecond
	natForget = 30 * time.Second
	natLast   = 35 * time.Second // so that idle mappings would be forgotten
	natBought = .99              // least share of orders, in each cell
	natAtOnce = 3                // cells for each parallel run: they mostly wait
)

// natCell is a cell, or why it could not be tried.
type natCell struct {
	nat.Cell
	err error
}

// natRun has newcomers trade across every pair of kinds of NAT.
func natRun(ctx context.Context, l *Lab, r *Result) error {
	if err := l.realAvailable(); err != nil {
		r.NotRun = fmt.Sprintf("it needs real processes: %v", err)
		return nil
	}
	kinds, many := wan.NATs(), *l
	many.Jobs *= natAtOnce
	cells, err := gather(ctx, &many, "pairs", len(kinds)*len(kinds), func(i int) natCell {
		return l.natTry(ctx, kinds[i/len(kinds)], kinds[i%len(kinds)], i)
	})
	t := Table{Name: "runs", About: "User and site", Shown: true, Columns: []string{
		"user", "site", "join s", "quote s", "run s", "path", "bought", "orders", "ran", "files", "programs", "relay killed", "run s then", "faults",
	}}
	for _, c := range cells {
		t.Rows = append(t.Rows, natRow(c.Cell))
		err = errors.Join(err, c.err)
	}
	r.table(t)
	r.natShapes(cells)
	r.note("Real processes in network namespaces: a bank and a second site at public addresses, which relay; a site and a user behind their routers. %s one way, mappings forgotten after %s, files of 256 KiB there and back. While the second program ran, for 35 s, its relay was killed (the other possible one if the path was direct); a bank was restarted.", natDelay, natForget)
	return err
}

func (l *Lab) natTry(ctx context.Context, user, site wan.NAT, i int) natCell {
	dir, err := os.MkdirTemp("", "ramp-nat-")
	if err != nil {
		return natCell{err: err}
	}
	c, err := nat.Run(ctx, nat.Config{
		Program: l.Program, Dir: dir, User: user, Site: site, Buys: l.repeat(natBuys), Forget: natForget, Delay: natDelay,
		KillRelay: true, Last: natLast, Seed: l.seed(i),
	})
	return natCell{c, errors.Join(err, os.RemoveAll(dir))}
}

func natRow(c nat.Cell) []string {
	seconds := func(d time.Duration) string { return num(d.Seconds(), 2) }
	return []string{
		c.User, c.Site, seconds(c.Join), seconds(c.Quote), seconds(c.Run), c.Path, fmt.Sprint(c.Bought), fmt.Sprint(c.Orders),
		fmt.Sprint(c.Ran), fmt.Sprint(c.Files), fmt.Sprint(c.Programs), c.Killed, seconds(c.RunThen), strings.Join(c.Faults, "; "),
	}
}

func (r *Result) natShapes(cells []natCell) {
	joined, files, programs, relayed, open := 0, 0, 0, 0, 0
	least := 1.0
	for _, c := range cells {
		if c.Joined {
			joined++
		}
		files, programs = files+c.Files, programs+c.Programs
		least = min(least, float64(c.Bought)/float64(max(c.Orders, 1)))
		if natOpen(c.User) && natOpen(c.Site) {
			open++
			if c.Path == "relayed" {
				relayed++
			}
		}
	}
	r.shape("every user joins", joined == len(cells), fmt.Sprintf("%d of %d", joined, len(cells)), "all")
	r.shape("orders bought, least of the pairs", least >= natBought, num(least, 3), fmt.Sprintf("at least %.2f", natBought))
	r.shape("programs whose files came back", files == programs, fmt.Sprintf("%d of %d", files, programs), "all")
	r.shape("pairs of public, full-cone and port-restricted that stay relayed", relayed == 0, fmt.Sprintf("%d of %d", relayed, open), "none")
}

// natOpen reports whether a direct path can be punched to a kind.
func natOpen(kind string) bool {
	return kind != wan.Symmetric.String() && kind != wan.OutboundOnly.String()
}

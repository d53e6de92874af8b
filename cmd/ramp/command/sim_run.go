package command

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"ramp/agents/sim"
	"ramp/agents/sim/adversary"
	"ramp/agents/sim/explore"
	"ramp/agents/sim/market"
)

func newSimRun() *cobra.Command {
	var f simFlags
	c := &cobra.Command{
		Use:   "run",
		Short: "Live through one market and hold it against the invariants",
		Args:  cobra.NoArgs,
		Long: `Lives through one market: users order at random, sites sell, a bank settles, and what
must always hold is checked record by record. When the faults have stopped the market
is given three quiet hours to settle, and journals, batch systems and ledger are
compared. Exits with 1 if an invariant broke, or if it was interrupted; what came out
so far is printed and marked then.`,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := f.market()
			if err != nil {
				return err
			}
			return runMarket(c, cfg, nil)
		},
	}
	f.add(c, true)
	return c
}

// runMarket lives through a market and prints what it came to.
func runMarket(c *cobra.Command, cfg market.Config, observers []sim.Observer) error {
	cast, err := adversary.NewCast()
	if err != nil {
		return err
	}
	begun := time.Now()
	p := newSimProgress(c.ErrOrStderr())
	r := simResult{Result: explore.Run(c.Context(), cast, cfg, p.share, observers...)}
	p.end()
	r.RealSeconds, r.PeakBytes = time.Since(begun).Seconds(), peakBytes()
	if wantsJSON(c) {
		if err := printJSON(c.OutOrStdout(), r); err != nil {
			return err
		}
	} else {
		r.print(c.OutOrStdout())
	}
	return r.verdict()
}

// peakBytes is the most memory that this process had so far.
func peakBytes() uint64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return uint64(u.Maxrss) << 10 // kilobytes on Linux
}

// simProgress shows how far a simulation is: a live line on a terminal, now and
// then a plain line elsewhere.
type simProgress struct {
	*progress
	begun, told time.Time
}

// plainGap is between plain lines of progress; short runs print none.
const plainGap = 30 * time.Second

func newSimProgress(w io.Writer) *simProgress {
	now := time.Now()
	return &simProgress{newProgress(w), now, now}
}

// share tells how much of the simulated time has passed.
func (p *simProgress) share(passed, whole time.Duration) {
	p.say(func() string {
		return fmt.Sprintf("%s %s of %s simulated, %s", bar(float64(passed)/float64(whole)), passed.Truncate(time.Minute), whole, time.Since(p.begun).Truncate(time.Second))
	})
}

// say shows a line, if it is time for one.
func (p *simProgress) say(line func() string) {
	gap := plainGap
	if p.live {
		gap = 100 * time.Millisecond
	}
	if time.Since(p.told) < gap {
		return
	}
	p.told = time.Now()
	if p.live {
		p.line(line())
	} else {
		fmt.Fprintln(p.w, line())
	}
}

// bar is a share as a picture.
func bar(share float64) string {
	const width = 20
	n := min(width, max(0, int(share*width)))
	return fmt.Sprintf("[%-*s] %3.0f%%", width, "####################"[:n], 100*share)
}

func newSimExplore() *cobra.Command {
	var f simFlags
	var seeds, out string
	var jobs int
	c := &cobra.Command{
		Use:   "explore",
		Short: "Live through the same market under many seeds, until one breaks",
		Args:  cobra.NoArgs,
		Long: `Lives through a market under each of some seeds, side by side, and stops at the first
that breaks an invariant. That one is made smaller, with less time, fewer agents and
fewer kinds of faults, as long as the same invariant breaks, and written to a file
that 'ramp sim replay' lives through again. Exits with 1 if one broke, or if it was
interrupted.`,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := f.market()
			if err != nil {
				return err
			}
			from, to, err := parseSeeds(seeds)
			if err != nil {
				return err
			}
			if jobs < 1 || jobs > maxJobs {
				return fail(exitUsage, "", "jobs %d: want 1..%d", jobs, maxJobs)
			}
			return exploreSeeds(c, explore.Plan{Market: cfg, From: from, To: to, Jobs: jobs}, out)
		},
	}
	f.add(c, false)
	c.Flags().StringVar(&seeds, "seeds", "1-100", "first and last seed")
	c.Flags().IntVar(&jobs, "jobs", defaultJobs(), "markets side by side")
	c.Flags().StringVar(&out, "out", "scenario.yaml", "where the smallest market that breaks is written")
	return c
}

// exploreSeeds explores, and shrinks what breaks.
func exploreSeeds(c *cobra.Command, p explore.Plan, out string) error {
	begun := time.Now()
	show := newSimProgress(c.ErrOrStderr())
	whole := float64(p.To-p.From) + 1
	sum, err := explore.Explore(c.Context(), p, func(s explore.Sum) {
		show.say(func() string {
			took := time.Since(begun)
			return fmt.Sprintf("%s %d seeds, %d auctions, %d bought, %d crashes, %.0f seeds an hour", bar(float64(s.Seeds)/whole), s.Seeds, s.Auctions, s.Bought, s.Crashes,
				float64(s.Seeds)/took.Hours())
		})
	})
	show.end()
	if err != nil {
		return err
	}
	report := exploreReport{Sum: sum, RealSeconds: time.Since(begun).Seconds(), PeakBytes: peakBytes()}
	if sum.Result != nil {
		if err := shrinkInto(c.Context(), c.ErrOrStderr(), p, &report, out); err != nil {
			return err
		}
	}
	if wantsJSON(c) {
		err = printJSON(c.OutOrStdout(), report)
	} else {
		report.print(c.OutOrStdout())
	}
	if err == nil && !sum.Complete {
		return silent(exitFailed)
	}
	return err
}

// shrinkInto writes the smallest market that breaks as its seed did.
func shrinkInto(ctx context.Context, errOut io.Writer, p explore.Plan, report *exploreReport, out string) error {
	cast, err := adversary.NewCast()
	if err != nil {
		return err
	}
	cfg := p.Market
	cfg.Seed = report.Failed
	first := report.Result.Violations[0]
	show := newSimProgress(errOut)
	small, r := explore.Shrink(ctx, cast, cfg, first.Invariant, func(c market.Config) {
		show.say(func() string {
			return fmt.Sprintf("shrinking: %d resources, %d users, %s", c.Resources, c.Users, c.Length)
		})
	})
	show.end()
	if len(r.Violations) > 0 {
		first = r.Violations[0]
	}
	s := explore.Scenario{Version: explore.ScenarioVersion, Note: first.Invariant + ": " + first.What, Market: small}
	report.Scenario = out
	return writeScenario(out, s)
}

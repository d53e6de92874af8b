package lab

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"ramp/agents/exit"
	"ramp/agents/sim"
	"ramp/agents/sim/adversary"
	"ramp/agents/sim/explore"
	"ramp/agents/sim/market"
	"ramp/cmd/ramp/cli"
)

func newSimRun() *cobra.Command {
	var f simFlags
	c := &cobra.Command{
		Use: "run", Short: "Simulate one market and check its invariants",
		Args: cobra.NoArgs,
		Long: `Simulate one market: users order at random, sites sell, a bank settles, and every invariant is
checked record by record. When the faults end, the market gets three quiet hours to settle; then
journals, batch systems and the ledger are compared. Ends with 1 if an invariant broke, or on an
interrupt, after printing the incomplete results. The same seed and version give the same
trace_hash on any machine.`,
		Example: "  ramp sim run --seed 7 --faults light",
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

func runMarket(c *cobra.Command, cfg market.Config, observers []sim.Observer) error {
	cast, err := adversary.NewCast()
	if err != nil {
		return err
	}
	begun := time.Now()
	p := newSimProgress(c.ErrOrStderr())
	r := simResult{Result: explore.Run(c.Context(), cast, cfg, p.share, observers...)}
	p.End()
	r.RealSeconds, r.PeakBytes = time.Since(begun).Seconds(), peakBytes()
	if err := cli.Show(c, r, r.print); err != nil {
		return err
	}
	return r.verdict()
}

// peakBytes is the peak memory of this process so far.
func peakBytes() uint64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return uint64(u.Maxrss) << 10 // kilobytes on Linux
}

// simProgress shows how far a simulation is: by a live line on a terminal, by an occasional plain
// line elsewhere.
type simProgress struct {
	*cli.Progress
	begun, last time.Time
}

// plainGap is the time between plain lines; short runs print none.
const plainGap = 30 * time.Second

func newSimProgress(w io.Writer) *simProgress {
	now := time.Now()
	return &simProgress{cli.NewProgress(w), now, now}
}

func (p *simProgress) share(passed, whole time.Duration) {
	p.say(func() string {
		return fmt.Sprintf("%s %s of %s simulated, %s", bar(float64(passed)/float64(whole)), passed.Truncate(time.Minute), whole, time.Since(p.begun).Truncate(time.Second))
	})
}

// say shows a line, if it is time for one.
func (p *simProgress) say(line func() string) {
	gap := plainGap
	if p.Live {
		gap = 100 * time.Millisecond
	}
	if time.Since(p.last) < gap {
		return
	}
	p.last = time.Now()
	if p.Live {
		p.Line(line())
	} else {
		fmt.Fprintln(p.W, line())
	}
}

func bar(share float64) string {
	const width = 20
	n := min(width, max(0, int(share*width)))
	return fmt.Sprintf("[%-*s] %3.0f%%", width, "####################"[:n], 100*share)
}

func newSimExplore() *cobra.Command {
	var f simFlags
	var seeds, out string
	var jobs int
	var shared bool
	c := &cobra.Command{
		Use: "explore", Short: "Simulate a market under many seeds until an invariant breaks",
		Args: cobra.NoArgs,
		Long: `Simulate a market under many seeds, in parallel, and stop at the first that breaks an invariant.
That market is reduced (less time, fewer agents, fewer kinds of faults) as long as the same
invariant breaks, and written to a file for 'ramp sim replay'. Ends with 1 if an invariant
broke, or on an interrupt. With --federation, simulate sites that share cores by priority
instead (--seeds, --faults and --jobs apply), every second time with an adversary.`,
		Example: "  ramp sim explore --seeds 1-50 --faults heavy --resources 5 --users 4 --days 0.1 --rate 6",
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
				return exit.Fail(exit.Usage, "", "--jobs %d: want 1..%d", jobs, maxJobs)
			}
			if shared {
				return exploreFederations(c, from, to, jobs, c.Flags().Lookup("faults").Value.String())
			}
			return exploreSeeds(c, explore.Plan{Market: cfg, From: from, To: to, Jobs: jobs}, out)
		},
	}
	f.add(c, false)
	c.Flags().StringVar(&seeds, "seeds", "1-100", "`FIRST-LAST` seed")
	c.Flags().IntVar(&jobs, "jobs", defaultJobs(), "parallel markets (default: one per processor)")
	c.Flags().Lookup("jobs").DefValue = "" // documents are the same on every machine
	c.Flags().BoolVar(&shared, "federation", false, "simulate federations of sites instead of markets")
	c.Flags().StringVar(&out, "out", "scenario.yaml", "write the smallest market that breaks to `FILE`")
	return c
}

// exploreSeeds explores, and shrinks a failing market.
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
	show.End()
	if err != nil {
		return err
	}
	report := exploreReport{Sum: sum, RealSeconds: time.Since(begun).Seconds(), PeakBytes: peakBytes()}
	if sum.Result != nil {
		if err := shrinkInto(c.Context(), c.ErrOrStderr(), p, &report, out); err != nil {
			return err
		}
	}
	err = cli.Show(c, report, report.print)
	if err == nil && !sum.Complete {
		return exit.Silent(exit.Failed)
	}
	return err
}

// shrinkInto writes the smallest market that fails as the seed's did.
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
	show.End()
	if len(r.Violations) > 0 {
		first = r.Violations[0]
	}
	s := explore.Scenario{Version: explore.ScenarioVersion, Note: first.Invariant + ": " + first.What, Market: small}
	report.Scenario = out
	return writeScenario(out, s)
}

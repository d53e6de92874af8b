package lab

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"ramp/agents/config"
	"ramp/agents/exit"
	"ramp/agents/sim"
	"ramp/agents/sim/adversary"
	"ramp/agents/sim/market"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
)

func NewSim() *cobra.Command {
	c := &cobra.Command{
		Use: "sim", Short: "Simulate whole markets in virtual time", GroupID: "measure",
		Long: `Run the agents of the live system, with their bytes and signatures, under a virtual clock and on
a network, disks and batch systems that fail as configured. The same seed gives the same market
on any machine. docs/RELIABILITY.md says what is checked, and lists all faults.

The dishonest parties of --adversaries are abandons, cannot-pay, double-signs, floods, foreign,
forger, freeloads, hoarders, never-confirms, odd-offers, other-terms, replays, ring,
silent-groups, sybils, underbids, vanishes, void-flood and wash; sybils and hoarders count per
honest site.`,
	}
	cli.Add(c, newSimRun(), newSimExplore(), newSimReplay(), newSimExperiment(), newSimDBC())
	return c
}

type simFlags struct {
	seed      string
	resources int
	users     int
	days      float64
	rate      float64
	heartbeat time.Duration
	units     int
	launches  int
	exchanges float64
	sweeps    float64
	overbook  bool
	faults    string
	rogues    map[string]int
}

func (f *simFlags) add(c *cobra.Command, seed bool) {
	d := market.Default()
	if seed {
		c.Flags().StringVar(&f.seed, "seed", "1", "`SEED` of everything random")
	}
	c.Flags().IntVar(&f.resources, "resources", d.Resources, "sites that sell")
	c.Flags().IntVar(&f.users, "users", d.Users, "users who buy")
	c.Flags().Float64Var(&f.days, "days", 1, "simulated days with faults; quiet hours follow until everything is decided")
	c.Flags().Float64Var(&f.rate, "rate", d.Rate, "auctions per user and hour")
	cli.DurationVar(c.Flags(), &f.heartbeat, "heartbeat", d.Heartbeat, "time between an agent's announcements")
	c.Flags().IntVar(&f.units, "units", d.Units, "most units per order")
	c.Flags().IntVar(&f.launches, "launches", d.Launches, "orders per thousand that run a program in what they buy")
	c.Flags().Float64Var(&f.exchanges, "exchanges", d.Exchanges, "exchanges of money per user and hour")
	c.Flags().Float64Var(&f.sweeps, "sweeps", d.Sweeps, "sweeps ordered per user and hour")
	c.Flags().BoolVar(&f.overbook, "sharpen", false, "let sites overbook local jobs that they expect to end early")
	c.Flags().StringToIntVar(&f.rogues, "adversaries", nil, "add dishonest parties, `KIND=N,...`, such as never-confirms=1,sybils=4")
	c.Flags().StringVar(&f.faults, "faults", "none", "`FAULTS`: none, light, forgetful (sellers lose their journals), heavy, or a YAML file")
	words := []cobra.Completion{"none", "light", "forgetful", "heavy"}
	_ = c.RegisterFlagCompletionFunc("faults", cobra.FixedCompletions(words, cobra.ShellCompDirectiveDefault)) // or a file
}

func (f *simFlags) market() (market.Config, error) {
	cfg := market.Default()
	if f.seed != "" {
		seed, err := strconv.ParseUint(f.seed, 10, 64)
		if err != nil {
			return cfg, exit.Fail(exit.Usage, "", "--seed %q: want a number in 0..%d", f.seed, uint64(math.MaxUint64))
		}
		cfg.Seed = seed
	}
	if !(f.days > 0 && f.days <= market.MaxLength.Hours()/24) {
		return cfg, exit.Fail(exit.Usage, "", "--days %g: want above 0, at most %g", f.days, market.MaxLength.Hours()/24)
	}
	cfg.Resources, cfg.Users, cfg.Rate, cfg.Heartbeat, cfg.Units, cfg.Launches, cfg.Overbook = f.resources, f.users, f.rate, f.heartbeat, f.units, f.launches, f.overbook
	cfg.Exchanges, cfg.Sweeps = f.exchanges, f.sweeps
	cfg.Length = time.Duration(f.days * float64(24*time.Hour))
	var err error
	if cfg.Faults, err = readFaults(f.faults); err != nil {
		return cfg, err
	}
	if len(f.rogues) > 0 {
		cfg.Adversaries = f.rogues
	}
	if err := cmp.Or(adversary.Validate(f.rogues), cfg.Validate()); err != nil {
		return cfg, exit.Fail(exit.Usage, "see 'ramp sim run --help'", "--%w", err) // its fields are named as the flags are
	}
	return cfg, nil
}

// readFaults are the faults of a level, or of a file.
func readFaults(name string) (sim.Faults, error) {
	if f, ok := sim.Levels()[name]; ok {
		return f, nil
	}
	f := sim.Levels()["none"]
	if err := readSimFile(name, "--faults", "give none, light, forgetful, heavy, or a YAML file, whose keys docs/RELIABILITY.md lists", &f); err != nil {
		return f, err
	}
	if err := f.Validate(); err != nil {
		return f, exit.Fail(exit.Usage, "docs/RELIABILITY.md lists every fault", "--faults %s: %w", name, err)
	}
	return f, nil
}

// maxSimFile bounds a file of faults or a scenario.
const maxSimFile = 1 << 20

// readSimFile reads a YAML file strictly into v. The hint is for a missing or bad file.
func readSimFile(path, what, hint string, v any) error {
	b, err := words.ReadBounded(nil, path, maxSimFile)
	if err != nil {
		return exit.Fail(exit.Usage, hint, "%s: %w", what, err)
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(v); err != nil && !errors.Is(err, io.EOF) {
		return exit.Fail(exit.Usage, hint, "%s %s: %s", what, path, strings.ReplaceAll(config.YAMLError(b, err), "\n", " "))
	}
	switch key, err := config.CutKey(b, v); {
	case err != nil:
		return exit.Fail(exit.Usage, hint, "%s %s: %w", what, path, err)
	case key != "":
		return exit.Fail(exit.Usage, hint, "%s %s: %s: want a whole number", what, path, key)
	case !errors.Is(d.Decode(new(yaml.Node)), io.EOF):
		return exit.Fail(exit.Usage, hint, "%s %s: want one document, without '---'", what, path)
	}
	return nil
}

// simResult is the result of a run, with its time and memory.
type simResult struct {
	market.Result
	RealSeconds float64 `json:"real_s"`
	PeakBytes   uint64  `json:"peak_bytes"` // resident, of the whole process so far
}

func (r simResult) print(w io.Writer) {
	state := ""
	if !r.Complete {
		state = " (interrupted: partial)"
	}
	fmt.Fprintf(w, "seed %d%s\n", r.Seed, state)
	cli.Table(w,
		[]string{"simulated", (time.Duration(r.SimSeconds) * time.Second).String()},
		[]string{"took", fmt.Sprintf("%.2fs (%.0f x real time), %d MiB at most", r.RealSeconds, r.SimSeconds/r.RealSeconds, r.PeakBytes>>20)},
		[]string{"auctions", fmt.Sprintf("%d: %d bought (%s), %d not", r.Auctions, r.Bought, words.Plural(r.Units, "unit"), r.Refused)},
		[]string{"money", r.Money},
		[]string{"messages", fmt.Sprintf("%d received, %d lost", r.Messages, r.Lost)},
		[]string{"faults", fmt.Sprintf("%d crashes, %d torn writes", r.Crashes, r.Torn)},
		[]string{"trace", r.TraceHash},
	)
	for _, name := range market.Invariants() {
		fmt.Fprintf(w, "  checked %-18s %10d times\n", name, r.Checks[name])
	}
	for _, v := range r.Violations {
		fmt.Fprintf(w, "VIOLATION %s %s: %s\n", v.At.Format(time.RFC3339), v.Invariant, v.What)
	}
	if len(r.Violations) == 0 {
		fmt.Fprintln(w, "no violation")
	}
}

// verdict is the exit code of a result.
func (r simResult) verdict() error {
	if len(r.Violations) > 0 || !r.Complete {
		return exit.Silent(exit.Failed)
	}
	return nil
}

package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"ramp/agents/sim"
	"ramp/agents/sim/adversary"
	"ramp/agents/sim/market"
)

func newSim() *cobra.Command {
	c := &cobra.Command{
		Use:   "sim",
		Short: "Live through whole markets in virtual time",
		Long: `Runs the agents of the live system, with their bytes and signatures, under a virtual
clock and a network, disks and batch systems that break as they are told to. The same
seed gives the same market, on any machine. docs/RELIABILITY.md says what is checked.`,
	}
	c.AddCommand(newSimRun(), newSimExplore(), newSimReplay(), newSimExperiment())
	return c
}

// simFlags are the flags of a simulated market.
type simFlags struct {
	seed      string
	resources int
	users     int
	days      float64
	rate      float64
	heartbeat time.Duration
	units     int
	launches  int
	sharpen   bool
	faults    string
	rogues    map[string]int
}

func (f *simFlags) add(c *cobra.Command, seed bool) {
	d := market.Default()
	if seed {
		c.Flags().StringVar(&f.seed, "seed", "1", "number from which everything is drawn")
	}
	c.Flags().IntVar(&f.resources, "resources", d.Resources, "sites that sell")
	c.Flags().IntVar(&f.users, "users", d.Users, "users who buy")
	c.Flags().Float64Var(&f.days, "days", 1, "simulated days with faults; some quiet hours follow")
	c.Flags().Float64Var(&f.rate, "rate", d.Rate, "auctions an hour and user")
	durationVar(c.Flags(), &f.heartbeat, "heartbeat", d.Heartbeat, "between presences of an agent")
	c.Flags().IntVar(&f.units, "units", d.Units, "most units of an order")
	c.Flags().IntVar(&f.launches, "launches", d.Launches, "orders of a thousand that run a program in what they buy")
	c.Flags().BoolVar(&f.sharpen, "sharpen", false, "sites sell over local jobs that they expect to end early")
	c.Flags().StringToIntVar(&f.rogues, "adversaries", nil, "parties that cheat, such as never-confirms=1,sybils=4")
	c.Flags().StringVar(&f.faults, "faults", "none", "none, light, forgetful, heavy, or a YAML file of faults")
}

// market is the market that the flags describe.
func (f *simFlags) market() (market.Config, error) {
	cfg := market.Default()
	if f.seed != "" {
		seed, err := strconv.ParseUint(f.seed, 10, 64)
		if err != nil {
			return cfg, fail(exitUsage, "", "seed %q: want a number in 0..%d", f.seed, uint64(math.MaxUint64))
		}
		cfg.Seed = seed
	}
	if !(f.days > 0 && f.days <= market.MaxLength.Hours()/24) {
		return cfg, fail(exitUsage, "", "days %g: want above 0, at most %g", f.days, market.MaxLength.Hours()/24)
	}
	cfg.Resources, cfg.Users, cfg.Rate, cfg.Heartbeat, cfg.Units, cfg.Launches, cfg.Sharpen = f.resources, f.users, f.rate, f.heartbeat, f.units, f.launches, f.sharpen
	cfg.Length = time.Duration(f.days * float64(24*time.Hour))
	var err error
	if cfg.Faults, err = readFaults(f.faults); err != nil {
		return cfg, err
	}
	if len(f.rogues) > 0 {
		cfg.Adversaries = f.rogues
	}
	if err := errors.Join(cfg.Validate(), adversary.Validate(f.rogues)); err != nil {
		return cfg, fail(exitUsage, "see 'ramp sim run --help'", "%w", err)
	}
	return cfg, nil
}

// readFaults are the faults of a level, or of a file.
func readFaults(name string) (sim.Faults, error) {
	if f, ok := sim.Levels()[name]; ok {
		return f, nil
	}
	f := sim.Levels()["none"]
	if err := readSimFile(name, "faults", &f); err != nil {
		return f, err
	}
	if err := f.Validate(); err != nil {
		return f, fail(exitUsage, "docs/RELIABILITY.md lists every fault", "faults %s: %w", name, err)
	}
	return f, nil
}

// maxSimFile bounds a file of faults or a scenario.
const maxSimFile = 1 << 20

// simFileHint says what may stand in place of a file that is not there.
func simFileHint(what string) string {
	if what == "faults" {
		return "none, light, forgetful, heavy, or such a file"
	}
	return "'ramp sim explore' writes one when it finds a market that breaks"
}

// readSimFile reads a YAML file strictly into v.
func readSimFile(path, what string, v any) error {
	file, err := os.Open(path)
	if err != nil {
		return fail(exitUsage, simFileHint(what), "%s: %w", what, err)
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxSimFile+1))
	if err != nil {
		return fail(exitUsage, "", "%s: %w", what, err)
	}
	if len(b) > maxSimFile {
		return fail(exitUsage, "", "%s %s: over %d bytes", what, path, maxSimFile)
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(v); err != nil && !errors.Is(err, io.EOF) {
		return fail(exitUsage, "docs/RELIABILITY.md lists every key", "%s %s: %s", what, path, strings.ReplaceAll(yamlWords(err), "\n", " "))
	}
	return nil
}

// simResult is the result of a run with what it took.
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
	table(w,
		[]string{"simulated", (time.Duration(r.SimSeconds) * time.Second).String()},
		[]string{"took", fmt.Sprintf("%.2fs (%.0f x real time), %d MiB at most", r.RealSeconds, r.SimSeconds/r.RealSeconds, r.PeakBytes>>20)},
		[]string{"auctions", fmt.Sprintf("%d: %d bought (%s), %d not", r.Auctions, r.Bought, plural(r.Units, "unit"), r.Refused)},
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
		return silent(exitFailed)
	}
	return nil
}

package lab

import (
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"ramp/agents/config"
	"ramp/agents/exit"
	"ramp/agents/sim"
	"ramp/agents/sim/explore"
	"ramp/agents/words"
	"ramp/protocol"
	"ramp/protocol/acl"
	"ramp/protocol/codec"
)

// maxJobs bounds how many markets run side by side.
const maxJobs = 256

func defaultJobs() int { return min(maxJobs, runtime.GOMAXPROCS(0)) }

// parseSeeds reads a range such as 1-500, or one seed.
func parseSeeds(s string) (from, to uint64, err error) {
	first, last, ok := strings.Cut(s, "-")
	if !ok {
		last = first
	}
	from, err1 := strconv.ParseUint(strings.TrimSpace(first), 10, 64)
	to, err2 := strconv.ParseUint(strings.TrimSpace(last), 10, 64)
	if err1 != nil || err2 != nil || to < from {
		return 0, 0, exit.Fail(exit.Usage, "", "--seeds %q: want two numbers with '-' between, such as 1-500", s)
	}
	return from, to, nil
}

type exploreReport struct {
	explore.Sum
	Scenario    string  `json:"scenario,omitempty"` // file of the smallest failing market
	RealSeconds float64 `json:"real_s"`
	PeakBytes   uint64  `json:"peak_bytes"`
}

func (r exploreReport) print(w io.Writer) {
	state := ""
	if !r.Complete && r.Result == nil {
		state = " (interrupted: partial)"
	}
	fmt.Fprintf(w, "%s%s: %d auctions, %d bought, %d crashes, %.1fs, %.0f seeds an hour\n", words.Plural(r.Seeds, "seed"), state, r.Auctions, r.Bought, r.Crashes,
		r.RealSeconds, float64(r.Seeds)/r.RealSeconds*3600)
	if r.Result == nil {
		fmt.Fprintln(w, "no violation")
		return
	}
	for _, v := range r.Result.Violations {
		fmt.Fprintf(w, "VIOLATION seed %d %s %s: %s\n", r.Failed, v.At.Format(time.RFC3339), v.Invariant, v.What)
	}
	fmt.Fprintf(w, "the smallest market found that violates it: %s\n  ramp sim replay --trace %s\n", r.Scenario, r.Scenario)
}

// writeScenario writes a scenario as a whole, or not at all.
func writeScenario(path string, s explore.Scenario) error {
	b, err := yaml.Marshal(s)
	if err != nil {
		return err
	}
	if err := config.ReplaceFile(path, b, 0o644); err != nil {
		return exit.Fail(exit.Failed, "", "write scenario: %w", err)
	}
	return nil
}

const scenarioHint = "'ramp sim explore' writes such a file when it finds a market that breaks"

func newSimReplay() *cobra.Command {
	var trace bool
	c := &cobra.Command{
		Use: "replay FILE", Short: "Replay the market of a scenario file",
		Args: cobra.ExactArgs(1),
		Long: `Replay the market of a scenario file, which 'ramp sim explore' writes. With --trace, print every
message and every save on stderr, as FIPA-ACL strings with virtual times.`,
		Example: "  ramp sim replay scenario.yaml --trace",
		RunE: func(c *cobra.Command, args []string) error {
			var s explore.Scenario
			if err := readSimFile(args[0], "scenario", scenarioHint, &s); err != nil {
				return err
			}
			if err := s.Validate(); err != nil {
				return exit.Fail(exit.Usage, scenarioHint, "scenario %s: %w", args[0], err)
			}
			var observers []sim.Observer
			if trace {
				observers = append(observers, tracer{c.ErrOrStderr()})
			}
			return runMarket(c, s.Market, observers)
		},
	}
	c.Flags().BoolVar(&trace, "trace", false, "print every message and save with its virtual time")
	return c
}

// tracer prints the messages that agents receive, and what they save.
type tracer struct{ w io.Writer }

func (t tracer) Durable(h *sim.Host, records []protocol.Record) {
	var tables []string
	for _, r := range records {
		tables = append(tables, r.Table)
	}
	fmt.Fprintf(t.w, "%s %s saves %s\n", h.World().Now().Format("2006-01-02T15:04:05.000"), h.Name, strings.Join(tables, " "))
}

// Delivered prints a message, unless it only announces presence.
func (t tracer) Delivered(h, _ *sim.Host, m protocol.Message) {
	if m.Protocol == protocol.ProtocolPresence {
		return
	}
	fmt.Fprintf(t.w, "%s %s receives %s\n", h.World().Now().Format("2006-01-02T15:04:05.000"), h.Name, acl.Format(codec.ToACL(m)))
}

// Sent prints nothing: Delivered prints what arrives.
func (t tracer) Sent(*sim.Host, protocol.Message) {}

// Refused prints a message that could not be opened.
func (t tracer) Refused(h *sim.Host, sender protocol.AgentID, err error) {
	fmt.Fprintf(t.w, "%s %s cannot open what %s sent: %v\n", h.World().Now().Format("2006-01-02T15:04:05.000"), h.Name, sender, err)
}

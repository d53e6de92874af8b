package command

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"ramp/protocol"
	"ramp/rfql"
	"ramp/rfql/compose"
)

// requestHelp says how flags make a request.
const requestHelp = `In place of FILE, flags say what is wanted, in human units: --cores, --wall, --within
(or --by) and --max-price are needed. --and begins another unit, which is like the one
before but for what follows it; a value of 'any' takes back what a unit before asks for.
All units are bought, or none. 'ramp rfql new' prints the document that the flags make.`

const requestExample = "  ramp user %[1]s --cores 256 --wall 2h --within 12h --max-price 40\n" +
	"  ramp user %[1]s --cores 256 --wall 2h --within 12h --max-price 40 --and --cores 16 --ram 4G"

// requestFlags build a request from flags, in the order in which they stand.
type requestFlags struct {
	builder *compose.Builder
	said    bool
	words   []string // as they were given
	err     error    // the first, told once the command runs
}

// requestWords are the flags, with their kind of value and their help.
var requestWords = map[compose.Word][2]string{
	compose.Cores:       {"N", "cores, anywhere on one machine"},
	compose.Nodes:       {"NxC", "whole nodes and the cores of each, such as 4x16 (in place of --cores)"},
	compose.Wall:        {"D", "how long it runs: 2h, 90m, 1d12h or 02:30:00"},
	compose.Within:      {"D", "it has ended by then, counted from now: 12h"},
	compose.By:          {"TIME", "it has ended by then: 2026-11-22T18:00 (UTC), or 18:00 (the next, UTC)"},
	compose.NotBefore:   {"TIME", "it starts no sooner: a time as for --by, or +3h from now"},
	compose.MaxPrice:    {"C", "most credits per core-hour"},
	compose.RAM:         {"SIZE", "memory per core, at least: 2G"},
	compose.Disk:        {"SIZE", "disk space in all, at least: 500G"},
	compose.NodeDisk:    {"SIZE", "disk space on each node, at least: 50G (in place of --disk)"},
	compose.CPUSpeed:    {"HZ", "clock of the processors, at least: 2.4GHz"},
	compose.Bandwidth:   {"RATE", "between two nodes, at least: 10G (bit/s)"},
	compose.OS:          {"WORD", "operating system, such as Linux"},
	compose.OSVersion:   {"WORD", "what its version begins with"},
	compose.Arch:        {"WORD", "architecture, such as x86_64"},
	compose.Name:        {"WORD", "what to call it"},
	compose.Application: {"WORD", "what will run"},
}

func (q *requestFlags) register(c *cobra.Command) {
	q.builder = compose.New(time.Now())
	for _, w := range compose.Words() {
		c.Flags().Var(&requestFlag{q, w}, string(w), requestWords[w][1])
	}
	and := c.Flags().VarPF(&andFlag{q}, "and", "", "begin another unit, like the one before but for what follows")
	and.NoOptDefVal = "true"
	c.Flags().SortFlags = false
}

// note keeps the first error: the flag library would print its value twice.
func (q *requestFlags) note(flag string, err error) {
	q.said = true
	if err != nil && q.err == nil {
		q.err = fail(exitUsage, "", "--%s %w", flag, err)
	}
}

// document is what the flags ask for.
func (q *requestFlags) document(o protocol.Objective) (rfql.Document, error) {
	if q.err != nil {
		return rfql.Document{}, q.err
	}
	doc, err := q.builder.Document(time.Now().Add(buyingTime), o)
	if err != nil {
		return doc, fail(exitUsage, "such as --cores 256 --wall 2h --within 12h --max-price 40", "the request cannot be made: %w", err)
	}
	return doc, nil
}

// fileOr takes a FILE, or flags in its place.
func (q *requestFlags) fileOr(c *cobra.Command, args []string) error {
	if err := emptyFlags(c); err != nil {
		return err
	}
	switch {
	case len(args) > 1:
		return fmt.Errorf("accepts one FILE, received %d", len(args))
	case len(args) == 1 && q.said:
		return fmt.Errorf("give FILE, or flags that say what is wanted, not both")
	case len(args) == 0 && !q.said:
		return fail(exitUsage, "such as --cores 256 --wall 2h --within 12h --max-price 40; or see '"+c.CommandPath()+" --help'",
			"say what is wanted: a FILE, or flags")
	}
	return nil
}

// emptyFlags refuses limits and names that were given without a value, as by a variable
// of a script that is not set: without --max-cost anything may be spent.
func emptyFlags(c *cobra.Command) error {
	for _, name := range []string{"max-cost", "max-wait", "accept-counter", "id", "optimize", "mode"} {
		f := c.Flags().Lookup(name)
		if f != nil && f.Changed && (f.Value.String() == "" || f.Value.String() == "0s") {
			return fail(exitUsage, "leave it out for none; is a variable not set?", "--%s %q: want a value", name, f.Value)
		}
	}
	return nil
}

// requestFlag is one flag that says something of the last unit.
type requestFlag struct {
	q    *requestFlags
	word compose.Word
}

// Set says it.
func (f *requestFlag) Set(s string) error {
	f.q.words = append(f.q.words, string(f.word)+"="+s)
	f.q.note(string(f.word), f.q.builder.Set(f.word, s))
	return nil
}

func (f *requestFlag) String() string { return "" }

// Type is the kind of its value in the help.
func (f *requestFlag) Type() string { return requestWords[f.word][0] }

// andFlag begins another unit.
type andFlag struct{ q *requestFlags }

// Set begins the unit.
func (f *andFlag) Set(s string) error {
	if yes, err := strconv.ParseBool(s); err != nil || !yes {
		return fmt.Errorf("it takes no value")
	}
	if !f.q.said {
		f.q.note("and", fmt.Errorf("comes between two units: say the first one before it"))
		return nil
	}
	f.q.words = append(f.q.words, "and")
	f.q.note("and", f.q.builder.And())
	return nil
}

func (f *andFlag) String() string { return "" }

// Type shows no kind of value.
func (f *andFlag) Type() string { return "bool" }

// newRFQLNew prints the document that flags make.
func newRFQLNew() *cobra.Command {
	var q requestFlags
	var optimize string
	c := &cobra.Command{
		Use: "new --cores N --wall D --within D --max-price C", Short: "Print the document that the flags of 'user buy' make", Args: cobra.NoArgs,
		Long: `Prints an RFQL document that asks for what the flags say.

` + requestHelp,
		Example: "  ramp rfql new --cores 256 --wall 2h --within 12h --max-price 40 > job.xml",
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := parseOptimize(optimize)
			if err != nil {
				return err
			}
			doc, err := q.document(o)
			if err != nil {
				return err
			}
			if wantsJSON(c) {
				return showDraft(c, "flags", doc.Draft(), nil)
			}
			_, err = stdout(c).Write(doc.XML())
			return err
		},
	}
	q.register(c)
	c.Flags().StringVar(&optimize, "optimize", "", "cost, time or cost-time")
	return c
}

// parseOptimize reads --optimize; without it nothing is said.
func parseOptimize(s string) (protocol.Objective, error) {
	if s == "" {
		return 0, nil
	}
	o, err := protocol.ParseObjective(s)
	if err != nil {
		return 0, fail(exitUsage, "", "--optimize: %w", err)
	}
	return o, nil
}

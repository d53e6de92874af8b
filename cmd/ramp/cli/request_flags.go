package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/exit"
	"ramp/protocol"
	"ramp/rfql"
	"ramp/rfql/compose"
)

// RequestHelp explains the flags that describe a request.
const RequestHelp = `Flags can describe the request instead of FILE; --cores (or --nodes), --wall, --within (or --by)
and --max-price are required. --and starts another unit, a copy of the one before it except for
the flags that follow; the value 'any' drops a copied requirement. Either all units are bought
or none. 'ramp rfql new' prints the document that the flags produce.`

const RequestExample = "  ramp user %[1]s --cores 256 --wall 2h --within 12h --max-price 40\n" +
	"  ramp user %[1]s --cores 256 --wall 2h --within 12h --max-price 40 --and --cores 16 --ram 4G"

// RequestFlags build a request from flags, in the order in which they are given.
type RequestFlags struct {
	Builder *compose.Builder
	Given   bool
	Words   []string // the flags as given
	err     error    // the first error; reported when the command runs
}

// requestWords are the flags, with their kind of value and their help.
var requestWords = map[compose.Word][2]string{
	compose.Cores:       {"N", "cores, anywhere on one machine"},
	compose.Nodes:       {"NxC", "whole nodes and the cores of each, such as 4x16 (instead of --cores)"},
	compose.Wall:        {"D", "how long it runs: 2h, 90m, 1d12h or 02:30:00, rounded up to minutes"},
	compose.Within:      {"D", "finish within this time, counted from now"},
	compose.By:          {"TIME", "finish by this time: 2026-11-22T18:00 (UTC unless it names a zone) or 18:00 (the next one)"},
	compose.NotBefore:   {"TIME", "start no sooner than this time: as for --by, or +3h from now"},
	compose.MaxPrice:    {"C", "pay at most this many credits per core-hour"},
	compose.RAM:         {"SIZE", "memory per core, at least: 2G, 512M; MB without a unit"},
	compose.Disk:        {"SIZE", "total disk space, at least: 500G, 1T; GB without a unit"},
	compose.NodeDisk:    {"SIZE", "disk space per node, at least: 50G (instead of --disk)"},
	compose.CPUSpeed:    {"HZ", "processor clock, at least: 2.4GHz; MHz without a unit"},
	compose.Bandwidth:   {"RATE", "bandwidth between two nodes, at least: 10G; Mbit/s without a unit"},
	compose.OS:          {"WORD", "operating system, such as Linux"},
	compose.OSVersion:   {"WORD", "prefix of its version"},
	compose.Arch:        {"WORD", "processor architecture, such as x86_64"},
	compose.Name:        {"WORD", "name of the request"},
	compose.Application: {"WORD", "application that will run"},
}

func (q *RequestFlags) Register(c *cobra.Command) {
	q.Builder = compose.New(time.Now())
	for _, w := range compose.Words() {
		c.Flags().Var(&requestFlag{q, w}, string(w), requestWords[w][1])
	}
	and := c.Flags().VarPF(&andFlag{q}, "and", "", "start another unit, a copy of the one before except for what follows")
	and.NoOptDefVal = "true"
	c.Flags().SortFlags = false
}

// note keeps the first error for later: the flag library would print the value twice.
func (q *RequestFlags) note(flag string, err error) {
	q.Given = true
	if err != nil && q.err == nil {
		q.err = exit.Fail(exit.Usage, "", "--%s %w", flag, err)
	}
}

// Document is what the flags ask for.
func (q *RequestFlags) Document(o protocol.Objective) (rfql.Document, error) {
	if q.err != nil {
		return rfql.Document{}, q.err
	}
	doc, err := q.Builder.Document(time.Now().Add(buyingTime), o)
	if err != nil {
		return doc, exit.Fail(exit.Usage, "such as --cores 256 --wall 2h --within 12h --max-price 40", "cannot make the request: %w", err)
	}
	return doc, nil
}

// FileOr accepts a FILE, or flags instead.
func (q *RequestFlags) FileOr(c *cobra.Command, args []string) error {
	if err := emptyFlags(c); err != nil {
		return err
	}
	switch {
	case len(args) > 1:
		return fmt.Errorf("accepts one FILE, received %d", len(args))
	case len(args) == 1 && q.Given:
		return fmt.Errorf("give a FILE or the flags of a request, not both")
	case len(args) == 0 && !q.Given:
		return exit.Fail(exit.Usage, "such as --cores 256 --wall 2h --within 12h --max-price 40; or see '"+c.CommandPath()+" --help'",
			"no request: give a FILE, or flags")
	}
	return nil
}

// emptyFlags rejects limits and names with an empty value, which an unset variable in a script
// gives: without --max-cost, any amount might be spent.
func emptyFlags(c *cobra.Command) error {
	for _, name := range []string{"max-cost", "max-wait", "accept-counter", "id", "optimize", "mode"} {
		f := c.Flags().Lookup(name)
		if f != nil && f.Changed && (f.Value.String() == "" || f.Value.String() == "0s") {
			return exit.Fail(exit.Usage, "leave it out if you need none; is a variable unset?", "--%s %q: want a value", name, f.Value)
		}
	}
	return nil
}

// requestFlag is one flag that describes the last unit.
type requestFlag struct {
	q    *RequestFlags
	word compose.Word
}

// Set adds the value to the request.
func (f *requestFlag) Set(s string) error {
	f.q.Words = append(f.q.Words, string(f.word)+"="+s)
	f.q.note(string(f.word), f.q.Builder.Set(f.word, s))
	return nil
}

func (f *requestFlag) String() string { return "" }

// Type is the placeholder for its value in the help.
func (f *requestFlag) Type() string { return requestWords[f.word][0] }

// andFlag begins another unit.
type andFlag struct{ q *RequestFlags }

// Set begins the unit.
func (f *andFlag) Set(s string) error {
	if yes, err := strconv.ParseBool(s); err != nil || !yes {
		return fmt.Errorf("it takes no value")
	}
	if !f.q.Given {
		f.q.note("and", fmt.Errorf("comes between two units: describe the first one before it"))
		return nil
	}
	f.q.Words = append(f.q.Words, "and")
	f.q.note("and", f.q.Builder.And())
	return nil
}

func (f *andFlag) String() string { return "" }

// Type is bool: help shows no placeholder.
func (f *andFlag) Type() string { return "bool" }

// ParseOptimize reads --optimize; empty means no preference.
func ParseOptimize(s string) (protocol.Objective, error) {
	if s == "" {
		return 0, nil
	}
	o, err := protocol.ParseObjective(s)
	if err != nil {
		return 0, exit.Fail(exit.Usage, "", "--optimize: %w", err)
	}
	return o, nil
}

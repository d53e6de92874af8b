package cli

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/exit"
	"ramp/agents/order"
	"ramp/protocol"
	"ramp/rfql"
	"ramp/rfql/compose"
)

// RequestHelp explains the flags that describe a request.
const RequestHelp = `Flags can describe the request instead of FILE; --cores (or --nodes), --wall and --within (or
--by) are required. --and starts another unit, a copy of the one before it except for the flags
that follow; the value 'any' drops a copied requirement. Either all units are bought or none.
'ramp rfql new' prints the document that the flags produce.

Without --max-price bidding opens at the highest list price (as in 'ramp user resources').`

const RequestExample = "  ramp user %[1]s --cores 256 --wall 2h --within 12h\n" +
	"  ramp user %[1]s --cores 256 --wall 2h --within 12h --max-price 40 --and --cores 16 --ram 4G"

// RequestFlags collect a request from flags, in the order in which they are given, and from a job
// file.
type RequestFlags struct {
	compose.Request
	now time.Time
}

// requestWords are the flags, with their kind of value and their help.
var requestWords = map[compose.Word][2]string{
	compose.Cores:       {"N", "cores, anywhere on one machine"},
	compose.Nodes:       {"NxC", "whole nodes and the cores of each, such as 4x16 (instead of --cores)"},
	compose.Wall:        {"D", "how long it runs: 2h, 1d12h, 10 (minutes), 1:30:00 or 1-12 (days-hours); rounded up to minutes"},
	compose.Within:      {"D", "finish within this time, counted from now"},
	compose.By:          {"TIME", "finish by this time: 2026-11-22T18:00 (with a zone or local) or 18:00 (the next one)"},
	compose.NotBefore:   {"TIME", "start no sooner than this time: as for --by, or +3h from now"},
	compose.MaxPrice:    {"C", "pay at most this many credits per core-hour (default: the sites' highest list price)"},
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
	compose.SameStart:   {"bool", "begin all units at the same second, or buy none"},
}

// requestLetters are the short forms of flags, as sbatch has them.
var requestLetters = map[compose.Word]string{compose.Cores: "n", compose.Wall: "t"}

func (q *RequestFlags) Register(c *cobra.Command) {
	q.now = time.Now()
	for _, w := range compose.Words() {
		c.Flags().VarP(&requestFlag{q, w}, string(w), requestLetters[w], requestWords[w][1])
	}
	c.Flags().Lookup(string(compose.SameStart)).NoOptDefVal = "true"
	and := c.Flags().VarPF(&andFlag{q}, "and", "", "start another unit, a copy of the one before except for what follows")
	and.NoOptDefVal = "true"
	c.Flags().SortFlags = false
}

// Document is what the flags ask for.
func (q *RequestFlags) Document(o protocol.Objective) (rfql.Document, error) {
	if _, err := q.Builder(q.now); err != nil {
		return rfql.Document{}, wrong(err)
	}
	doc, err := q.Request.Document(q.now, time.Now().Add(order.BuyingTime), o)
	if err != nil {
		return doc, exit.Fail(exit.Usage, "such as --cores 256 --wall 2h --within 12h", "%w", err)
	}
	return doc, nil
}

// wrong is an error in a flag, or in a job file.
func wrong(err error) error {
	if errors.As(err, new(compose.Faults)) {
		return order.BadFile(err)
	}
	return exit.WithCode(exit.Usage, err)
}

// Now counts relative times from now.
func (q *RequestFlags) Now() { q.now = time.Now() }

// Moving reports whether the request has a time that was counted from now.
func (q *RequestFlags) Moving() bool {
	b, err := q.Builder(q.now)
	return err == nil && b.Moving()
}

// Index is how long an index of an array may take, and on how many cores.
func (q *RequestFlags) Index() (wall time.Duration, cores int, err error) {
	if wall, err = q.Wall(q.now); err != nil {
		err = wrong(err)
	}
	return wall, q.Cores(q.now), err
}

// FileOr accepts a FILE, or flags instead.
func (q *RequestFlags) FileOr(c *cobra.Command, args []string) error {
	if err := EmptyFlags(c); err != nil {
		return err
	}
	switch {
	case len(args) > 1:
		return fmt.Errorf("give one FILE, not %d", len(args))
	case len(args) == 1 && q.Given():
		return fmt.Errorf("give a FILE or the flags of a request, not both")
	case len(args) == 0 && !q.Given():
		return exit.Fail(exit.Usage, "such as --cores 256 --wall 2h --within 12h; or see '"+c.CommandPath()+" --help'",
			"no request: give a FILE, or flags")
	}
	return nil
}

// EmptyFlags rejects limits and names that are empty or zero, as an unset variable in a script makes
// them: without --max-cost, any amount might be spent, and without --array {} would be an argument.
func EmptyFlags(c *cobra.Command) error {
	for _, name := range []string{"max-cost", "max-wait", "accept-counter", "id", "optimize", "mode", "rounds", "array", "app", "out", "deadline", "budget", "strategy"} {
		f := c.Flags().Lookup(name)
		switch {
		case f == nil || !f.Changed:
		case f.Value.String() == "":
			return exit.Fail(exit.Usage, "leave it out if you need none; is a variable unset?", "--%s %q: want a value", name, f.Value)
		case f.Value.String() == "0s", name == "rounds" && f.Value.String() == "0":
			return exit.Fail(exit.Usage, "leave it out if you need none", "--%s %s: want more than %[2]s", name, f.Value)
		}
	}
	return nil
}

// requestFlag is one flag that describes the last unit.
type requestFlag struct {
	q    *RequestFlags
	word compose.Word
}

// Set adds the value to the request, which is checked as a whole: the flag library would print
// the value twice.
func (f *requestFlag) Set(s string) error {
	f.q.Flags = append(f.q.Flags, compose.Said{Word: f.word, Value: s, Where: "--" + string(f.word)})
	return nil
}

func (f *requestFlag) String() string { return "" }

// Type is the placeholder for its value in the help.
func (f *requestFlag) Type() string { return requestWords[f.word][0] }

type andFlag struct{ q *RequestFlags }

func (f *andFlag) Set(s string) error {
	if yes, err := strconv.ParseBool(s); err != nil || !yes {
		return fmt.Errorf("it takes no value")
	}
	f.q.Flags = append(f.q.Flags, compose.Said{Word: compose.And, Where: "--and"})
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

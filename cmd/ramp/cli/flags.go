package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ramp/agents/exit"
	"ramp/agents/join"
	"ramp/protocol"
	"ramp/rfql/compose"
)

// durationValue is a duration flag. It accepts Go's notation (90s, 1h30m, 0) and that of requests
// (7d, 1d12h, 02:30:00).
type durationValue time.Duration

// DurationVar defines a duration flag.
func DurationVar(f *pflag.FlagSet, d *time.Duration, name string, usual time.Duration, usage string) {
	*d = usual
	f.Var((*durationValue)(d), name, usage)
}

func (v *durationValue) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil {
		d, err = compose.Duration(s)
	}
	if long, ok := wholeDays(s); err != nil && ok {
		d, err = long, nil
	}
	if err == nil {
		*v = durationValue(d)
	}
	return err
}

// wholeDays reads a duration such as 7300d: an authority may last longer than the ten years
// that a request may.
func wholeDays(s string) (time.Duration, bool) {
	number, ok := strings.CutSuffix(s, "d")
	n, err := strconv.ParseUint(number, 10, 32)
	return time.Duration(n) * 24 * time.Hour, ok && err == nil && n <= mostDays
}

const mostDays = 36525 // a century

// String is the value in Go's notation.
func (v *durationValue) String() string { return time.Duration(*v).String() }

// Type is that of pflag's durations, so that GetDuration reads this flag too.
func (*durationValue) Type() string { return "duration" }

func RegisterJoining(c *cobra.Command, j *join.Joining) {
	c.Flags().StringVar(&j.File, "join", "", "join the market of the invitation in `FILE` ('-': standard input)")
	c.Flags().StringVar(&j.Name, "name", "", "the agent's `NAME` in the market (default: your user name)")
	c.Flags().StringVar(&j.Cert, "cert", "", "use the certificate in `FILE` (PEM); needs --key")
	c.Flags().StringVar(&j.Key, "key", "", "its private key in `FILE` (PEM)")
}

// unitValue is a flag with the number of a unit, counted from 1; zero means that it is not set.
// It rejects 0: JSON counts from 0, so whoever copies a 0 from there means the first unit.
type unitValue int

func UnitVar(f *pflag.FlagSet, n *int, usage string) { f.Var((*unitValue)(n), "unit", usage) }

func (v *unitValue) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return fmt.Errorf("want a unit, from 1")
	}
	*v = unitValue(n)
	return nil
}

// String is empty if the flag is not set, so that help shows no default.
func (v *unitValue) String() string {
	if *v == 0 {
		return ""
	}
	return strconv.Itoa(int(*v))
}

// Type is the placeholder in help.
func (*unitValue) Type() string { return "N" }

// OneOf fails if both flags were given.
func OneOf(c *cobra.Command, a, b string) error {
	if c.Flags().Changed(a) && c.Flags().Changed(b) {
		return exit.Fail(exit.Usage, "", "give --%s or --%s, not both", a, b)
	}
	return nil
}

// AmountOf reads a positive amount of money.
func AmountOf(name, s string) (protocol.Credits, error) {
	return amount(name, s, 1, "a positive number of credits")
}

// AmountOrZero reads an amount that may be zero.
func AmountOrZero(name, s string) (protocol.Credits, error) {
	return amount(name, s, 0, "zero or more credits")
}

func amount(name, s string, least protocol.Credits, allowed string) (protocol.Credits, error) {
	c, err := protocol.ParseCredits(s)
	if err != nil || c < least {
		return 0, exit.Fail(exit.Usage, "", "%s %q: want %s, at most %s, with at most six decimals", name, s, allowed, protocol.MaxCredits)
	}
	return c, nil
}

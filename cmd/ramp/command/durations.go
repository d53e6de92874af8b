package command

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"ramp/rfql/compose"
)

// durationValue is a flag of a length of time: as Go writes it (90s, 1h30m, 0), or as
// requests say it (7d, 1d12h, 02:30:00).
type durationValue time.Duration

// durationVar makes a flag of a length of time.
func durationVar(f *pflag.FlagSet, d *time.Duration, name string, usual time.Duration, usage string) {
	*d = usual
	f.Var((*durationValue)(d), name, usage)
}

// Set reads a value.
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

// wholeDays reads 7300d: a request lasts ten years at most, an authority may outlive it.
func wholeDays(s string) (time.Duration, bool) {
	number, ok := strings.CutSuffix(s, "d")
	n, err := strconv.ParseUint(number, 10, 32)
	return time.Duration(n) * 24 * time.Hour, ok && err == nil && n <= mostDays
}

// mostDays bounds a length of time in days: a century.
const mostDays = 36525

// String is the value as Go writes it.
func (v *durationValue) String() string { return time.Duration(*v).String() }

// Type is that of the flags of Go's lengths of time, which look this one up too.
func (*durationValue) Type() string { return "duration" }

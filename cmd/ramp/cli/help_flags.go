package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// shownValue is a flag's value as help shows it: with a placeholder such as N instead of
// the name of a Go type. A usage text with a word in `backquotes` names its own.
type shownValue struct {
	pflag.Value
	word string
}

func (v shownValue) Type() string { return v.word }

// flagUsages lists flags, each with a placeholder for its value.
func flagUsages(flags *pflag.FlagSet) string {
	shown := pflag.NewFlagSet("", pflag.ContinueOnError)
	shown.SortFlags = flags.SortFlags
	flags.VisitAll(func(f *pflag.Flag) { shown.AddFlag(shownFlag(f)) })
	return strings.TrimRight(shown.FlagUsages(), " \n")
}

// ForReaders shows every flag of c as help does, with one more change, to generate a
// document. The command no longer runs after that.
func ForReaders(c *cobra.Command, change func(f *pflag.Flag)) {
	for _, flags := range []*pflag.FlagSet{c.Flags(), c.PersistentFlags()} {
		flags.VisitAll(func(f *pflag.Flag) {
			*f = *shownFlag(f)
			change(f)
		})
	}
}

// shownFlag is a copy of a flag for people to read.
func shownFlag(f *pflag.Flag) *pflag.Flag {
	g, word := *f, f.Value.Type()
	switch word {
	case "bool":
		return &g
	case "duration":
		g.DefValue, g.NoOptDefVal, word = shortDuration(f.DefValue), shortDuration(f.NoOptDefVal), "D"
	case "int", "int64", "uint", "uint64":
		word = "N"
	case "float64":
		word = "F"
	case "string":
		word = "TEXT"
	case "stringArray", "stringSlice", "stringToInt", "int64Slice":
		g.DefValue, word = strings.Trim(f.DefValue, "[]"), "LIST"
	}
	g.Value = shownValue{f.Value, word}
	return &g
}

// shortDuration writes a duration in days where it is a whole number of them, and without
// trailing zeros: 24h0m0s becomes 24h.
func shortDuration(d string) string {
	n, err := time.ParseDuration(d)
	switch {
	case err != nil || n == 0:
		return ""
	case n > 24*time.Hour && n%(24*time.Hour) == 0:
		return fmt.Sprintf("%dd", n/(24*time.Hour))
	}
	return trailingZeros.ReplaceAllString(d, "$1$2$3")
}

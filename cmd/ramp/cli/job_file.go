package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ramp/agents/order"
	"ramp/rfql/compose"
	"ramp/rfql/jobfile"
)

// JobFile takes a job file, or a script with directives. It sets the flags that the command has
// and the command line does not set; variables are added to those of the command line. known are
// the flags that directives may have.
func (q *RequestFlags) JobFile(c *cobra.Command, known *pflag.FlagSet, path string, text []byte) (order.File, error) {
	file, err := order.ReadFile(path, text, directives(known))
	if err != nil {
		return file, err
	}
	q.File = file.Words
	given := map[string]bool{}
	c.Flags().Visit(func(f *pflag.Flag) { given[f.Name] = true })
	var faults compose.Faults
	var env []string
	for _, s := range file.Flags {
		switch f := c.Flags().Lookup(s.Flag); {
		case s.Flag == "env":
			env = append(env, s.Value)
		case f != nil && !given[s.Flag]:
			if err := c.Flags().Set(s.Flag, s.Value); err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", jobfile.Where(path, s.Line), err))
			}
		}
	}
	if f := c.Flags().Lookup("env"); f != nil && len(env) > 0 {
		list := f.Value.(pflag.SliceValue)
		if err := list.Replace(append(env, list.GetSlice()...)); err != nil {
			return file, err
		}
	}
	if len(faults) > 0 {
		return file, order.BadFile(faults)
	}
	return file, EmptyFlags(c)
}

// directives reads flags without setting them.
func directives(known *pflag.FlagSet) order.Parse {
	known.Usage = func() {}
	known.SetOutput(io.Discard)
	return func(words []string, set func(flag, value string)) error {
		err := known.ParseAll(words, func(f *pflag.Flag, value string) error {
			set(f.Name, value)
			return nil
		})
		if err == nil && known.NArg() > 0 {
			err = fmt.Errorf("%q: want flags only", known.Arg(0))
		}
		return err
	}
}

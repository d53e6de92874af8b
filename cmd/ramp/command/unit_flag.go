package command

import (
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
)

// unitValue is a flag that names a unit, from 1. Zero is that none was named, and is no
// name: JSON counts from 0, and who copies a number from there means one unit.
type unitValue int

func unitVar(f *pflag.FlagSet, n *int, usage string) { f.Var((*unitValue)(n), "unit", usage) }

// Set reads a value.
func (v *unitValue) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return fmt.Errorf("want a unit, from 1")
	}
	*v = unitValue(n)
	return nil
}

// String is empty for none, which help then does not show as the usual value.
func (v *unitValue) String() string {
	if *v == 0 {
		return ""
	}
	return strconv.Itoa(int(*v))
}

// Type is what help calls the value.
func (*unitValue) Type() string { return "N" }

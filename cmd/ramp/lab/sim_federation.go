package lab

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ramp/agents/exit"
	"ramp/agents/sim"
	"ramp/agents/sim/federation"
	"ramp/cmd/ramp/cli"
)

// exploreFederations simulates federations of sites until an invariant breaks.
func exploreFederations(c *cobra.Command, from, to uint64, jobs int, level string) error {
	faults, ok := sim.Levels()[level]
	if !ok {
		return exit.Fail(exit.Usage, "", "--faults %q: want none, light or heavy", level)
	}
	show := newSimProgress(c.ErrOrStderr())
	sum, err := federation.Explore(c.Context(), from, to, jobs, faults, func(s federation.Sum) {
		show.say(func() string {
			return fmt.Sprintf("%s %d seeds, %d jobs begun, %d suspended, %d crashes", bar(float64(s.Seeds)/(float64(to-from)+1)), s.Seeds, s.Begun, s.Suspended, s.Crashes)
		})
	})
	show.End()
	if err != nil {
		return err
	}
	err = cli.Show(c, sum, func(w io.Writer) {
		fmt.Fprintf(w, "%d seeds, %d jobs begun, %d suspended, %d crashes\n", sum.Seeds, sum.Begun, sum.Suspended, sum.Crashes)
		for _, v := range sum.Violations {
			fmt.Fprintf(w, "seed %d: %s\n", sum.Failed, v)
		}
	})
	if err == nil && (len(sum.Violations) > 0 || c.Context().Err() != nil) {
		return exit.Silent(exit.Failed)
	}
	return err
}

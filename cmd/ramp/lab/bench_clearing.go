package lab

import (
	"fmt"

	"github.com/spf13/cobra"

	"ramp/agents/bench"
	"ramp/agents/exit"
	"ramp/cmd/ramp/cli"
)

func newBenchClearing() *cobra.Command {
	var b bench.ClearingBench
	c := &cobra.Command{
		Use: "clearing DIR", Short: "Measure winner determination on CATS instances", Args: cobra.ExactArgs(1),
		Long: `Solve every instance of the Combinatorial Auction Test Suite in DIR as a purchase of its goods:
a bid of price p for n goods costs K·n - p, a good alone K, and bids with the same dummy good
exclude each other. cbc solves the same where it is installed.`,
		Example: "  ramp bench clearing cats --json",
		RunE: func(c *cobra.Command, args []string) error {
			if b.Limit < 0 || b.Seconds < 0 {
				return exit.Fail(exit.Usage, "", "--limit %d, --cbc-seconds %d: want 0 or more", b.Limit, b.Seconds)
			}
			b.Dir = args[0]
			rows, all := [][]string{bench.ClearingRow(nil)}, []bench.ClearingFigures{}
			err := b.Run(c.Context(), func(f bench.ClearingFigures) {
				fmt.Fprintf(cli.Stderr(c), "%s: proved %t in %.1f ms\n", f.File, f.Proved, f.CPU)
				rows, all = append(rows, bench.ClearingRow(&f)), append(all, f)
			})
			if err != nil {
				return err
			}
			return cli.ShowTable(c, all, rows)
		},
	}
	c.Flags().IntVar(&b.Limit, "limit", 0, "steps of search for an instance (default: as in auctions)")
	c.Flags().IntVar(&b.Seconds, "cbc-seconds", 60, "time limit of cbc for one instance; 0: do not run cbc")
	return c
}

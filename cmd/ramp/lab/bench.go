package lab

import (
	"github.com/spf13/cobra"

	"ramp/agents/bench"
	"ramp/cmd/ramp/cli"
)

func NewBench() *cobra.Command {
	c := &cobra.Command{
		Use: "bench", Short: "Measure auctions, clearing, settlement, the mesh, files, sweeps, federations, pages and abuse", GroupID: "measure",
		Long: `Measure on this machine, with the same program that serves, and next to a baseline from the same
run. docs/PERFORMANCE.md describes what is measured and how.`,
	}
	c.AddCommand(newBenchAbuse(), newBenchAll(), newBenchAuction(), newBenchBank(), newBenchClearing(), newBenchEnglish(), newBenchLedger(), newBenchMesh(), newBenchStage(), newBenchSweep(), newBenchWeb(), newBenchBuyer(), newBenchCrowd())
	return c
}

func newBenchAll() *cobra.Command {
	var a bench.AllBench
	c := &cobra.Command{
		Use: "all", Short: "Run the benchmarks and compare their ratios with earlier ones", Args: cobra.NoArgs,
		Long: `Run the benchmarks one after the other. Each figure is divided by its baseline of the same run,
so that more is better and machines can be compared. The table also shows the ratios of an
earlier run's --json output. A ratio that has fallen is reported only: the command succeeds.`,
		Example: "  ramp bench all --short --baseline testdata/bench/baseline.json",
		RunE: func(c *cobra.Command, _ []string) error {
			a.Log = cli.Notes(c)
			list, err := a.Run(c.Context())
			if err != nil {
				return err
			}
			return cli.ShowTable(c, list, bench.RatioRows(list))
		},
	}
	c.Flags().BoolVar(&a.Short, "short", false, "measure for about a minute in total")
	c.Flags().StringVar(&a.Only, "only", "", "run these benchmarks, a comma-separated `LIST`")
	c.Flags().StringVar(&a.Baseline, "baseline", "", "compare with the ratios in `FILE`")
	return c
}

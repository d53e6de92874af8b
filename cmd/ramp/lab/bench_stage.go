package lab

import (
	"fmt"

	"github.com/spf13/cobra"

	"ramp/agents/bench"
	"ramp/agents/exit"
	"ramp/cmd/ramp/cli"
)

func newBenchStage() *cobra.Command {
	var size, runs int
	var dir string
	c := &cobra.Command{
		Use: "stage", Short: "Measure file transfer to and from a site", Args: cobra.NoArgs,
		Long: `Send a file from one agent to another and fetch it back, as the inputs and outputs of jobs
travel: both sides with their certificates, hashed, and flushed to disk. 'bare' is as many bytes
over a stream of the same connection, from memory to nowhere. Prints medians of runs that take
turns.`,
		Example: "  ramp bench stage --size 256 --runs 5",
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case size < 1 || size > bench.MaxStageSize:
				return exit.Fail(exit.Usage, "", "--size %d: want 1..%d MiB", size, bench.MaxStageSize)
			case runs < 1 || runs > bench.MaxStageRuns:
				return exit.Fail(exit.Usage, "", "--runs %d: want 1..%d", runs, bench.MaxStageRuns)
			}
			f, err := bench.MeasureStage(c.Context(), int64(size)<<20, runs, dir)
			if err != nil {
				return err
			}
			return printStage(c, f)
		},
	}
	c.Flags().IntVar(&size, "size", 256, "size of the file in MiB, 1..16384")
	c.Flags().IntVar(&runs, "runs", 5, "runs of each kind, 1..1000")
	c.Flags().StringVar(&dir, "dir", "", "keep the files below `DIR` while it runs (default: a temporary one)")
	return c
}

func printStage(c *cobra.Command, f bench.StageFigures) error {
	rate := func(r float64) string { return fmt.Sprintf("%.0f", r) }
	return cli.ShowTable(c, f, [][]string{
		{"MiB", "runs", "put MB/s", "get MB/s", "bare MB/s", "put / bare", "get / bare"},
		{fmt.Sprint(f.Bytes >> 20), fmt.Sprint(f.Runs), rate(f.Put), rate(f.Get), rate(f.Bare), fmt.Sprintf("%.2f", f.PutShare), fmt.Sprintf("%.2f", f.GetShare)},
	})
}

package lab

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"ramp/agents/bench"
	"ramp/agents/exit"
	"ramp/cmd/ramp/cli"
)

func newBenchEnglish() *cobra.Command {
	var cfg bench.EnglishConfig
	var dir string
	c := &cobra.Command{
		Use: "english", Short: "Measure auctions of jobs among the sites of a federation", Args: cobra.NoArgs,
		Long: `Start the sites of a federation and a user in this process, on streams and journals of their
own, and auction jobs whose programs take no time. An auction of a job lasts 200 ms at least,
so its rate depends on how many there are at once. 'bare' sends frames of the same number and
size around among the same hosts, without encoding, logic or disk.`,
		Example: "  ramp bench english --jobs 1000 --at-once 16",
		RunE: func(c *cobra.Command, _ []string) (err error) {
			switch {
			case cfg.Jobs < 1 || cfg.Jobs > bench.MaxEnglishJobs:
				return exit.Fail(exit.Usage, "", "--jobs %d: want 1..%d", cfg.Jobs, bench.MaxEnglishJobs)
			case cfg.Sites < 2 || cfg.Sites > bench.MaxEnglishSites:
				return exit.Fail(exit.Usage, "", "--sites %d: want 2..%d", cfg.Sites, bench.MaxEnglishSites)
			case cfg.AtOnce < 1:
				return exit.Fail(exit.Usage, "", "--at-once %d: want 1 or more", cfg.AtOnce)
			}
			if dir == "" {
				if dir, err = os.MkdirTemp("", "ramp-bench-"); err != nil {
					return err
				}
				defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
			}
			f, err := bench.MeasureEnglish(c.Context(), cfg, dir, func(s string) { fmt.Fprintln(cli.Notes(c), s) })
			if err != nil {
				return err
			}
			return cli.ShowTable(c, f, [][]string{
				{"jobs", "sites", "at once", "elapsed s", "per s", "CPU ms", "messages", "bytes", "bare per s", "bare CPU ms"},
				{
					fmt.Sprint(f.Jobs), fmt.Sprint(f.Sites), fmt.Sprint(f.AtOnce), fmt.Sprintf("%.1f", f.Elapsed), fmt.Sprintf("%.0f", f.PerSecond), bench.Millis(f.CPU),
					fmt.Sprintf("%.0f", f.Messages), fmt.Sprintf("%.0f", f.Bytes), fmt.Sprintf("%.0f", f.BarePerSecond), bench.Millis(f.BareCPU),
				},
			})
		},
	}
	c.Flags().IntVar(&cfg.Jobs, "jobs", 1000, "jobs, 1..4096")
	c.Flags().IntVar(&cfg.Sites, "sites", 4, "sites, 2..32")
	c.Flags().IntVar(&cfg.AtOnce, "at-once", 16, "jobs that are offered and not over")
	c.Flags().StringVar(&dir, "dir", "", "keep the journals in `DIR` (default: a temporary one)")
	return c
}

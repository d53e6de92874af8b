package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/bench"
	"ramp/agents/control"
	"ramp/agents/demo"
	"ramp/agents/exit"
	"ramp/cmd/ramp/cli"
)

func newBenchSweep() *cobra.Command {
	var tasks, cores int
	var length time.Duration
	var dir string
	c := &cobra.Command{
		Use: "sweep", Short: "Measure the overhead between the tasks of a sweep", Args: cobra.NoArgs,
		Long: `Start a bank, a site that runs programs on this machine and a user, each in its own process,
and run a sweep of tasks that sleep. The overhead of a task is the time until the next one
begins in its lease, less its sleep. 'bare' is the same for the same programs run one after
the other, without RAMP.`,
		Example: "  ramp bench sweep --tasks 40 --length 1s",
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case tasks < 2 || tasks > bench.MaxSweepTasks:
				return exit.Fail(exit.Usage, "", "--tasks %d: want 2..%d", tasks, bench.MaxSweepTasks)
			case length <= 0 || length >= bench.MaxSweepLength:
				return exit.Fail(exit.Usage, "", "--length %s: want more than 0s, less than %s", length, bench.MaxSweepLength)
			case cores < 1 || cores > 1024:
				return exit.Fail(exit.Usage, "", "--cores %d: want 1..1024", cores)
			}
			d := &demo.Market{Dir: dir, Out: demo.Silent{}, Cores: cores}
			f, err := benchSweep(c.Context(), d, tasks, length)
			if err != nil {
				return err
			}
			return cli.ShowTable(c, f, [][]string{
				{"tasks", "cores", "task ms", "leases", "elapsed s", "overhead ms", "p95 ms", "bare ms", "bare p95 ms"},
				{
					fmt.Sprint(f.Tasks), fmt.Sprint(f.Cores), bench.Millis(f.Length), fmt.Sprint(f.Leases), fmt.Sprintf("%.1f", f.Elapsed),
					bench.Millis(f.Overhead), bench.Millis(f.OverheadP95), bench.Millis(f.BareOverhead), bench.Millis(f.BareP95),
				},
			})
		},
	}
	c.Flags().IntVar(&tasks, "tasks", 40, "tasks, 2..1000")
	c.Flags().IntVar(&cores, "cores", 2, "cores of the site, 1..1024")
	cli.DurationVar(c.Flags(), &length, "length", time.Second, "each task sleeps for `D`")
	c.Flags().StringVar(&dir, "dir", "", "keep all state in `DIR` (default: a temporary one)")
	return c
}

func benchSweep(ctx context.Context, d *demo.Market, tasks int, length time.Duration) (f bench.SweepFigures, err error) {
	made, err := d.Open(ctx)
	defer func() { err = d.Close(ctx, made, err) }()
	if err != nil {
		return f, err
	}
	agent, ok := control.Dial(d.User.Dir)
	if !ok {
		return f, exit.Fail(exit.Failed, "", "the user agent does not answer")
	}
	f, err = bench.MeasureSweep(ctx, agent, d.Dir, tasks, length)
	f.Cores = d.Cores
	return f, err
}

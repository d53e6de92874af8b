package lab

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/bench"
	"ramp/agents/exit"
	"ramp/agents/workload/published"
	"ramp/cmd/ramp/cli"
)

func newBenchMesh() *cobra.Command {
	var cfg bench.MeshConfig
	var users, sellers int
	c := &cobra.Command{
		Use: "mesh", Short: "Measure what it costs agents to know each other", Args: cobra.NoArgs,
		Long: `Start real hosts in this process that join a market and announce themselves as sellers do, and
count bytes and processor time of one host and second, and how soon the others hear of it.
With --users, start a bank, sellers and that many user agents instead, let each user buy once,
8 at a time, and count the purchases that settle and the connections of the bank.`,
		Example: "  ramp bench mesh --hosts 60 --json\n  ramp bench mesh --users 500 --sellers 20 --json",
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case c.Flags().Changed("users") && (users < 1 || users > bench.MaxCrowd):
				return exit.Fail(exit.Usage, "", "--users %d: want 1..%d", users, bench.MaxCrowd)
			case c.Flags().Changed("sellers") && users == 0:
				return exit.Fail(exit.Usage, "", "--sellers needs --users")
			case sellers < 1 || sellers > len(published.Resources()):
				return exit.Fail(exit.Usage, "", "--sellers %d: want 1..%d", sellers, len(published.Resources()))
			case users > 0:
				return benchCrowd(c, users, sellers)
			case cfg.Hosts < 2 || cfg.Hosts > bench.MaxMeshHosts:
				return exit.Fail(exit.Usage, "", "--hosts %d: want 2..%d", cfg.Hosts, bench.MaxMeshHosts)
			case cfg.Time < time.Second || cfg.Time > bench.MaxMeshTime:
				return exit.Fail(exit.Usage, "", "--time %s: want 1s..%s", cfg.Time, bench.MaxMeshTime)
			}
			f, err := bench.MeasureMesh(c.Context(), cfg, func(s string) { fmt.Fprintln(cli.Stderr(c), s) })
			if err != nil {
				return err
			}
			kb := func(r bench.MeshRate) string { return fmt.Sprintf("%.1f / %.1f", r.In/1000, r.Out/1000) }
			return cli.ShowTable(c, f, [][]string{
				{"hosts", "connections", "presence kB/s in / out", "other kB/s", "CPU %", "MB", "reached", "median ms", "p99 ms"},
				{
					fmt.Sprint(f.Hosts), fmt.Sprintf("%.0f", f.Connections), kb(f.Kinds["presence"]), kb(f.Kinds["other"]), fmt.Sprintf("%.2f", f.CPU),
					fmt.Sprintf("%.1f", f.Memory), fmt.Sprintf("%.3f", f.Reached), bench.Millis(f.Median), bench.Millis(f.P99),
				},
			})
		},
	}
	c.Flags().IntVar(&cfg.Hosts, "hosts", 20, "hosts, 2..1000")
	c.Flags().IntVar(&users, "users", 0, "user agents, 1..10000, instead of hosts")
	c.Flags().IntVar(&sellers, "sellers", 20, "sellers for the users, 1..20")
	cli.DurationVar(c.Flags(), &cfg.Time, "time", time.Minute, "measure for `D`")
	c.Flags().BoolVar(&cfg.TCP, "tcp", false, "connect by TCP instead of QUIC; 300 hosts need 80,000 file descriptors")
	return c
}

func benchCrowd(c *cobra.Command, users, sellers int) error {
	f, err := bench.MeasureCrowd(c.Context(), users, sellers, func(s string) { fmt.Fprintln(cli.Stderr(c), s) })
	if err != nil {
		return err
	}
	return cli.ShowTable(c, f, [][]string{
		{"users", "sellers", "joined s", "purchases", "settled", "share", "seconds", "connections of the bank", "kB each"},
		{
			fmt.Sprint(f.Users), fmt.Sprint(f.Sellers), fmt.Sprintf("%.0f", f.Joined), fmt.Sprint(f.Purchases), fmt.Sprint(f.Settled),
			fmt.Sprintf("%.4f", f.Share), fmt.Sprintf("%.1f", f.Seconds), fmt.Sprint(f.Most), fmt.Sprintf("%.0f", f.Memory),
		},
	})
}

// newBenchCrowd is a process of users that 'bench mesh --users' starts.
func newBenchCrowd() *cobra.Command {
	return &cobra.Command{
		Use: "crowd", Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return bench.Crowd(c.Context(), c.InOrStdin(), cli.Stdout(c), cli.Stderr(c))
		},
	}
}

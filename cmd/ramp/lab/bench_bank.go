package lab

import (
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/bench"
	"ramp/agents/exit"
	"ramp/bank/ledger"
	"ramp/cmd/ramp/cli"
)

func newBenchBank() *cobra.Command {
	var b bench.BankBench
	var clients, store string
	c := &cobra.Command{
		Use: "bank", Short: "Measure settlements per second of one bank", Args: cobra.NoArgs,
		Long: `Settle bundles in the bank's role with its ledger on this disk: durable outcomes per second,
with many accounts and entries in the ledger already. bbolt_batch writes the very same records,
bundle by bundle, into a copy of the same file with bbolt's own Batch; signed and
signed_25_units go from a bundle's bytes on the wire to a signed receipt; signature_only does
nothing but the same signatures on all cores. They take turns, a fifth of --time each, so that a
machine that slows down does so for all of them.

With --store the same bank also settles with its ledger in an etcd cluster (etcd), and balances
there are moved by one transaction per transfer (etcd_naive). What this writes to the cluster is
removed at the end; a run that is killed leaves keys below /ramp/bank/ and the bank's ID.`,
		Example: "  ramp bench bank --clients 1,64,256 --dir .\n  ramp bench bank --clients 16,64 --entries 100000 --store etcd:db1,db2,db3",
		RunE: func(c *cobra.Command, _ []string) error {
			b.Log = cli.Stderr(c)
			list, err := bench.ParseCounts("--clients", clients, 4096)
			if err != nil {
				return err
			}
			hosts, err := bench.ClusterHosts(store)
			if err != nil {
				return err
			}
			switch {
			case b.Accounts < 2 || b.Accounts >= ledger.MaxAccounts:
				return exit.Fail(exit.Usage, "", "--accounts %d: want 2..%d", b.Accounts, ledger.MaxAccounts-1)
			case b.Entries < 0:
				return exit.Fail(exit.Usage, "", "--entries %d: want zero or more", b.Entries)
			case b.Time <= 0:
				return exit.Fail(exit.Usage, "", "--time %s: want more than 0s", b.Time)
			}
			figures, err := b.Run(c.Context(), list, hosts)
			if err != nil {
				return err
			}
			return cli.ShowTable(c, figures, bench.BankRows(figures, len(hosts) > 0))
		},
	}
	f := c.Flags()
	f.StringVar(&clients, "clients", "1,64,256", "concurrent clients, a comma-separated `LIST`")
	f.IntVar(&b.Accounts, "accounts", 10_000, "accounts of the bank")
	f.IntVar(&b.Entries, "entries", 1_000_000, "entries in the ledger beforehand")
	cli.DurationVar(f, &b.Time, "time", 10*time.Second, "duration of each measurement, in five turns")
	f.StringVar(&b.Dir, "dir", ".", "`DIR` on the disk to measure; a memory file system is rejected")
	f.StringVar(&store, "store", "", "also measure a ledger in an etcd cluster, `STORE`: etcd:HOST,HOST; at most 16 hosts, each HOST, HOST:PORT or a URL")
	return c
}

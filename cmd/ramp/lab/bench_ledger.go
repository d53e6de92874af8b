package lab

import (
	"fmt"

	"github.com/spf13/cobra"

	"ramp/agents/bench"
	"ramp/agents/exit"
	"ramp/bank/ledger"
	"ramp/cmd/ramp/cli"
)

func newBenchLedger() *cobra.Command {
	var b bench.LedgerBench
	c := &cobra.Command{
		Use: "ledger", Short: "Measure start, balance, statement and audit of a large bank", Args: cobra.NoArgs,
		Long: `With --make, create the ledger of a large bank in --dir. Without it, measure that ledger: how
long the bank takes to start, its memory, a balance, statements, and an audit of all tables,
sums and hashes. Every tenth bundle belongs to one seller.`,
		Example: "  ramp bench ledger --make --dir big\n  ramp bench ledger --dir big",
		RunE: func(c *cobra.Command, _ []string) error {
			b.Log = cli.Stderr(c)
			if b.Accounts < 2 || b.Accounts >= ledger.MaxAccounts {
				return exit.Fail(exit.Usage, "", "--accounts %d: want 2..%d", b.Accounts, ledger.MaxAccounts-1)
			}
			if b.Entries < 2*b.Accounts {
				return exit.Fail(exit.Usage, "", "--entries %d: want at least %d, two for each account", b.Entries, 2*b.Accounts)
			}
			if b.Make {
				return b.Create(c.Context())
			}
			f, err := b.Measure()
			if err != nil {
				return err
			}
			return printLedger(c, f)
		},
	}
	f := c.Flags()
	f.BoolVar(&b.Make, "make", false, "create the ledger instead of measuring it")
	f.IntVar(&b.Accounts, "accounts", 1_000_000, "accounts of the bank to create")
	f.IntVar(&b.Entries, "entries", 10_000_000, "entries of the bank to create, at least two per account")
	f.StringVar(&b.Dir, "dir", "", "`DIR` of the ledger")
	_ = c.MarkFlagRequired("dir") // the flag is there: it was made above
	return c
}

func printLedger(c *cobra.Command, f *bench.LedgerFigures) error {
	return cli.ShowTable(c, f, [][]string{
		{"accounts", "entries", "file MB", "start s", "resident MB", "balance ms", "statement ms", "busiest ms", "sold ms", "audit per s", "audit peak MB"},
		{
			fmt.Sprint(f.Accounts), fmt.Sprint(f.Entries), fmt.Sprintf("%.0f", f.FileMB), fmt.Sprintf("%.1f", f.StartSeconds),
			fmt.Sprintf("%.0f", f.ResidentMB), fmt.Sprintf("%.3f", f.Balance), bench.Millis(f.Statement), bench.Millis(f.Busiest), bench.Millis(f.Sold),
			fmt.Sprintf("%.0f", f.AuditPerSec), fmt.Sprintf("%.0f", f.AuditPeakMB),
		},
	})
}

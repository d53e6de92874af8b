package bank

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/node"
	"ramp/bank/boltfile"
	"ramp/bank/ledgerdb"
	"ramp/cmd/ramp/cli"
)

func newBankBackup() *cobra.Command {
	return &cobra.Command{
		Use: "backup FILE", Short: "Copy the ledger to a file while the bank runs", Args: cobra.ExactArgs(1), GroupID: "recovery",
		Long: `Copy the ledger, as of one moment, to FILE, which must not exist, while settlements continue.
The copy contains neither the bank's key nor its certificate: keep those elsewhere, once.
'ramp bank restore FILE --verify' tests whether the copy can be restored.`,
		Example: "  ramp bank backup ledger-1121.backup",
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] == "" { // Abs would take the directory
				return exit.Fail(exit.Usage, exit.PlaceHint(fs.ErrNotExist), `FILE "": want a path`)
			}
			file, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			var a control.BackupAnswer
			if err := askBank(c, control.Backup, control.BackupCall{File: file}, &a); err != nil {
				return err
			}
			return cli.ShowLine(c, a, "wrote %d entries to %s", a.Entries, a.File)
		},
	}
}

func newBankRecovery() *cobra.Command {
	c := &cobra.Command{Use: "recovery", Short: "End the recovery of a restored bank", GroupID: "recovery"}
	var ref string
	end := &cobra.Command{
		Use: "end", Short: "Let a restored bank decide again", Args: cobra.NoArgs,
		Long: `End the recovery that 'ramp bank restore' started: the bank settles, voids and releases again.
Do so once the receipts that the backup lacks have been returned; those that nobody has returned
by then are lost.`,
		Example: "  ramp bank recovery end --ref 'restored on Monday'",
		RunE: func(c *cobra.Command, _ []string) error {
			return operate(c, control.SetRecovery, control.RecoveryCall{Ref: ref}, "recovery has ended")
		},
	}
	flagRef(end, &ref)
	c.AddCommand(end)
	return c
}

func newBankCompact() *cobra.Command {
	return &cobra.Command{
		Use: "compact", Short: "Shrink the ledger's file; the bank must not run", Args: cobra.NoArgs, GroupID: "recovery",
		Long: `Rewrite the ledger's file without the space of deleted pages. The copy is written beside the old
file and replaces it at the end. The bank must not run.`,
		Example: "  ramp bank compact",
		RunE: func(c *cobra.Command, _ []string) error {
			path, err := ledgerOf(c)
			if err != nil {
				return err
			}
			if !config.IsThere(path) {
				return exit.Fail(exit.Usage, "", "no ledger at %s", path)
			}
			var a control.CompactAnswer
			a.Before, a.After, err = ledgerdb.Compact(path)
			var inUse *boltfile.InUseError
			if errors.As(err, &inUse) {
				return exit.Fail(exit.Failed, "stop the bank, compact its file, and start it again", "%w", err)
			}
			if err != nil {
				return node.JournalError(err)
			}
			return cli.ShowLine(c, a, "compacted %s from %d to %d KiB", path, a.Before>>10, a.After>>10)
		},
	}
}

// ledgerOf is the path of the ledger of the command's bank.
func ledgerOf(c *cobra.Command) (string, error) {
	dir, cfg, err := cli.ConfigOf(c, "bank")
	if err != nil {
		return "", err
	}
	if err := cfg.CheckBank(filepath.Join(dir, config.Name)); err != nil {
		return "", err
	}
	return cfg.LedgerFile()
}

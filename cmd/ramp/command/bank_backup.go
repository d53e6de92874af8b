package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ramp/bank/boltfile"
	"ramp/bank/ledgerdb"
)

type (
	backupCall struct {
		File string `json:"file"` // an absolute path
	}
	backupAnswer struct {
		File    string `json:"file"`
		Entries uint64 `json:"entries"`
	}
	compactAnswer struct {
		Before int64 `json:"before"` // bytes
		After  int64 `json:"after"`
	}
)

func newBankBackup() *cobra.Command {
	return &cobra.Command{
		Use: "backup FILE", Short: "Copy the ledger as it is at one moment, while the bank goes on", Args: cobra.ExactArgs(1),
		Long: `Copies the ledger to FILE, which must not be there, while settlements go on. The bank's
key and certificate are not in it: keep them elsewhere, once. 'ramp bank restore FILE
--verify' tries whether it could be restored.`,
		RunE: func(c *cobra.Command, args []string) error {
			file, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			var a backupAnswer
			if err := askBank(c, "/v1/backup", backupCall{file}, &a); err != nil {
				return err
			}
			return said(c, a, "%d entries are in %s", a.Entries, a.File)
		},
	}
}

func (b *bankNode) backup(_ context.Context, q backupCall) (backupAnswer, error) {
	if !filepath.IsAbs(q.File) {
		return backupAnswer{}, fail(exitUsage, "", "file %q: want an absolute path", q.File)
	}
	n, err := b.db.Backup(q.File)
	if errors.Is(err, fs.ErrExist) {
		return backupAnswer{}, fail(exitUsage, "a backup never overwrites anything: choose another name", "%w", err)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return backupAnswer{}, fail(exitUsage, "choose a directory that is there", "%w", err)
	}
	return backupAnswer{q.File, n}, err
}

func newBankRecovery() *cobra.Command {
	c := &cobra.Command{Use: "recovery", Short: "End the recovery of a restored bank"}
	var ref string
	end := &cobra.Command{
		Use: "end", Short: "Let a restored bank decide again", Args: cobra.NoArgs,
		Long: `Ends the recovery that 'ramp bank restore' began: the bank settles, voids and frees
again. Do so when the receipts that the backup lacks were brought back; what nobody
brought back by then is lost.`,
		RunE: func(c *cobra.Command, _ []string) error {
			var e operatorEntry
			if err := askBank(c, "/v1/recovery", recoveryCall{Ref: ref}, &e); err != nil {
				return err
			}
			return said(c, e, "recovery is over (entry %d)", e.Entry)
		},
	}
	flagRef(end, &ref)
	c.AddCommand(end)
	return c
}

func newBankCompact() *cobra.Command {
	return &cobra.Command{
		Use: "compact", Short: "Rewrite the ledger's file without unused room; the bank must not run", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			path, err := ledgerOf(c)
			if err != nil {
				return err
			}
			if !isThere(path) {
				return fail(exitUsage, "", "no ledger at %s", path)
			}
			var a compactAnswer
			a.Before, a.After, err = ledgerdb.Compact(path)
			var inUse *boltfile.InUseError
			if errors.As(err, &inUse) {
				return fail(exitFailed, "stop the bank, compact its file, and start it again", "%w", err)
			}
			if err != nil {
				return journalError(err)
			}
			return said(c, a, "%s had %d KiB and has %d", path, a.Before>>10, a.After>>10)
		},
	}
}

// ledgerOf is where the ledger of the command's bank is.
func ledgerOf(c *cobra.Command) (string, error) {
	dir, err := dirOf(c, "bank")
	if err != nil {
		return "", err
	}
	cfg, err := readConfig(filepath.Join(dir, configName))
	if err != nil {
		return "", err
	}
	if err := cfg.checkBank(filepath.Join(dir, configName)); err != nil {
		return "", err
	}
	return cfg.ledgerFile()
}

// ledgerFile is where a bank's ledger is, if it is in a file.
func (c *config) ledgerFile() (string, error) {
	kind, where, _ := strings.Cut(c.Bank.Store, ":")
	switch {
	case c.Bank.Store == "":
		return filepath.Join(c.dir, ledgerName), nil
	case kind == "bbolt" && where != "":
		return c.path(where), nil
	}
	return "", fail(exitUsage, "docs/CLUSTER.md says how a ledger in a cluster is kept", "the ledger is in no file: bank.store is %q", c.Bank.Store)
}

// restoredHint says how to go on.
func restoredHint(dir string) string {
	return fmt.Sprintf("'ramp bank serve --dir %s' takes back receipts that the backup lacks; then 'ramp bank recovery end --dir %s'", shellWord(dir), shellWord(dir))
}

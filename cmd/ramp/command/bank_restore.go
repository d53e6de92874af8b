package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"ramp/bank/boltfile"
	"ramp/bank/ledger"
	"ramp/bank/ledgerdb"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
)

// restored is what a restore or its drill found, in JSON.
type restored struct {
	auditReport
	Recovery uint64 `json:"recovery"` // entry that began it; 0: a drill, or it was begun before
}

// restoring is a restore under way: everything happens to a copy, and the last
// step makes the copy the ledger.
type restoring struct {
	ledger, copy string
	node         *node // of a ledger in a cluster; nil: it is in a file
	cred         *identity.Credential
	trust        *identity.Trust
	currencies   []string
}

func newBankRestore() *cobra.Command {
	var drill bool
	c := &cobra.Command{
		Use: "restore FILE", Short: "Restore the ledger from a backup, in recovery; or try whether one could", Args: cobra.ExactArgs(1),
		Long: `Copies FILE, audits the copy whole — every page, row, hash, head and signature — and
makes it the ledger of --dir, which must have none. The bank is in recovery then: it
decides nothing, and takes back the receipts it signed after the backup, until 'ramp
bank recovery end'. With --verify: does all of it to a copy that is removed again, and
leaves the bank alone, which may run meanwhile. A bank whose ledger is in an etcd cluster
is restored into one that has no ledger of it; FILE may be the ledger.db of before.`,
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := dirOf(c, "bank")
			if err != nil {
				return err
			}
			r, err := newRestoring(dir, drill, commandLog(stderr(c)))
			if err != nil {
				return err
			}
			found, err := r.run(c.Context(), args[0], drill)
			if err != nil {
				return errors.Join(err, r.clean())
			}
			return printRestored(c, found, args[0], dir, drill)
		},
	}
	c.Flags().BoolVar(&drill, "verify", false, "try it on a copy, and leave the bank alone")
	return c
}

func newRestoring(dir string, drill bool, log *slog.Logger) (*restoring, error) {
	cfg, err := readConfig(filepath.Join(dir, configName))
	if err != nil {
		return nil, err
	}
	if err := cfg.checkBank(filepath.Join(dir, configName)); err != nil {
		return nil, err
	}
	r := &restoring{copy: filepath.Join(dir, "drill.db"), currencies: cfg.Bank.Currencies}
	if !drill {
		if err := r.place(dir, cfg, log); err != nil {
			return nil, err
		}
		r.copy = r.ledger + ".restore"
	}
	if !drill && isThere(r.ledger) {
		return nil, fail(exitUsage, "move it away first, and keep it: it may have what the backup lacks", "%s is there already", r.ledger)
	}
	if !drill {
		if err := mustNotRun(dir, r.ledger); err != nil {
			return nil, err
		}
	}
	if r.cred, err = cfg.credential(); err != nil {
		return nil, err
	}
	r.trust, err = cfg.trust()
	return r, err
}

// mustNotRun refuses while a bank runs whose ledger was moved away under it: it would
// go on writing there.
func mustNotRun(dir, file string) error {
	if daemonListens(dir) {
		return fail(exitFailed, "stop it first: 'systemctl stop ramp-bank', or SIGTERM to its process", "the bank of %s runs", dir)
	}
	who, err := boltfile.Holder(file)
	if err == nil && who != nil {
		err = fail(exitFailed, "wait until it is done, or end it", "%w", who)
	}
	return err
}

func (r *restoring) run(ctx context.Context, file string, drill bool) (restored, error) {
	if err := copyFile(file, r.copy); err != nil {
		return restored{}, err
	}
	found, err := r.prepare()
	if err != nil {
		return found, fmt.Errorf("%s: %w", file, err)
	}
	if drill {
		return found, r.clean()
	}
	if r.node != nil {
		return found, errors.Join(r.load(ctx), r.clean())
	}
	if err := os.Rename(r.copy, r.ledger); err != nil {
		return found, err
	}
	return found, r.clean()
}

// prepare audits the copy, and puts it in recovery.
func (r *restoring) prepare() (found restored, err error) {
	db, err := ledgerdb.Open(r.copy)
	if err != nil {
		return found, journalError(err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SignHeads(func(h contract.Head) ([]byte, error) { return contract.SignHead(r.cred, h) })
	if head, ok := db.Head(); ok && head.Bank != r.cred.ID {
		return found, fail(exitUsage, "", "the backup is of %s, this bank is %s", head.Bank, r.cred.ID)
	}
	if found.auditReport, err = auditLedger(db, r.cred, r.trust, true, true); err != nil {
		return found, fail(exitFailed, "", "%w", err)
	}
	if len(found.Bad) > 0 {
		return found, fail(exitFailed, "try an older backup", "the backup is damaged: %s", found.problems())
	}
	found.Recovery, err = r.recover(db)
	return found, err
}

// recover enters the beginning of recovery, which outlives every restart.
func (r *restoring) recover(db *ledgerdb.DB) (uint64, error) {
	cfg := ledger.Config{Bank: r.cred.ID, Currencies: r.currencies, Sign: signActs(r.cred)}
	now := time.Now()
	l, err := ledger.Load(cfg, now, db)
	if err != nil {
		return 0, fail(exitFailed, "", "%w", err)
	}
	if l.Recovering() {
		return 0, nil
	}
	e, records, err := l.SetRecovery(now, true, "restored from a backup")
	if err != nil {
		return 0, err
	}
	if err := db.Append(records); err != nil {
		return 0, err
	}
	return e.Number, db.SealHead(now)
}

// clean removes what a restore leaves; what is not there need not be.
func (r *restoring) clean() error {
	return errors.Join(removed(r.copy), removed(r.copy+boltfile.LockEnd))
}

// copyFile copies a file to one that must not be there, onto the disk.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return fail(exitUsage, "", "%w", err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fail(exitFailed, "", "%w", err)
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return fail(exitFailed, "", "%w", err)
	}
	return nil
}

func printRestored(c *cobra.Command, found restored, file, dir string, drill bool) error {
	if drill {
		found.Recovery = 0
	}
	if wantsJSON(c) {
		return printJSON(stdout(c), found)
	}
	if err := printAudit(c, found.auditReport, true); err != nil {
		return err
	}
	if drill {
		_, err := fmt.Fprintf(stdout(c), "%s can be restored; nothing was changed\n", file)
		return err
	}
	_, err := fmt.Fprintf(stdout(c), "restored, and in recovery\n  %s\n", restoredHint(dir))
	return err
}

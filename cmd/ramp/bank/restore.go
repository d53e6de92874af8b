package bank

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/node"
	"ramp/agents/words"
	"ramp/bank/boltfile"
	"ramp/bank/ledger"
	"ramp/bank/ledgerdb"
	"ramp/bank/ledgeretcd"
	"ramp/cmd/ramp/cli"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
)

// restored is the result of a restore or of a drill, in JSON.
type restored struct {
	control.AuditReport
	Recovery uint64 `json:"recovery"` // entry that began the recovery; 0: a drill, or it began before
	Unsigned uint64 `json:"unsigned"` // last entries, behind all heads that the bank has signed
}

// restoring is a restore in progress. It works on a copy, and the last step makes the copy the
// ledger.
type restoring struct {
	ledger, copy string
	node         *node.Node // for a ledger in a cluster; nil: it is in a file
	cred         *identity.Credential
	trust        *identity.Trust
	currencies   []string
}

func newBankRestore() *cobra.Command {
	var drill bool
	c := &cobra.Command{
		Use: "restore FILE", Short: "Restore the ledger from a backup, or test a backup", Args: cobra.ExactArgs(1), GroupID: "recovery",
		Long: `Copy FILE, audit the copy (every page, row, hash, head and signature), and make it the ledger of
--dir, which must have none. The bank is then in recovery: it decides nothing, and accepts the
receipts it signed after the backup, until 'ramp bank recovery end'. With --verify, do all of
this to a temporary copy and leave the bank, which may run, alone. For a bank whose ledger is in
an etcd cluster, the cluster must have no ledger of it; FILE may be an earlier ledger.db. Ends
with 1 if the backup is damaged.`,
		Example: "  ramp bank restore ledger-1121.backup --verify\n  ramp bank restore ledger-1121.backup",
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := cli.DirOf(c, "bank")
			if err != nil {
				return err
			}
			r, err := newRestoring(dir, drill, node.CommandLog(cli.Stderr(c)))
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
	c.Flags().BoolVar(&drill, "verify", false, "only test the backup, on a temporary copy")
	return c
}

func newRestoring(dir string, drill bool, log *slog.Logger) (*restoring, error) {
	cfg, err := config.Read(filepath.Join(dir, config.Name))
	if err != nil {
		return nil, err
	}
	if err := cfg.CheckBank(filepath.Join(dir, config.Name)); err != nil {
		return nil, err
	}
	r := &restoring{copy: filepath.Join(dir, "drill.db"), currencies: cfg.Bank.Currencies}
	if !drill {
		if err := r.place(dir, cfg, log); err != nil {
			return nil, err
		}
		r.copy = r.ledger + ".restore"
	}
	for _, file := range []string{r.ledger, r.ledger + boltfile.LogEnd} {
		if drill {
			break
		}
		if config.IsThere(file) {
			return nil, exit.Fail(exit.Usage, "move it away first, and keep it: it may have entries that the backup lacks", "%s exists already", file)
		}
		if err := mustNotRun(dir, r.ledger); err != nil {
			return nil, err
		}
	}
	if r.cred, err = cfg.Credential(); err != nil {
		return nil, err
	}
	r.trust, err = cfg.TrustAnchors()
	return r, err
}

// mustNotRun fails while the bank runs: although its ledger was moved away, it would keep writing to
// that file.
func mustNotRun(dir, file string) error {
	if control.DaemonListens(dir) {
		return exit.Fail(exit.Failed, "stop it first: 'systemctl stop ramp-bank', or SIGTERM to its process", "the bank in %s is running", dir)
	}
	who, err := boltfile.Holder(file)
	if err == nil && who != nil {
		err = exit.Fail(exit.Failed, "wait until it is done, or end it", "%w", who)
	}
	return err
}

func (r *restoring) run(ctx context.Context, file string, drill bool) (restored, error) {
	err := errors.Join(removed(r.copy+boltfile.LogEnd), copyFile(file, r.copy))
	if log := file + boltfile.LogEnd; err == nil && config.IsThere(log) { // a ledger's file that was copied by hand
		err = copyFile(log, r.copy+boltfile.LogEnd)
	} else if err == nil {
		if err = boltfile.DropLog(r.copy); err != nil {
			err = fmt.Errorf("%s: %w", file, err)
		}
	}
	if err != nil {
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
	if log := r.copy + boltfile.LogEnd; config.IsThere(log) {
		return found, exit.Fail(exit.Failed, "make room on the disk", "%s could not be put into its file", log)
	}
	if err := os.Rename(r.copy, r.ledger); err != nil {
		return found, err
	}
	return found, r.clean()
}

// prepare audits the copy and puts it in recovery.
func (r *restoring) prepare() (found restored, err error) {
	db, err := ledgerdb.Open(r.copy)
	if err != nil {
		if errors.Is(err, boltfile.ErrDamaged) {
			return found, exit.Fail(exit.Failed, "the backup itself is damaged: take another one", "%w", err)
		}
		return found, node.JournalError(err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SignHeads(func(h contract.Head) ([]byte, error) { return contract.SignHead(r.cred, h) })
	if head, ok := db.Head(); ok && head.Bank != r.cred.ID {
		return found, exit.Fail(exit.Usage, "", "the backup is of %s, this bank is %s", head.Bank, r.cred.ID)
	}
	if found.AuditReport, err = node.AuditLedger(db, r.cred, r.trust, true, true); err != nil {
		return found, exit.Fail(exit.Failed, "", "%w", err)
	}
	if len(found.Bad) > 0 {
		return found, exit.Fail(exit.Failed, "try an older backup", "the backup is damaged: %s", found.Problems())
	}
	head, _ := db.Head()
	found.Unsigned = found.Log - head.Size
	found.Recovery, err = r.recover(db)
	return found, err
}

// recover makes the entry that begins the recovery, so that it survives restarts.
func (r *restoring) recover(db *ledgerdb.DB) (uint64, error) {
	cfg := ledger.Config{Bank: r.cred.ID, Currencies: r.currencies, Sign: node.SignActs(r.cred)}
	now := time.Now()
	l, err := ledger.Load(cfg, now, db)
	if err != nil {
		return 0, exit.Fail(exit.Failed, "", "%w", err)
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

// clean removes the files of a restore, if they exist.
func (r *restoring) clean() error {
	return errors.Join(removed(r.copy), removed(r.copy+boltfile.LogEnd), removed(r.copy+boltfile.LockEnd))
}

// copyFile copies a file and flushes it to the disk. A device or a pipe may have no end.
func copyFile(from, to string) error {
	if info, err := os.Stat(from); err == nil && !info.Mode().IsRegular() {
		return exit.Fail(exit.Usage, "", "%s is not a regular file", from)
	}
	in, err := os.Open(from)
	if err != nil {
		return exit.Fail(exit.Usage, "", "%w", err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return exit.Fail(exit.Failed, "", "%w", err)
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return exit.Fail(exit.Failed, "", "%w", err)
	}
	return nil
}

func printRestored(c *cobra.Command, found restored, file, dir string, drill bool) error {
	if drill {
		found.Recovery = 0
	}
	return cli.Show(c, found, func(w io.Writer) {
		printAudit(w, found.AuditReport, true)
		if n := found.Unsigned; n > 0 {
			fmt.Fprintf(w, "  the bank has signed nothing that covers the last %d entries: whoever had the file may have added to it\n", n)
		}
		if drill {
			fmt.Fprintf(w, "%s can be restored; nothing was changed\n", file)
			return
		}
		fmt.Fprintf(w, "restored, and in recovery\n  'ramp bank serve --dir %[1]s' takes back receipts that the backup lacks; then 'ramp bank recovery end --dir %[1]s'\n", words.ShellWord(dir))
	})
}

// place sets the path of the ledger; for a cluster, that of this machine's copy.
func (r *restoring) place(dir string, cfg *config.Config, log *slog.Logger) (err error) {
	if !strings.HasPrefix(cfg.Bank.Store, "etcd:") {
		r.ledger, err = cfg.LedgerFile()
		return err
	}
	r.ledger = filepath.Join(dir, config.MirrorName)
	r.node, err = node.Prepare(filepath.Join(dir, config.Name), log)
	return err
}

func (r *restoring) load(ctx context.Context) (err error) {
	hosts := strings.Split(strings.TrimPrefix(r.node.Cfg.Bank.Store, "etcd:"), ",")
	cfg, err := r.node.ClusterConfig(hosts)
	if err != nil {
		return err
	}
	db, err := ledgerdb.Open(r.copy)
	if err != nil {
		return node.JournalError(err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, node.CommandWait)
	defer cancel()
	err = ledgeretcd.Import(ctx, cfg, db)
	if err != nil {
		for _, path := range []string{cfg.Mirror, cfg.Mirror + boltfile.LogEnd, cfg.Mirror + boltfile.LockEnd} { // it did not exist before
			err = errors.Join(err, removed(path))
		}
	}
	if errors.Is(err, ledgeretcd.ErrNotEmpty) || errors.Is(err, ledgeretcd.ErrUnfinished) {
		hint := "if it is incomplete or wrong, and no agent of the bank runs, remove it: 'etcdctl del --prefix %s', and mirror.db on each machine"
		return exit.Fail(exit.Usage, fmt.Sprintf(hint, ledgeretcd.PrefixOf(cfg.Bank)), "%w", err)
	}
	return node.ClusterError(err)
}

func removed(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

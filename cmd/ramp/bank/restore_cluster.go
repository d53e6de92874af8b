package bank

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"ramp/agents/config"
	"ramp/agents/exit"
	"ramp/agents/node"
	"ramp/bank/boltfile"
	"ramp/bank/ledgerdb"
	"ramp/bank/ledgeretcd"
)

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

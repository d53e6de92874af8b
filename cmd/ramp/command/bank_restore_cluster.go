package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"ramp/bank/boltfile"
	"ramp/bank/ledgerdb"
	"ramp/bank/ledgeretcd"
)

// place is where the ledger will be: of a cluster, this machine's copy of it.
func (r *restoring) place(dir string, cfg *config, log *slog.Logger) (err error) {
	if !strings.HasPrefix(cfg.Bank.Store, "etcd:") {
		r.ledger, err = cfg.ledgerFile()
		return err
	}
	r.ledger = filepath.Join(dir, mirrorName)
	r.node, err = prepare(filepath.Join(dir, configName), log)
	return err
}

// load makes the copy the ledger of the cluster.
func (r *restoring) load(ctx context.Context) (err error) {
	hosts := strings.Split(strings.TrimPrefix(r.node.cfg.Bank.Store, "etcd:"), ",")
	cfg, err := r.node.clusterConfig(hosts)
	if err != nil {
		return err
	}
	db, err := ledgerdb.Open(r.copy)
	if err != nil {
		return journalError(err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, commandWait)
	defer cancel()
	err = ledgeretcd.Import(ctx, cfg, db)
	if err != nil {
		for _, path := range []string{cfg.Mirror, cfg.Mirror + boltfile.LockEnd} { // which was not there
			err = errors.Join(err, removed(path))
		}
	}
	if errors.Is(err, ledgeretcd.ErrNotEmpty) || errors.Is(err, ledgeretcd.ErrUnfinished) {
		hint := "if it is lost or wrong, and no agent of the bank runs, remove it: 'etcdctl del --prefix %s', and mirror.db on each machine"
		return fail(exitUsage, fmt.Sprintf(hint, ledgeretcd.PrefixOf(cfg.Bank)), "%w", err)
	}
	return clusterError(err)
}

// removed removes a file that need not be there.
func removed(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

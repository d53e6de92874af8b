package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"ramp/agents/config"
	"ramp/agents/exit"
	"ramp/bank/ledgeretcd"
)

// clusterBench is the same bank with its ledger in an etcd cluster, and a baseline there:
// transfers by one transaction each.
type clusterBench struct {
	bank  BankBench
	cfg   ledgeretcd.Config
	store *ledgeretcd.Store
	stop  func() error
}

// ClusterHosts parses --store; no hosts: no cluster is measured.
func ClusterHosts(store string) ([]string, error) {
	if store == "" {
		return nil, nil
	}
	list, is := strings.CutPrefix(store, "etcd:")
	hosts, named := config.Endpoints(strings.Split(list, ","))
	if !is || !named || len(hosts) > ledgeretcd.MaxEndpoints {
		return nil, exit.Fail(exit.Usage, "", "--store %q: want etcd:HOST,HOST, 1..%d members; the file of --dir is measured in any case", store, ledgeretcd.MaxEndpoints)
	}
	return hosts, nil
}

// openCluster starts the bank in the cluster. close removes all its keys.
func (b *BankBench) openCluster(ctx context.Context, hosts []string) (*clusterBench, error) {
	c := &clusterBench{
		bank: BankBench{Log: b.Log, Dir: b.Dir, Accounts: b.Accounts, Time: b.Time, keys: b.keys},
		cfg: ledgeretcd.Config{
			Endpoints: hosts, Bank: b.keys.bank.ID, Name: "ramp bench bank", Mirror: filepath.Join(b.Dir, config.MirrorName),
			Lease: benchLease, Log: slog.New(slog.DiscardHandler),
		},
	}
	wait, cancel := context.WithTimeout(ctx, benchWait)
	defer cancel()
	var err error
	c.store, err = ledgeretcd.Open(wait, c.cfg)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return nil, exit.Fail(exit.Failed, clusterHint, "--store: no answer from the etcd cluster at %s within %s", strings.Join(hosts, ", "), benchWait)
	case err != nil:
		return nil, exit.Fail(exit.Failed, clusterHint, "--store: %w", err)
	}
	c.stop = c.bank.start(ctx, c.store, c.store.DB())
	if err := c.bank.fill(ctx); err != nil {
		return nil, errors.Join(err, c.close(ctx))
	}
	return c, nil
}

const (
	benchWait  = 10 * time.Second // for the cluster to answer
	benchLease = 30 * time.Second // no other agent competes to lead
)

const clusterHint = "look at the etcd cluster: 'etcdctl endpoint status --cluster'"

// close removes the bank from the cluster, also when the run was interrupted.
func (c *clusterBench) close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	return errors.Join(c.stop(), c.store.Close(), ledgeretcd.Remove(ctx, c.cfg))
}

// phases measure the cluster's figures of a row.
func (c *clusterBench) phases(ctx context.Context, clients int, f *BankFigures) []phase {
	return []phase{
		{&f.Etcd, func() (int64, time.Duration, error) {
			return c.bank.together(ctx, clients, func(int) error { return c.bank.settleVerified() })
		}},
		{&f.EtcdNaive, func() (int64, time.Duration, error) { return c.naive(ctx, clients) }},
	}
}

// naive moves money between random balances, as many as the bank has accounts.
func (c *clusterBench) naive(ctx context.Context, clients int) (int64, time.Duration, error) {
	transfers, err := ledgeretcd.NewNaive(c.cfg, clients)
	if err != nil {
		return 0, 0, err
	}
	defer transfers.Close()
	n, took, err := c.bank.together(ctx, clients, func(int) error {
		for ctx.Err() == nil {
			from := rand.IntN(c.bank.Accounts)
			to := (from + 1 + rand.IntN(c.bank.Accounts-1)) % c.bank.Accounts
			if done, err := transfers.Transfer(ctx, from, to); err != nil || done {
				return err
			}
		}
		return errEnough
	})
	if err != nil {
		err = fmt.Errorf("bench: transfer in etcd: %w", err)
	}
	return n, took, err
}

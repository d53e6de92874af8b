package ledgeretcd_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"ramp/agents"
	"ramp/bank/ledgeretcd"
	"ramp/bank/ledgeretcd/etcdtest"
	"ramp/protocol"
)

const (
	rateClients = 64
	rateTime    = 3 * time.Second
)

// TestTransfersShareTransactions also prints what clients get in one run from the ledger,
// with its entries, log and mirror, and what they get who write two balances in one
// transaction of etcd each: by etcd's own client, and by the form of its interface that
// the ledger uses, as 'ramp bench bank' does.
func TestTransfersShareTransactions(t *testing.T) {
	if os.Getenv(etcdtest.Demanded) == "" {
		t.Skip("figures are measured by make test-etcd")
	}
	c := startCluster(t)
	naive := naiveRate(t, c.Endpoints)
	benched := benchedRate(t)
	before := revision(t, c.Endpoints)
	grouped := ledgerRate(t)
	used := float64(revision(t, c.Endpoints) - before)
	t.Logf("%d clients: %.0f transfers per second naively by etcd's own client, %.0f by its JSON; %.0f by the ledger: %.1f and %.1f times (the aim is 2)",
		rateClients, naive, benched, grouped, grouped/naive, grouped/benched)
	if transfers := grouped * rateTime.Seconds(); used > transfers/2 {
		t.Errorf("%.0f transfers took %.0f transactions", transfers, used)
	}
}

// revision is how many transactions have changed something.
func revision(t *testing.T, endpoints []string) int64 {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := c.Get(t.Context(), "none")
	if err != nil {
		t.Fatal(err)
	}
	return r.Header.Revision
}

// rate counts what the clients do in rateTime.
func rate(f func(rng *rand.Rand) bool) float64 {
	var done atomic.Int64
	var wg sync.WaitGroup
	begin := time.Now()
	for i := range rateClients {
		wg.Go(func() {
			for rng := rand.New(rand.NewPCG(1, uint64(i))); time.Since(begin) < rateTime; {
				if f(rng) {
					done.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return float64(done.Load()) / time.Since(begin).Seconds()
}

const rateRows = 1000 // balances, so that clients seldom meet at one

// benchedRate is the naive rate of benchmarks.
func benchedRate(t *testing.T) float64 {
	n, err := ledgeretcd.NewNaive(testConfig(t, "naive"), rateClients)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	return rate(func(rng *rand.Rand) bool {
		a := rng.IntN(rateRows)
		done, err := n.Transfer(t.Context(), a, (a+1+rng.IntN(rateRows-1))%rateRows)
		return err == nil && done
	})
}

func naiveRate(t *testing.T, endpoints []string) float64 {
	c, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return rate(func(rng *rand.Rand) bool {
		a := rng.IntN(rateRows)
		return transfer(t.Context(), c, fmt.Sprint("/naive/", a), fmt.Sprint("/naive/", (a+1+rng.IntN(rateRows-1))%rateRows))
	})
}

// transfer moves one credit unless somebody else changed one of the accounts.
func transfer(ctx context.Context, c *clientv3.Client, from, to string) bool {
	read, err := c.Txn(ctx).Then(clientv3.OpGet(from), clientv3.OpGet(to)).Commit()
	if err != nil {
		return false
	}
	var same []clientv3.Cmp
	var puts []clientv3.Op
	for i, key := range []string{from, to} {
		var revision int64
		balance := 0
		for _, kv := range read.Responses[i].GetResponseRange().Kvs {
			revision = kv.ModRevision
			balance, _ = strconv.Atoi(string(kv.Value))
		}
		same = append(same, clientv3.Compare(clientv3.ModRevision(key), "=", revision))
		puts = append(puts, clientv3.OpPut(key, strconv.Itoa(balance+2*i-1)))
	}
	written, err := c.Txn(ctx).If(same...).Then(puts...).Commit()
	return err == nil && written.Succeeded
}

func ledgerRate(t *testing.T) float64 {
	cfg := testConfig(t, t.TempDir()+"/ledger.db")
	cfg.Bank = account(-1)
	s, err := lead(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := agents.NewRunner(agents.Config{
		Load: loadBank, Store: s, Route: func(protocol.Message) {}, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = r.Run(ctx) })
	defer wg.Wait()
	defer cancel()
	return rate(func(rng *rand.Rand) bool {
		_, err := act(s, r, []string{"add", string(account(rng.IntN(accounts))), "x"})
		return err == nil
	})
}

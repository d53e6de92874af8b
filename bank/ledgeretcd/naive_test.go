package ledgeretcd_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"ramp/bank/ledgeretcd"
)

// What benchmarks compare with must be right to be a baseline: transfers that were
// done are in the balances, one by one, and those that were not are in none. Who then
// removes a bank leaves nothing of it, and everything of another one.
func TestNaiveTransfersAreDoneOnceOrNotAtAll(t *testing.T) {
	endpoints := startCluster(t).Endpoints
	c, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	one, other := testConfig(t, "one"), testConfig(t, "other")
	done := transferAtOnce(t, one, 8, 25)
	transferAtOnce(t, other, 1, 1)

	sum, moved := 0, 0
	for _, b := range balances(t, c, one) {
		sum += b
		moved += max(b, 0)
	}
	if sum != 0 || moved != done || done < 25 {
		t.Errorf("%d transfers from 0 to 1 and beyond: the balances sum to %d, %d arrived", done, sum, moved)
	}
	if err := ledgeretcd.Remove(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if mine, others := balances(t, c, one), balances(t, c, other); len(mine) != 0 || len(others) != 2 {
		t.Errorf("of the bank that was removed %v is there, of the other %v", mine, others)
	}
}

// transferAtOnce makes transfers from account 0, where clients meet, and counts those
// that were done.
func transferAtOnce(t *testing.T, cfg ledgeretcd.Config, clients, each int) (done int) {
	t.Helper()
	n, err := ledgeretcd.NewNaive(cfg, clients)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for range each {
				ok, err := n.Transfer(t.Context(), 0, i+1)
				mu.Lock()
				if err != nil {
					t.Error(err)
				}
				if ok {
					done++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return done
}

// balances are those of a bank, as etcd's own client reads them.
func balances(t *testing.T, c *clientv3.Client, cfg ledgeretcd.Config) map[string]int {
	t.Helper()
	prefix := "/ramp/bank/" + string(cfg.Bank) + "/"
	answer, err := c.Get(t.Context(), prefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for _, kv := range answer.Kvs {
		n, err := strconv.Atoi(string(kv.Value))
		if err != nil {
			t.Errorf("%s: %v", kv.Key, err)
		}
		all[strings.TrimPrefix(string(kv.Key), prefix)] = n
	}
	return all
}

func TestNaiveTransfersWithoutAClusterFail(t *testing.T) {
	cfg := testConfig(t, "none")
	cfg.Endpoints = nil
	if _, err := ledgeretcd.NewNaive(cfg, 1); err == nil {
		t.Error("no endpoints: taken")
	}
	cfg.Endpoints = []string{"127.0.0.1:1"}
	n, err := ledgeretcd.NewNaive(cfg, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if ok, err := n.Transfer(context.Background(), 1, 2); ok || err == nil {
		t.Errorf("nobody answers: %v, %v", ok, err)
	}
	if err := ledgeretcd.Remove(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), string(cfg.Bank)) {
		t.Errorf("nobody answers: %v", err)
	}
}

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ramp/agents/porttest"
	"ramp/bank/ledgeretcd/etcdtest"
	"ramp/protocol/message"
)

// Two bank agents with one credential, their ledger in an etcd cluster. Who leads
// is killed; the other takes over, and the market goes on without a hand.
func TestABankSurvivesItsMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("kills a bank and waits for its lease")
	}
	kills := 1
	if os.Getenv(etcdtest.Demanded) != "" {
		kills = 5
	}
	m := clusterMarket(t, etcdtest.Start(t).Endpoints)
	must(t, m.bank("/v1/credit", map[string]any{"account": "user", "amount": 1000000}))
	var took []time.Duration
	for i := range kills {
		next := m.standby(t, i+1)
		m.daemons["bank"].kill()
		took = append(took, m.settledAgain(t))
		m.daemons["bank"] = <-next
		t.Logf("settled again %s after the leader was killed", took[i].Round(time.Millisecond))
		m.settleDown(t)
		m.verify(t)
	}
	slices.Sort(took)
	t.Logf("a purchase was settled %s after the leader was killed (median of %d; the aim is 5s)", took[kills/2].Round(time.Millisecond), kills)
	verifyWithOpenSSL(t, m)
}

// clusterMarket is a market whose bank has two directories, bank-0 and bank-1;
// the name bank leads to the one who leads.
func clusterMarket(t *testing.T, endpoints []string) *market {
	t.Helper()
	dir, err := os.MkdirTemp("", "ramp-test-") // short: sockets are in it
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	m, err := newMarket(dir, nil, "atlas")
	must(t, err)
	t.Cleanup(func() { m.endOf(t) })
	m.sellers = []string{"atlas"}
	must(t, os.CopyFS(m.path("bank-1"), os.DirFS(m.path("bank"))))
	must(t, os.Rename(m.path("bank"), m.path("bank-0")))
	store := "bank: {store: \"etcd:" + strings.Join(endpoints, ",") + "\", "
	m.rewrite(t, "bank-0", "bank: {", store)
	m.rewrite(t, "bank-1", "bank: {", store)
	port, err := porttest.Free()
	must(t, err)
	b, err := os.ReadFile(filepath.Join(m.path("bank-0"), "config.yaml"))
	must(t, err)
	first, _, _ := strings.Cut(string(b[strings.Index(string(b), "tcp/"):]), "]")
	m.rewrite(t, "bank-1", first, fmt.Sprintf("tcp/%d", port))
	m.rewrite(t, "user", "settle: 3s", "settle: 10s")

	m.daemons["bank"] = <-m.standby(t, 0)
	a := m.daemons["bank"].ready.Addresses[0]
	both := []string{a, strings.Replace(a, first, fmt.Sprintf("tcp/%d", port), 1)}
	for _, name := range []string{"user", "atlas"} {
		must(t, m.bank("/v1/account", map[string]any{"account": m.ids[name], "name": name, "limit": 0}))
		m.rewrite(t, name, "listen:", "bootstrap: ["+strings.Join(both, ", ")+"]\nlisten:")
		must(t, m.serve(name))
	}
	m.meet(t)
	return m
}

// rewrite changes the configuration in a directory.
func (m *market) rewrite(t *testing.T, name, old, text string) {
	t.Helper()
	path := filepath.Join(m.path(name), "config.yaml")
	b, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, []byte(strings.Replace(string(b), old, text, 1)), 0o600))
}

// standby starts bank agent i, on the directory i mod 2, and hands it over when
// it leads. It returns once the agent follows, if another leads.
func (m *market) standby(t *testing.T, i int) <-chan *daemon {
	t.Helper()
	name := fmt.Sprintf("bank-%d", i%2)
	log := m.path(fmt.Sprintf("agent-%d.log", i))
	leads := make(chan *daemon, 1)
	go func() {
		d, err := startDaemon(log, m.env, "bank", "serve", "--dir", m.path(name))
		if err != nil {
			t.Error(err)
			close(leads)
			return
		}
		_ = os.Remove(m.path("bank"))
		if err := os.Symlink(name, m.path("bank")); err != nil {
			t.Error(err)
		}
		leads <- d
	}()
	must(t, until(untilTime, func() (bool, error) {
		b, err := os.ReadFile(log)
		return strings.Contains(string(b), "msg=following") || len(leads) > 0, err
	}))
	return leads
}

// settledAgain buys until a purchase is settled, and says how long that took.
func (m *market) settledAgain(t *testing.T) time.Duration {
	t.Helper()
	begin := time.Now()
	for time.Since(begin) < untilTime {
		ctx, cancel := context.WithTimeout(context.Background(), untilTime)
		id := m.begin(t, "job.xml")
		m.watch(ctx, id, nil)
		cancel()
		took := time.Since(begin)
		purchases, err := m.purchases()
		must(t, err)
		if slices.ContainsFunc(purchases, func(p message.Purchase) bool { return p.ID == id && p.Settled }) {
			return took
		}
	}
	purchases, err := m.purchases()
	t.Fatalf("nothing was settled: %d purchases, %v, the last %+v", len(purchases), err, purchases[max(0, len(purchases)-1):])
	return 0
}

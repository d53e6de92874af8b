package ledgeretcd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"

	"ramp/bank/ledgeretcd"
	"ramp/protocol"
)

// cable is a connection to a member that can be cut and mended.
type cable struct {
	address, member string
	mu              sync.Mutex
	cut             bool
	open            []net.Conn
}

func newCable(t *testing.T, member string) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	c := &cable{address: l.Addr().String(), member: member}
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			c.join(a)
		}
	}()
	return c
}

func (c *cable) join(a net.Conn) {
	b, err := net.Dial("tcp", c.member)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || c.cut {
		_ = a.Close()
		return
	}
	c.open = append(c.open, a, b)
	go func() { _, _ = io.Copy(a, b); _ = a.Close() }()
	go func() { _, _ = io.Copy(b, a); _ = b.Close() }()
}

func (c *cable) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
	for _, x := range c.open {
		_ = x.Close()
	}
	c.open = nil
}

func TestALeaderWhoIsCutOffWritesNothingMore(t *testing.T) {
	c := startCluster(t, "--heartbeat-interval", "50", "--election-timeout", "500")
	dir := t.TempDir()
	cfg := testConfig(t, filepath.Join(dir, "one.db"))
	cfg.Lease = shortLease
	other := cfg
	other.Mirror, other.Name = filepath.Join(dir, "other.db"), "other"
	var cables []*cable
	cfg.Endpoints = nil
	for _, member := range c.Endpoints {
		x := newCable(t, member)
		cables, cfg.Endpoints = append(cables, x), append(cfg.Endpoints, x.address)
	}
	one, err := lead(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	must(t, one.Append(record("a", "1")))
	for err = context.DeadlineExceeded; errors.Is(err, context.DeadlineExceeded); { // of a cluster that is slow to say who leads
		_, err = leadWithin(t, other, inVain)
	}
	if !errors.Is(err, ledgeretcd.ErrLed) {
		t.Fatalf("while one leads the other has %v", err)
	}
	for _, x := range cables {
		x.set(true)
	}
	if err := one.Append(record("a", "lost")); !errors.Is(err, ledgeretcd.ErrUncertain) || one.Leading() {
		t.Fatalf("cut off, an append has %v", err)
	}
	<-one.Lost()
	next, err := lead(t, other)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	must(t, next.Append(record("a", "2")))
	for _, x := range cables {
		x.set(false)
	}
	if err := one.Append(record("a", "late")); err == nil {
		t.Fatal("a deposed leader has written")
	}
	if got := fmt.Sprint(keys(t, next)); got != "[1 2]" {
		t.Fatalf("the ledger has %s", got)
	}
}

// A leader that goes on after its lease removes nothing of the next one's.
func TestADeposedLeaderRemovesNothing(t *testing.T) {
	startCluster(t)
	dir := t.TempDir()
	cfg := testConfig(t, filepath.Join(dir, "one.db"))
	one, err := lead(t, cfg)
	must(t, err)
	must(t, one.Close()) // it resigns, and knows the journal as it was
	cfg.Mirror = filepath.Join(dir, "two.db")
	two, err := lead(t, cfg)
	must(t, err)
	must(t, two.Append([]protocol.Record{{Table: "a", Key: "1", Value: noise(1, 600_000)}})) // in parts
	if err := ledgeretcd.ClearLate(t.Context(), one); !errors.Is(err, ledgeretcd.ErrDeposed) {
		t.Fatalf("the first leader: %v", err)
	}
	must(t, two.Close())
	cfg.Mirror = filepath.Join(dir, "three.db")
	three, err := lead(t, cfg)
	must(t, err)
	defer three.Close()
	if got := fmt.Sprint(keys(t, three)); got != "[1]" {
		t.Fatalf("the ledger has %s", got)
	}
}

// A cluster that has gone back, as from an old backup, gets no entry behind the hole.
func TestALeaderNoticesThatTheClusterHasGoneBack(t *testing.T) {
	c := startCluster(t)
	cfg := testConfig(t, filepath.Join(t.TempDir(), "one.db"))
	s, err := lead(t, cfg)
	must(t, err)
	for _, v := range []string{"1", "2", "3"} {
		must(t, s.Append(record("a", v)))
	}
	gone, err := json.Marshal(map[string][]byte{"key": []byte(s.JournalKey(3))})
	must(t, err)
	answer, err := http.Post("http://"+c.Endpoints[0]+"/v3/kv/deleterange", "application/json", bytes.NewReader(gone))
	must(t, err)
	must(t, answer.Body.Close())
	if err := s.Append(record("a", "4")); !errors.Is(err, ledgeretcd.ErrDeposed) {
		t.Fatalf("an entry behind the hole: %v", err)
	}
	must(t, s.Close())
	if _, err := lead(t, cfg); !errors.Is(err, ledgeretcd.ErrForeign) {
		t.Fatalf("who leads again: %v", err)
	}
}

func TestAppendsLargerThanARequestAreWholeOrNot(t *testing.T) {
	startCluster(t)
	dir := t.TempDir()
	cfg := testConfig(t, filepath.Join(dir, "one.db"))
	s, err := lead(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	var large []protocol.Record
	for i := range 40 {
		large = append(large, protocol.Record{Table: "a", Key: fmt.Sprintf("%02d", i), Value: noise(i, 100_000)})
	}
	must(t, s.Append(large))
	must(t, s.Append(record("a", "x")))
	must(t, s.Close())
	cfg.Mirror = filepath.Join(dir, "other.db")
	if s, err = lead(t, cfg); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := keys(t, s); len(got) != 41 {
		t.Fatalf("%d rows came back", len(got))
	}
}

func TestAMirrorOfAnotherJournalIsRefused(t *testing.T) {
	startCluster(t)
	cfg := testConfig(t, filepath.Join(t.TempDir(), "one.db"))
	s, err := lead(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	must(t, s.Append(record("a", "1")))
	must(t, s.Close())
	cfg.Bank = account(7)
	if _, err := lead(t, cfg); !errors.Is(err, ledgeretcd.ErrForeign) {
		t.Fatalf("the mirror of another bank: %v", err)
	}
}

func TestWhoStopsFollowingIsTold(t *testing.T) {
	cfg := testConfig(t, filepath.Join(t.TempDir(), "one.db"))
	cfg.Endpoints = []string{"127.0.0.1:1"}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ledgeretcd.Open(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func record(table, key string) []protocol.Record {
	return []protocol.Record{{Table: table, Key: key, Value: []byte("v")}}
}

func keys(t *testing.T, s *ledgeretcd.Store) (list []string) {
	t.Helper()
	must(t, s.Each("a", func(key string, _ []byte) error { list = append(list, key); return nil }))
	return list
}

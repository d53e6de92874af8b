package ledgerdb_test

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"ramp/bank/ledger"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
)

// Sizes of the benchmark: what a bank of some years looks like.
const (
	benchAccounts = 10_000
	benchEntries  = 1_000_000
	benchAppend   = 512 // bundles per append while it is made
)

// BenchmarkBundles is the ledger's part of a settlement: decide and make
// durable, with one, 64 and 256 bundles in an append, in a bank of 10,000
// accounts after 10⁶ entries (10⁴ with -short), on the file system of TMPDIR.
// Beside it, bbolt's own Batch writes the same records from as many goroutines.
func BenchmarkBundles(b *testing.B) {
	dir := b.TempDir()
	path := filepath.Join(dir, "ledger.db")
	if mem, err := ledgerdb.InMemory(path); err != nil || mem {
		b.Skipf("a file system in memory shows nothing: TMPDIR %s, %v", dir, err)
	}
	m := newMarket(b, path)
	for _, size := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("appends of %d", size), func(b *testing.B) {
			before := cpuTime()
			m.bundles(b, b.N, size)
			report(b, before)
		})
	}
	_ = m.db.Close()
	for _, size := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("bbolt batch of %d", size), func(b *testing.B) { benchBatch(b, m, path, size) })
	}
}

// market makes bundles of one unit between random accounts.
type market struct {
	l      *ledger.Ledger
	db     *ledgerdb.DB
	rng    *rand.Rand
	agents []protocol.AgentID
	now    time.Time
	next   uint64
}

func benchAgent(i int) protocol.AgentID {
	h := sha256.Sum256(binary.BigEndian.AppendUint32(nil, uint32(i)))
	fp := strings.ToLower(base32.StdEncoding.EncodeToString(h[:20]))
	return protocol.AgentID(fmt.Sprintf("agent%d@%s", i, fp))
}

func newMarket(b *testing.B, path string) *market {
	db, err := ledgerdb.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	m := &market{db: db, rng: rand.New(rand.NewPCG(1, 1)), now: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
	m.l, err = ledger.Load(ledger.Config{Bank: benchAgent(-1), Currencies: []string{"cr"}}, m.now, db)
	if err != nil {
		b.Fatal(err)
	}
	m.openAccounts(b)
	entries := benchEntries
	if testing.Short() {
		entries = 10_000
	}
	if n := entries - int(m.l.LastEntry()); n > 0 {
		m.bundles(b, n, benchAppend)
	}
	return m
}

func (m *market) openAccounts(b *testing.B) {
	var batch []protocol.Record
	entries := benchAccounts
	if testing.Short() {
		entries = 1000
	}
	for i := range entries {
		id := benchAgent(i)
		m.agents = append(m.agents, id)
		_, open, err1 := m.l.Open(m.now, id, id.Name())
		_, credit, err2 := m.l.Credit(m.now, id, "cr", 1<<40, "first")
		if err1 != nil || err2 != nil {
			b.Fatal(err1, err2)
		}
		batch = append(append(batch, open...), credit...)
	}
	if err := m.db.Append(batch); err != nil {
		b.Fatal(err)
	}
}

// settle decides one new bundle.
func (m *market) settle(b *testing.B) []protocol.Record {
	m.next++
	m.now = m.now.Add(100 * time.Microsecond)
	user, seller := m.agents[m.rng.IntN(len(m.agents))], m.agents[m.rng.IntN(len(m.agents))]
	cost := protocol.Credits(1 + m.rng.Int64N(1000))
	bundle := protocol.Bundle{
		Version: protocol.BundleVersion, User: user, Bank: m.l.Bank(), Currency: "cr", Mode: protocol.ModeOnReservation,
		Units: []protocol.BundleUnit{{Seller: seller, Cost: cost}}, Total: cost, SettleBy: m.now.Add(protocol.DefaultSettle),
	}
	h := sha256.Sum256(binary.BigEndian.AppendUint64(nil, m.next))
	id := protocol.ContractID(hex.EncodeToString(h[:]))
	r, records, err := m.l.Copy(m.now, id, bundle, seller)
	if err == ledger.ErrAskStore {
		b.Fatal("a new bundle needs the store")
	}
	if err != nil || r.Outcome != protocol.OutcomeSettled {
		b.Fatal(r, err)
	}
	return records
}

// bundles settles n bundles, size in one append.
func (m *market) bundles(b *testing.B, n, size int) {
	var batch []protocol.Record
	for i := range n {
		batch = append(batch, m.settle(b)...)
		if (i+1)%size == 0 || i+1 == n {
			if err := m.db.Append(batch); err != nil {
				b.Fatal(err)
			}
			batch = batch[:0]
		}
	}
}

// benchBatch gives the records of each bundle to bbolt's Batch, on a copy of
// the same file, with bbolt's defaults but for the size of its batches.
func benchBatch(b *testing.B, m *market, path string, clients int) {
	plain := filepath.Join(b.TempDir(), "plain.db")
	copyFile(b, path, plain)
	db, err := bbolt.Open(plain, 0o600, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	db.MaxBatchSize = clients
	work := make(chan []protocol.Record, b.N)
	for range b.N {
		work <- m.settle(b)
	}
	close(work)
	b.ResetTimer()
	before := cpuTime()
	var group sync.WaitGroup
	for range clients {
		group.Go(func() { putAll(b, db, work) })
	}
	group.Wait()
	report(b, before)
}

// report gives the rate, and the processor's time per bundle, which other work
// on the machine disturbs less.
func report(b *testing.B, before time.Duration) {
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "bundles/s")
	b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(b.N), "cpu-µs/bundle")
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func putAll(b *testing.B, db *bbolt.DB, work <-chan []protocol.Record) {
	for records := range work {
		err := db.Batch(func(tx *bbolt.Tx) error {
			tables := tx.Bucket([]byte("tables"))
			for _, r := range records {
				t := tables.Bucket([]byte(r.Table))
				if r.Value == nil {
					if err := t.Delete([]byte(r.Key)); err != nil {
						return err
					}
				} else if err := t.Put([]byte(r.Key), r.Value); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Error(err)
			return
		}
	}
}

func copyFile(b *testing.B, from, to string) {
	in, err := os.Open(from)
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		b.Fatal(err)
	}
	if err := out.Sync(); err != nil {
		b.Fatal(err)
	}
}

package agents_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"ramp/agents"
	"ramp/agents/bank"
	"ramp/agents/journal"
	"ramp/agents/markettest"
	"ramp/agents/queue/swf"
	"ramp/agents/resource"
	"ramp/agents/resource/pricing"
	"ramp/agents/storetest"
	"ramp/agents/user"
	"ramp/agents/workload"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/message"
	"ramp/rfql"
)

// BenchmarkSettlement buys units of as many sellers, one purchase after the other,
// with the real roles, Runners, stores and batch systems, real bytes and real
// signatures; only the network is a channel. settle-ms is from the signed bundle to
// the bank's receipt, commits-ms three bbolt transactions in a row on the same disk,
// cpu-ms the whole purchase's in all parties. limit_ms is the aim: 1.5 times two of the
// transactions and the signatures that a settlement makes and verifies in a row.
// flush=2ms makes every flush of this process take as much longer.
func BenchmarkSettlement(b *testing.B) {
	for _, flush := range []time.Duration{0, 2 * time.Millisecond} {
		if flush > 0 {
			if err := storetest.SlowDisk(flush); err != nil {
				b.Skipf("this kernel lets no process delay its own calls: %v", err)
			}
		}
		for _, sellers := range []int{1, 3} {
			b.Run(fmt.Sprintf("flush=%s/sellers=%d", flush, sellers), func(b *testing.B) { benchSettlement(b, sellers) })
		}
	}
}

func benchSettlement(b *testing.B, sellers int) {
	m := openBench(b, sellers)
	m.buy("warm", sellers)
	db, err := bbolt.Open(filepath.Join(m.dir, "commits.db"), 0o600, nil)
	m.must(err)
	defer func() { _ = db.Close() }()
	var settles, commits []float64
	var used time.Duration
	for i := range b.N {
		begun := cpu(b)
		settles = append(settles, m.buy(fmt.Sprint("p", i), sellers).SettleMS)
		used += cpu(b) - begun
		commits = append(commits, m.threeCommits(db)) // in between: the disk is others' too
	}
	settle, baseline := median(settles), median(commits)
	b.ReportMetric(settle, "settle-ms")
	b.ReportMetric(baseline, "commits-ms")
	b.ReportMetric(settle/baseline, "ratio")
	b.ReportMetric(1.5*(baseline*2/3+signatures(b)), "limit_ms")
	b.ReportMetric(float64(used.Microseconds())/1000/float64(b.N), "cpu-ms")
	b.ReportMetric(0, "ns/op")
}

// signatures is how long those of a settlement with one seller take, in ms: user, seller and
// bank sign; the seller verifies the user's, the user and the bank the seller's, the bank
// the user's, and the user the bank's.
func signatures(b *testing.B) float64 {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	hash := sha256.Sum256([]byte("a bundle"))
	var times []float64
	for range 100 {
		begun := time.Now()
		var sig []byte
		for range 3 {
			if sig, err = ecdsa.SignASN1(rand.Reader, key, hash[:]); err != nil {
				b.Fatal(err)
			}
		}
		for range 5 {
			if !ecdsa.VerifyASN1(&key.PublicKey, hash[:], sig) {
				b.Fatal("a valid signature is refused")
			}
		}
		times = append(times, float64(time.Since(begun).Microseconds())/1000)
	}
	return median(times)
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// cpu is what this process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// benchMarket is a bank, a user and sellers, each with its goroutines.
type benchMarket struct {
	b      *testing.B
	cast   *markettest.Cast
	dir    string
	runs   map[protocol.AgentID]*agents.Runner
	links  map[[2]protocol.AgentID]chan protocol.Message
	mu     sync.Mutex // guards links
	done   chan message.Purchase
	signer *codec.Signer
	ctx    context.Context
	wg     sync.WaitGroup
}

func openBench(b *testing.B, sellers int) *benchMarket {
	ctx, cancel := context.WithCancel(context.Background())
	m := &benchMarket{
		b: b, cast: markettest.NewCast(b, sellers), dir: b.TempDir(), done: make(chan message.Purchase, 1),
		runs: map[protocol.AgentID]*agents.Runner{}, links: map[[2]protocol.AgentID]chan protocol.Message{}, ctx: ctx,
	}
	m.signer = codec.NewSigner(m.cast.Credential(markettest.Bank), 64)
	b.Cleanup(func() { cancel(); m.wg.Wait() })
	begin := []func(){m.bank(), m.user()}
	for i := range sellers {
		begin = append(begin, m.seller(markettest.Seller(i+1)))
	}
	for _, f := range begin {
		f()
	}
	m.fund(sellers)
	return m
}

// must panics, since it is called in any goroutine.
func (m *benchMarket) must(err error) {
	if err != nil {
		panic(err)
	}
}

func (m *benchMarket) bank() func() {
	db, err := ledgerdb.Open(filepath.Join(m.dir, "ledger.db"))
	m.must(err)
	m.b.Cleanup(func() { _ = db.Close() })
	cfg := bank.Config{ID: m.cast.ID(markettest.Bank), Currencies: []string{"CRD"}, Heartbeat: 10 * time.Minute}
	return m.agent(markettest.Bank, db, nil, func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
		return bank.New(cfg, t, now)
	})
}

func (m *benchMarket) journal(name string) agents.Store {
	j, err := journal.Open(filepath.Join(m.dir, name+".db"), 0)
	m.must(err)
	m.b.Cleanup(func() { _ = j.Close() })
	return j
}

func (m *benchMarket) user() func() {
	cfg := user.Config{Credential: m.cast.Credential(markettest.User), Trust: m.cast.Trust, Terms: []protocol.Terms{m.cast.Terms()}}
	return m.agent(markettest.User, m.journal(markettest.User), nil, func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
		return user.New(cfg, t, now)
	})
}

func (m *benchMarket) seller(name string) func() {
	cfg := resource.Config{
		TrustJournal: true,
		Credential:   m.cast.Credential(name), Properties: protocol.Properties{OS: "Linux", Arch: "x86_64", Cores: 1 << 16},
		Price: pricing.Band{Start: 40 * protocol.Credit, Min: 20 * protocol.Credit}, Terms: []protocol.Terms{m.cast.Terms()},
		Heartbeat: time.Hour, TTL: time.Hour, BuyerCoreSeconds: 1 << 60,
	}
	batch, err := swf.Open(swf.Config{
		Agent: cfg.Credential.ID, Log: &workload.Log{Comments: []string{" MaxProcs: 65536"}}, Dir: m.b.TempDir(), Now: time.Now, Slog: slog.New(slog.DiscardHandler),
	})
	m.must(err)
	begin := m.agent(name, m.journal(name), batch.Send, func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
		return resource.New(cfg, t, now)
	})
	return func() {
		begin()
		m.wg.Go(func() {
			_ = batch.Run(m.ctx, func(msg protocol.Message) { _ = m.runs[cfg.Credential.ID].Deliver(msg) })
		})
	}
}

// agent makes the Runner of an agent; what it returns starts it.
func (m *benchMarket) agent(name string, s agents.Store, queue func(protocol.Message), load func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error)) func() {
	id := m.cast.ID(name)
	cfg := agents.Config{
		Load: load, Store: s, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Unavailable: func(msg protocol.Message) (protocol.Message, bool) { return msg, false },
		Route: func(msg protocol.Message) {
			for _, to := range msg.Receivers {
				m.route(id, to, msg, queue)
			}
		},
	}
	if name == markettest.Bank {
		cfg.Prepare = func(msg protocol.Message) { _, _ = m.signer.Sign(msg, time.Now()) }
	}
	m.runs[id] = agents.NewRunner(cfg)
	return func() { m.wg.Go(func() { _ = m.runs[id].Run(m.ctx) }) }
}

func (m *benchMarket) route(from, to protocol.AgentID, msg protocol.Message, queue func(protocol.Message)) {
	switch to {
	case protocol.LocalQueue:
		queue(msg)
	case protocol.LocalControl:
		if p := msg.Body.(message.Progress); p.Done || p.Event == "approval" {
			m.done <- p.Purchase
		}
	case protocol.LocalHistory: // nobody looks up old receipts here
	case protocol.Everyone:
		for other := range m.runs {
			if other != from {
				m.link(from, other) <- msg
			}
		}
	default:
		m.link(from, to) <- msg
	}
}

// link is the way from one agent to another: one goroutine encodes, one opens.
func (m *benchMarket) link(from, to protocol.AgentID) chan protocol.Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := [2]protocol.AgentID{from, to}
	if l := m.links[key]; l != nil {
		return l
	}
	l, wire := make(chan protocol.Message, 256), make(chan []byte, 256)
	m.links[key] = l
	m.wg.Go(func() { m.encode(from, l, wire) })
	m.wg.Go(func() { m.open(from, to, wire) })
	return l
}

func (m *benchMarket) encode(from protocol.AgentID, l chan protocol.Message, wire chan []byte) {
	defer close(wire)
	for {
		select {
		case msg := <-l:
			var err error
			if from == m.cast.ID(markettest.Bank) {
				msg, err = m.signer.Sign(msg, time.Now())
				m.must(err)
			}
			bytes, err := codec.Encode(msg)
			m.must(err)
			wire <- bytes
		case <-m.ctx.Done():
			return
		}
	}
}

func (m *benchMarket) open(from, to protocol.AgentID, wire chan []byte) {
	opener := codec.NewOpener(m.cast.Trust, 64)
	for bytes := range wire {
		msg, err := opener.Open(bytes, from, time.Now())
		m.must(err)
		if m.runs[to].Deliver(msg) != nil {
			return
		}
	}
}

// fund opens the accounts, and waits until the user knows every seller.
func (m *benchMarket) fund(sellers int) {
	m.must(m.runs[m.cast.ID(markettest.Bank)].Do(m.ctx, func(now time.Time, r agents.Role) protocol.Output {
		var out protocol.Output
		for i := range sellers + 1 {
			name := markettest.User
			if i > 0 {
				name = markettest.Seller(i)
			}
			_, o, err := r.(*bank.Role).OpenAccount(now, m.cast.ID(name), name, 0)
			m.must(err)
			out = out.Join(o)
		}
		_, o, err := r.(*bank.Role).Credit(now, m.cast.ID(markettest.User), "CRD", 1_000_000_000*protocol.Credit, "bench")
		m.must(err)
		return out.Join(o)
	}))
	for known := 0; known < sellers; {
		m.must(m.runs[m.cast.ID(markettest.User)].Do(m.ctx, func(now time.Time, r agents.Role) protocol.Output {
			known = len(r.(*user.Role).Known(now, protocol.KindResource))
			return protocol.Output{}
		}))
	}
}

// buy buys a unit of so many cores that each seller can serve one, and waits.
func (m *benchMarket) buy(id string, sellers int) message.Purchase {
	var d rfql.Draft
	from := time.Now().Add(time.Hour).Truncate(time.Second)
	for range sellers {
		d.Requests = append(d.Requests, rfql.DraftRequest{
			Price: 60 * protocol.Credit, TotalCores: 40000, NotBefore: from, End: from.Add(6 * 24 * time.Hour), Wall: time.Minute,
		})
	}
	doc, err := rfql.Check(d, time.Now())
	m.must(err)
	order := message.Buy{ID: id, Name: id, Document: doc.XML(), Options: message.Options{Rounds: 1}}
	m.must(m.runs[m.cast.ID(markettest.User)].Do(m.ctx, func(now time.Time, r agents.Role) protocol.Output {
		return r.Receive(now, protocol.Message{Sender: protocol.LocalControl, Body: order})
	}))
	p := <-m.done
	if !p.Settled {
		m.b.Fatalf("%s: %s %v %v", p.State, p.Why, p.Reasons, p.Violations)
	}
	return p
}

// threeCommits is how long three bbolt transactions in a row take, in ms.
func (m *benchMarket) threeCommits(db *bbolt.DB) float64 {
	begun := time.Now()
	for j := range 3 {
		m.must(db.Update(func(tx *bbolt.Tx) error {
			bucket, err := tx.CreateBucketIfNotExists([]byte("b"))
			if err != nil {
				return err
			}
			return bucket.Put(fmt.Appendf(nil, "%d-%d", begun.UnixNano(), j), make([]byte, 1024))
		}))
	}
	return float64(time.Since(begun).Microseconds()) / 1000
}

// Package bench measures a bank, its ledger and file staging, each beside a baseline
// measured in the same run. It prints nothing but progress.
package bench

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ramp/agents"
	"ramp/agents/config"
	"ramp/agents/exit"
	"ramp/agents/node"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
	"ramp/protocol/codec"
)

// BankFigures is one row of results; the names are fixed.
type BankFigures struct {
	Clients       int     `json:"clients"`
	PerSecond     float64 `json:"per_second"`                 // verified bundles in, durable outcomes out
	BatchPerSec   float64 `json:"bbolt_batch_per_second"`     // bbolt's own Batch of as many bytes
	Signed        float64 `json:"signed_per_second"`          // wire bytes in, signed receipts out
	Signed25      float64 `json:"signed_25_units_per_second"` // the same, of sales of 25 units
	SignatureOnly float64 `json:"signature_only_per_second"`  // two verifications and one signature, nothing else
	Fsync         float64 `json:"fsync_median_ms"`
	Etcd          float64 `json:"etcd_per_second,omitempty"`       // as per_second, with the ledger in the cluster of --store
	EtcdNaive     float64 `json:"etcd_naive_per_second,omitempty"` // transfers there, one transaction for each
}

// BankBench is one run.
type BankBench struct {
	Log      io.Writer // reports what is being measured
	Dir      string
	Accounts int
	Entries  int
	Time     time.Duration
	keys     *benchKeys
	runner   *agents.Runner
	store    failing
	past     *ledgerdb.DB
	answers  sync.Map // conversation -> chan protocol.Message
	sample   *sample
	cluster  *clusterBench // nil: without a cluster
}

// benchCurrency is the currency of the accounts.
const benchCurrency = "CPU"

func (b *BankBench) Run(ctx context.Context, clients []int, hosts []string) (figures []BankFigures, err error) {
	memory, err := ledgerdb.InMemory(b.Dir)
	if err != nil {
		return nil, exit.Fail(exit.Usage, "", "--dir: %w", err)
	}
	if memory {
		return nil, exit.Fail(exit.Usage, "give --dir on a disk", "%s is in memory: nothing there is durable", b.Dir)
	}
	if b.Dir, err = os.MkdirTemp(b.Dir, "ramp-bench-"); err != nil {
		return nil, exit.Fail(exit.Usage, "", "--dir: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.Dir)) }()
	if b.keys, err = newBenchKeys(b.Accounts, time.Now()); err != nil {
		return nil, err
	}
	if len(hosts) > 0 { // first, so that an error appears at once
		if b.cluster, err = b.openCluster(ctx, hosts); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, b.cluster.close(ctx)) }()
	}
	db, err := ledgerdb.Open(filepath.Join(b.Dir, config.LedgerName))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	stop := b.start(ctx, db, db)
	defer func() { err = errors.Join(err, stop()) }()
	if err := b.fill(ctx); err != nil {
		return nil, err
	}
	return b.rows(ctx, clients)
}

// rows measures a row for each number of clients.
func (b *BankBench) rows(ctx context.Context, clients []int) ([]BankFigures, error) {
	figures := []BankFigures{}
	for _, n := range clients {
		f, err := b.measure(ctx, n)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		figures = append(figures, f)
	}
	return figures, nil
}

func (b *BankBench) measure(ctx context.Context, clients int) (BankFigures, error) {
	f := BankFigures{Clients: clients}
	fmt.Fprintf(b.Log, "measuring %d clients\n", clients)
	batch, err := b.openCopy(clients)
	if err != nil {
		return f, err
	}
	defer batch.Close() //nolint:errcheck // a copy that is thrown away
	signed, err := b.prepare(ctx, 1, signedMost)
	if err != nil {
		return f, err
	}
	signed25, err := b.prepare(ctx, 25, signedMost/2)
	if err != nil {
		return f, err
	}
	phases := []phase{
		{&f.PerSecond, func() (int64, time.Duration, error) { return b.verified(ctx, clients) }},
		{&f.BatchPerSec, func() (int64, time.Duration, error) { return b.bboltBatch(ctx, batch, clients) }},
		{&f.Signed, func() (int64, time.Duration, error) { return b.together(ctx, clients, signed.settle) }},
		{&f.Signed25, func() (int64, time.Duration, error) { return b.together(ctx, clients, signed25.settle) }},
		{&f.SignatureOnly, func() (int64, time.Duration, error) { return b.signatureOnly(ctx, clients) }},
	}
	if b.cluster != nil {
		phases = append(phases, b.cluster.phases(ctx, clients, &f)...)
	}
	if err := inTurns(phases); err != nil {
		return f, err
	}
	f.Fsync, err = fsyncMedian(filepath.Join(b.Dir, "fsync"))
	return f, err
}

// phase is one measurement: how often it ran, and for how long.
type phase struct {
	rate *float64 // per second, of all turns
	run  func() (int64, time.Duration, error)
}

// benchTurns is how many turns a measurement takes, so that a machine that becomes slower
// or faster affects the baselines too.
const benchTurns = 5

func inTurns(phases []phase) error {
	counts, took := make([]int64, len(phases)), make([]time.Duration, len(phases))
	for range benchTurns {
		for i, p := range phases {
			n, t, err := p.run()
			if err != nil {
				return err
			}
			counts[i] += n
			took[i] += t
		}
	}
	for i, p := range phases {
		*p.rate = float64(counts[i]) / took[i].Seconds()
	}
	return nil
}

// signedMost is how many signed bundles are prepared per second of measurement: more than
// two cores verify.
const signedMost = 8000

// errEnough ends a measurement early, because all prepared bundles are used up.
var errEnough = errors.New("enough")

// together runs clients concurrently for a turn of a measurement, each at least once, and
// counts their successes.
func (b *BankBench) together(ctx context.Context, clients int, once func(client int) error) (int64, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, b.Time/benchTurns)
	defer cancel()
	var n atomic.Int64
	errs := make([]error, clients)
	var wg sync.WaitGroup
	begun := time.Now()
	for i := range clients {
		wg.Go(func() {
			for first := true; first || ctx.Err() == nil; first = false {
				if err := once(i); err != nil {
					errs[i] = err
					return
				}
				n.Add(1)
			}
		})
	}
	wg.Wait()
	took := time.Since(begun)
	errs = slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, errEnough) })
	return n.Load(), took, cmp.Or(errs...) // of many that say the same, one
}

// verified settles bundles that count as verified, and keeps the role's records for bbolt's batch.
func (b *BankBench) verified(ctx context.Context, clients int) (int64, time.Duration, error) {
	if err := b.turn(ctx, true); err != nil {
		return 0, 0, err
	}
	n, took, err := b.together(ctx, clients, func(int) error { return b.settleVerified() })
	return n, took, errors.Join(err, b.turn(ctx, false))
}

// settleVerified passes one verified copy to the role and waits for the durable outcome.
func (b *BankBench) settleVerified() error {
	return b.await(b.settlement(b.keys.bundle(time.Now())), func(protocol.Message) error { return nil })
}

// signedWires are copies as they come over a wire, each settled once.
type signedWires struct {
	bench  *BankBench
	opener codec.Opener
	list   []wireBundle
	next   atomic.Int64
}

// prepare signs copies of bundles with as many units of one seller, so many per second of
// measurement.
func (b *BankBench) prepare(ctx context.Context, units int, perSecond float64) (*signedWires, error) {
	list, err := b.keys.wires(ctx, int(b.Time.Seconds()*perSecond), units)
	return &signedWires{bench: b, opener: codec.NewOpener(b.keys.trust, node.VerifiedBundles), list: list}, err
}

// settle opens wire bytes, settles, and signs and encodes the receipt.
func (s *signedWires) settle(int) error {
	i := s.next.Add(1) - 1
	if i >= int64(len(s.list)) {
		return errEnough
	}
	w := s.list[i]
	m, err := s.opener.Open(w.bytes, w.seller, time.Now())
	if err != nil {
		return err
	}
	return s.bench.await(m, func(answer protocol.Message) error {
		_, err := codec.Seal(s.bench.keys.bank, answer, time.Now())
		return err
	})
}

// signatureOnly repeatedly verifies two signatures and makes one.
func (b *BankBench) signatureOnly(ctx context.Context, clients int) (int64, time.Duration, error) {
	digest := sha256.Sum256([]byte("bench"))
	signer := b.keys.bank.Signer()
	sig, err := signer.Sign(nil, digest[:], cryptoSHA256)
	if err != nil {
		return 0, 0, err
	}
	pub, ok := signer.Public().(*ecdsa.PublicKey)
	if !ok {
		return 0, 0, fmt.Errorf("bench: bank's key is a %T", signer.Public())
	}
	return b.together(ctx, clients, func(int) error {
		for range 2 {
			if !ecdsa.VerifyASN1(pub, digest[:], sig) {
				return errors.New("bench: a good signature was refused")
			}
		}
		_, err := signer.Sign(nil, digest[:], cryptoSHA256)
		return err
	})
}

// fsyncMedian is the median time of appending 4 KiB and making it durable.
func fsyncMedian(path string) (float64, error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var times []time.Duration
	for range 200 {
		begun := time.Now()
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		times = append(times, time.Since(begun))
	}
	return Quantile(times, 0.5), nil
}

// BankRows is the table of the figures, with those of a cluster.
func BankRows(figures []BankFigures, cluster bool) [][]string {
	rows := [][]string{{"clients", "bundles per s", "bbolt batch per s", "signed per s", "of 25 units", "signatures only per s", "fsync ms"}}
	if cluster {
		rows[0] = append(rows[0], "etcd per s", "etcd naive per s")
	}
	for _, f := range figures {
		row := []string{
			fmt.Sprint(f.Clients), fmt.Sprintf("%.0f", f.PerSecond), fmt.Sprintf("%.0f", f.BatchPerSec),
			fmt.Sprintf("%.0f", f.Signed), fmt.Sprintf("%.0f", f.Signed25), fmt.Sprintf("%.0f", f.SignatureOnly), Millis(f.Fsync),
		}
		if cluster {
			row = append(row, fmt.Sprintf("%.0f", f.Etcd), fmt.Sprintf("%.0f", f.EtcdNaive))
		}
		rows = append(rows, row)
	}
	return rows
}

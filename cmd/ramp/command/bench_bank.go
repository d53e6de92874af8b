package command

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents"
	"ramp/bank/ledger"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
	"ramp/protocol/codec"
)

// bankFigures are the figures of one row; the names are fixed.
type bankFigures struct {
	Clients       int     `json:"clients"`
	PerSecond     float64 `json:"per_second"`                // verified bundles in, durable outcomes out
	BatchPerSec   float64 `json:"bbolt_batch_per_second"`    // bbolt's own Batch of as many bytes
	Signed        float64 `json:"signed_per_second"`         // wire bytes in, signed receipts out
	SignatureOnly float64 `json:"signature_only_per_second"` // two verifications and one signature, nothing else
	Fsync         float64 `json:"fsync_median_ms"`
	Etcd          float64 `json:"etcd_per_second,omitempty"`       // as per_second, with the ledger in the cluster of --store
	EtcdNaive     float64 `json:"etcd_naive_per_second,omitempty"` // transfers there, one transaction for each
}

// bankBench is one run.
type bankBench struct {
	c        *cobra.Command
	dir      string
	accounts int
	entries  int
	time     time.Duration
	keys     *benchKeys
	runner   *agents.Runner
	store    failing
	answers  sync.Map // conversation -> chan protocol.Message
	sample   *sample
	cluster  *clusterBench // nil: none is measured
}

// benchCurrency is what the benchmark's accounts are in.
const benchCurrency = "CPU"

func newBenchBank() *cobra.Command {
	var b bankBench
	var clients, store string
	c := &cobra.Command{
		Use: "bank", Short: "Settlements per second of one bank", Args: cobra.NoArgs,
		Long: `Settles bundles at the bank's role, with its ledger on this disk: durable outcomes per
second, with many accounts and entries in the ledger already. bbolt_batch puts the very
same records, bundle by bundle, into a copy of the same file by bbolt's own Batch; signed
goes from bytes on the wire to a signed receipt; signature_only does nothing but the same
signatures on all cores. They are measured in turns, a fifth of --time each, so that a
machine that becomes slower meanwhile does so for all of them.

With --store the same bank settles with its ledger in an etcd cluster as well (etcd), and
balances there are moved by one transaction for each transfer (etcd_naive). What this
writes to the cluster is removed at the end.`,
		RunE: func(c *cobra.Command, _ []string) error {
			b.c = c
			list, err := parseCounts("--clients", clients, 4096)
			if err != nil {
				return err
			}
			hosts, err := clusterHosts(store)
			if err != nil {
				return err
			}
			if b.accounts < 2 || b.accounts >= ledger.MaxAccounts || b.entries < 0 || b.time <= 0 {
				return fail(exitUsage, "", "--accounts %d, --entries %d, --time %s: want 2..%d, at least 0 and more than 0s", b.accounts, b.entries, b.time, ledger.MaxAccounts-1)
			}
			return b.run(c.Context(), list, hosts)
		},
	}
	f := c.Flags()
	f.StringVar(&clients, "clients", "1,64,256", "clients at once, several with commas between")
	f.IntVar(&b.accounts, "accounts", 10_000, "accounts of the bank")
	f.IntVar(&b.entries, "entries", 1_000_000, "entries that the ledger has before")
	durationVar(f, &b.time, "time", 10*time.Second, "time of each measurement, in five turns")
	f.StringVar(&b.dir, "dir", ".", "directory on the disk to measure; a memory file system is refused")
	f.StringVar(&store, "store", "", "measure a ledger in this etcd cluster as well: etcd:HOST,HOST")
	return c
}

func (b *bankBench) run(ctx context.Context, clients []int, hosts []string) (err error) {
	memory, err := ledgerdb.InMemory(b.dir)
	if err != nil {
		return fail(exitUsage, "", "--dir: %w", err)
	}
	if memory {
		return fail(exitUsage, "give --dir on a disk", "%s is in memory: nothing there is durable", b.dir)
	}
	if b.dir, err = os.MkdirTemp(b.dir, "ramp-bench-"); err != nil {
		return fail(exitUsage, "", "--dir: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.keys, err = newBenchKeys(b.accounts, time.Now()); err != nil {
		return err
	}
	if len(hosts) > 0 { // first: who does not answer is told at once
		if b.cluster, err = b.openCluster(ctx, hosts); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.cluster.close(ctx)) }()
	}
	db, err := ledgerdb.Open(filepath.Join(b.dir, ledgerName))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	stop := b.start(ctx, db)
	defer func() { err = errors.Join(err, stop()) }()
	if err := b.fill(ctx); err != nil {
		return err
	}
	return b.rows(ctx, clients)
}

// rows measures and prints a row for each number of clients.
func (b *bankBench) rows(ctx context.Context, clients []int) error {
	figures := []bankFigures{}
	for _, n := range clients {
		f, err := b.measure(ctx, n)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		figures = append(figures, f)
	}
	return b.print(figures)
}

// measure takes one row.
func (b *bankBench) measure(ctx context.Context, clients int) (bankFigures, error) {
	f := bankFigures{Clients: clients}
	fmt.Fprintf(stderr(b.c), "measuring %d clients\n", clients)
	batch, err := b.openCopy(clients)
	if err != nil {
		return f, err
	}
	defer batch.Close() //nolint:errcheck // a copy that is thrown away
	wires, err := b.keys.wires(ctx, int(b.time.Seconds()*signedMost))
	if err != nil {
		return f, err
	}
	signed := &signedWires{bench: b, opener: codec.NewOpener(b.keys.trust, verifiedBundles), list: wires}
	phases := []phase{
		{&f.PerSecond, func() (int64, time.Duration, error) { return b.verified(ctx, clients) }},
		{&f.BatchPerSec, func() (int64, time.Duration, error) { return b.bboltBatch(ctx, batch, clients) }},
		{&f.Signed, func() (int64, time.Duration, error) { return b.together(ctx, clients, signed.settle) }},
		{&f.SignatureOnly, func() (int64, time.Duration, error) { return b.signatureOnly(ctx, clients) }},
	}
	if b.cluster != nil {
		phases = append(phases, b.cluster.phases(ctx, clients, &f)...)
	}
	if err := inTurns(phases); err != nil {
		return f, err
	}
	f.Fsync, err = fsyncMedian(filepath.Join(b.dir, "fsync"))
	return f, err
}

// phase is something that is measured: how often it was done, and how long that took.
type phase struct {
	rate *float64 // per second, of all turns
	run  func() (int64, time.Duration, error)
}

// benchTurns is in how many turns the time of a measurement is spent. A machine that
// becomes slower or faster meanwhile does so for the baselines too.
const benchTurns = 5

// inTurns runs the phases one after the other, over and over.
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

// signedMost bounds the signed bundles prepared per second of measurement: above
// what two cores verify.
const signedMost = 8000

// errEnough ends a measurement before its time: what was prepared is used up.
var errEnough = errors.New("enough")

// together runs clients side by side for a turn of a measurement, each at least
// once, and counts what they did.
func (b *bankBench) together(ctx context.Context, clients int, once func(client int) error) (int64, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, b.time/benchTurns)
	defer cancel()
	var n atomic.Int64
	errs := make([]error, clients)
	var wg sync.WaitGroup
	begun := time.Now()
	for i := range clients {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for first := true; first || ctx.Err() == nil; first = false {
				if err := once(i); err != nil {
					errs[i] = err
					return
				}
				n.Add(1)
			}
		}()
	}
	wg.Wait()
	took := time.Since(begun)
	for _, err := range errs { // of many that say the same, one
		if err != nil && !errors.Is(err, errEnough) {
			return n.Load(), took, err
		}
	}
	return n.Load(), took, nil
}

// verified settles bundles that count as verified, and keeps what the role wants
// saved for bbolt's batch.
func (b *bankBench) verified(ctx context.Context, clients int) (int64, time.Duration, error) {
	if err := b.turn(ctx, true); err != nil {
		return 0, 0, err
	}
	n, took, err := b.together(ctx, clients, func(int) error { return b.settleVerified() })
	return n, took, errors.Join(err, b.turn(ctx, false))
}

// settleVerified hands the role one verified copy and waits for the durable
// outcome.
func (b *bankBench) settleVerified() error {
	return b.await(b.settlement(b.keys.bundle(time.Now())), func(protocol.Message) error { return nil })
}

// signedWires are copies as they come over a wire, each settled once.
type signedWires struct {
	bench  *bankBench
	opener codec.Opener
	list   []wireBundle
	next   atomic.Int64
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

// signatureOnly verifies two signatures and makes one, over and over.
func (b *bankBench) signatureOnly(ctx context.Context, clients int) (int64, time.Duration, error) {
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
	return quantile(times, 0.5), nil
}

func (b *bankBench) print(figures []bankFigures) error {
	if wantsJSON(b.c) {
		return printJSON(stdout(b.c), figures)
	}
	rows := [][]string{{"clients", "bundles per s", "bbolt batch per s", "signed per s", "signatures only per s", "fsync ms"}}
	if b.cluster != nil {
		rows[0] = append(rows[0], "etcd per s", "etcd naive per s")
	}
	for _, f := range figures {
		row := []string{
			fmt.Sprint(f.Clients), fmt.Sprintf("%.0f", f.PerSecond), fmt.Sprintf("%.0f", f.BatchPerSec),
			fmt.Sprintf("%.0f", f.Signed), fmt.Sprintf("%.0f", f.SignatureOnly), millis(f.Fsync),
		}
		if b.cluster != nil {
			row = append(row, fmt.Sprintf("%.0f", f.Etcd), fmt.Sprintf("%.0f", f.EtcdNaive))
		}
		rows = append(rows, row)
	}
	table(stdout(b.c), rows...)
	return nil
}

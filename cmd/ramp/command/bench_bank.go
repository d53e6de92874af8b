package command

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents"
	"ramp/agents/bank"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/message"
)

// bankFigures are the figures of one row; the names are fixed.
type bankFigures struct {
	Clients       int     `json:"clients"`
	PerSecond     float64 `json:"per_second"`                // verified bundles in, durable outcomes out
	BatchPerSec   float64 `json:"bbolt_batch_per_second"`    // bbolt's own Batch of as many bytes
	Signed        float64 `json:"signed_per_second"`         // wire bytes in, signed receipts out
	SignatureOnly float64 `json:"signature_only_per_second"` // two verifications and one signature, nothing else
	Fsync         float64 `json:"fsync_median_ms"`
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
	answers  sync.Map // conversation -> chan protocol.Message
	sample   *sample
}

// benchCurrency is what the benchmark's accounts are in.
const benchCurrency = "CPU"

func newBenchBank() *cobra.Command {
	var b bankBench
	var clients string
	c := &cobra.Command{
		Use: "bank", Short: "Settlements per second of one bank", Args: cobra.NoArgs,
		Long: `Settles bundles at the bank's role, with its ledger on this disk: durable outcomes per
second, with many accounts and entries in the ledger already. bbolt_batch puts the very
same records, bundle by bundle, into a copy of the same file by bbolt's own Batch; signed
goes from bytes on the wire to a signed receipt; signature_only does nothing but the same
signatures on all cores.`,
		RunE: func(c *cobra.Command, _ []string) error {
			b.c = c
			list, err := parseCounts("--clients", clients, 4096)
			if err != nil {
				return err
			}
			if b.accounts < 2 || b.entries < 0 || b.time <= 0 {
				return fail(exitUsage, "", "--accounts %d, --entries %d, --time %s: want at least 2, 0 and more than 0s", b.accounts, b.entries, b.time)
			}
			return b.run(c.Context(), list)
		},
	}
	f := c.Flags()
	f.StringVar(&clients, "clients", "1,64,256", "clients at once, several with commas between")
	f.IntVar(&b.accounts, "accounts", 10_000, "accounts of the bank")
	f.IntVar(&b.entries, "entries", 1_000_000, "entries that the ledger has before")
	f.DurationVar(&b.time, "time", 10*time.Second, "time of each measurement")
	f.StringVar(&b.dir, "dir", ".", "directory on the disk to measure; a memory file system is refused")
	return c
}

func (b *bankBench) run(ctx context.Context, clients []int) (err error) {
	memory, err := ledgerdb.InMemory(b.dir)
	if err != nil {
		return fail(exitUsage, "", "--dir: %w", err)
	}
	if memory {
		return fail(exitUsage, "give --dir on a disk", "%s is in memory: nothing there is durable", b.dir)
	}
	if b.dir, err = os.MkdirTemp(b.dir, "ramp-bench-"); err != nil {
		return fail(exitUsage, "", "%w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.keys, err = newBenchKeys(b.accounts, time.Now()); err != nil {
		return err
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
	figures := []bankFigures{}
	for _, n := range clients {
		f, err := b.measure(ctx, n)
		if err != nil {
			return err
		}
		figures = append(figures, f)
	}
	return b.print(figures)
}

// start runs a bank's role as 'bank serve' does, without a network.
func (b *bankBench) start(ctx context.Context, s agents.Store) (stop func() error) {
	cfg := bank.Config{ID: b.keys.bank.ID, Currencies: []string{benchCurrency}, Heartbeat: time.Hour}
	b.runner = agents.NewRunner(agents.Config{
		Load: func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
			role, out, err := bank.New(cfg, t, now)
			b.sample = &sample{Role: role}
			return b.sample, out, err
		},
		Store: s, Route: b.answer, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Unavailable: func(m protocol.Message) (protocol.Message, bool) { return m, false },
	})
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- b.runner.Run(ctx) }()
	return func() error { cancel(); return <-done }
}

// answer brings a decision to the client that waits for it.
func (b *bankBench) answer(m protocol.Message) {
	if c, ok := b.answers.LoadAndDelete(m.Conversation); ok {
		c.(chan protocol.Message) <- m
	}
}

// fill opens the accounts, gives them money and settles bundles until the ledger
// has its entries.
func (b *bankBench) fill(ctx context.Context) error {
	err := b.runner.Do(ctx, func(now time.Time, r agents.Role) protocol.Output {
		var out protocol.Output
		for i, id := range b.keys.accounts {
			_, o, err := r.(*sample).Role.(*bank.Role).OpenAccount(now, id, fmt.Sprintf("account%d", i), 0)
			if err != nil {
				panic(fmt.Sprintf("bench: open account: %v", err)) // a new ledger refuses none
			}
			_, c, err := r.(*sample).Role.(*bank.Role).Credit(now, id, benchCurrency, 1_000_000*protocol.Credit, "")
			if err != nil {
				panic(fmt.Sprintf("bench: credit: %v", err)) // likewise
			}
			out = out.Join(o).Join(c)
		}
		return out
	})
	if err != nil {
		return err
	}
	const chunk = 4000
	for done := 2 * b.accounts; done < b.entries; done += chunk {
		err := b.runner.Do(ctx, func(now time.Time, r agents.Role) protocol.Output {
			var out protocol.Output
			for range chunk {
				o := r.Receive(now, b.settlement(b.keys.bundle(now)))
				out.Save = append(out.Save, o.Save...)
			}
			return out
		})
		if err != nil {
			return err
		}
		if done%(25*chunk) < chunk {
			fmt.Fprintf(stderr(b.c), "filling the ledger: %d of %d entries\n", done, b.entries)
		}
	}
	return nil
}

// settlement is a request with a copy that was verified: the role trusts what
// reaches it, and so its own speed can be measured apart from signatures.
func (b *bankBench) settlement(s message.Settlement) protocol.Message {
	return protocol.Message{
		Performative: protocol.Request, Sender: s.Sale.Seller.ID, Receivers: []protocol.AgentID{b.keys.bank.ID},
		Protocol: protocol.ProtocolRequest, Conversation: s.Sale.Bundle.Conversation, ReplyWith: "settle", Body: s,
	}
}

// measure takes one row.
func (b *bankBench) measure(ctx context.Context, clients int) (bankFigures, error) {
	f := bankFigures{Clients: clients}
	fmt.Fprintf(stderr(b.c), "measuring %d clients\n", clients)
	if err := b.copyLedger(); err != nil {
		return f, err
	}
	if err := b.turn(ctx, true); err != nil {
		return f, err
	}
	n, took, err := b.together(ctx, clients, func(int) error { return b.settleVerified() })
	if err != nil {
		return f, err
	}
	f.PerSecond = float64(n) / took.Seconds()
	if err := b.turn(ctx, false); err != nil {
		return f, err
	}
	if f.BatchPerSec, err = b.bboltBatch(ctx, clients); err != nil {
		return f, err
	}
	wires, err := b.keys.wires(int(b.time.Seconds() * signedMost))
	if err != nil {
		return f, err
	}
	var next atomic.Int64
	opener := codec.NewOpener(b.keys.trust, verifiedBundles)
	n, took, err = b.together(ctx, clients, func(int) error {
		i := next.Add(1) - 1
		if i >= int64(len(wires)) {
			return errEnough
		}
		return b.settleSigned(opener, wires[i])
	})
	if err != nil {
		return f, err
	}
	f.Signed = float64(n) / took.Seconds()
	if f.SignatureOnly, err = b.signatureOnly(ctx, clients); err != nil {
		return f, err
	}
	f.Fsync, err = fsyncMedian(filepath.Join(b.dir, "fsync"))
	return f, err
}

// signedMost bounds the signed bundles prepared per second of measurement: above
// what two cores verify.
const signedMost = 8000

// errEnough ends a measurement before its time: what was prepared is used up.
var errEnough = errors.New("enough")

// together runs clients side by side for the time of a measurement and counts
// what they did.
func (b *bankBench) together(ctx context.Context, clients int, once func(client int) error) (int64, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, b.time)
	defer cancel()
	var n atomic.Int64
	errs := make([]error, clients)
	var wg sync.WaitGroup
	begun := time.Now()
	for i := range clients {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for ctx.Err() == nil {
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
	for i, err := range errs {
		if errors.Is(err, errEnough) {
			errs[i] = nil
		}
	}
	return n.Load(), took, errors.Join(errs...)
}

// settleVerified hands the role one verified copy and waits for the durable
// outcome.
func (b *bankBench) settleVerified() error {
	return b.await(b.settlement(b.keys.bundle(time.Now())), func(protocol.Message) error { return nil })
}

// settleSigned opens wire bytes, settles, and signs and encodes the receipt.
func (b *bankBench) settleSigned(opener codec.Opener, w wireBundle) error {
	m, err := opener.Open(w.bytes, w.seller, time.Now())
	if err != nil {
		return err
	}
	return b.await(m, func(answer protocol.Message) error {
		_, err := codec.Seal(b.keys.bank, answer, time.Now())
		return err
	})
}

// await sends the role a request and takes its answer.
func (b *bankBench) await(m protocol.Message, take func(protocol.Message) error) error {
	c := make(chan protocol.Message, 1)
	b.answers.Store(m.Conversation, c)
	if err := b.runner.Deliver(m); err != nil {
		return err
	}
	answer := <-c
	d, ok := answer.Body.(message.Decision)
	if !ok || d.Outcome != protocol.OutcomeSettled {
		return fmt.Errorf("bench: a bundle was not settled: %+v", answer.Body)
	}
	return take(answer)
}

// signatureOnly verifies two signatures and makes one, over and over.
func (b *bankBench) signatureOnly(ctx context.Context, clients int) (float64, error) {
	digest := sha256.Sum256([]byte("bench"))
	signer := b.keys.bank.Signer()
	sig, err := signer.Sign(nil, digest[:], cryptoSHA256)
	if err != nil {
		return 0, err
	}
	pub, ok := signer.Public().(*ecdsa.PublicKey)
	if !ok {
		return 0, fmt.Errorf("bench: bank's key is a %T", signer.Public())
	}
	n, took, err := b.together(ctx, clients, func(int) error {
		for range 2 {
			if !ecdsa.VerifyASN1(pub, digest[:], sig) {
				return errors.New("bench: a good signature was refused")
			}
		}
		_, err := signer.Sign(nil, digest[:], cryptoSHA256)
		return err
	})
	return float64(n) / took.Seconds(), err
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
	for _, f := range figures {
		rows = append(rows, []string{
			fmt.Sprint(f.Clients), fmt.Sprintf("%.0f", f.PerSecond), fmt.Sprintf("%.0f", f.BatchPerSec),
			fmt.Sprintf("%.0f", f.Signed), fmt.Sprintf("%.0f", f.SignatureOnly), millis(f.Fsync),
		})
	}
	table(stdout(b.c), rows...)
	return nil
}

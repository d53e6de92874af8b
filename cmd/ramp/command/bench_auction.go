package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/bbolt"

	"ramp/protocol/identity"
)

// auctionFigures are the figures of one row; the names are fixed. An auction is
// first call for proposals to award; vote and settlement are apart.
type auctionFigures struct {
	Buyers        int     `json:"buyers"`
	Rounds        int     `json:"rounds"`
	Sellers       int     `json:"sellers"`
	Median        float64 `json:"median_ms"`
	P95           float64 `json:"p95_ms"`
	PerSecond     float64 `json:"per_second"`
	Messages      float64 `json:"messages"` // per auction, sent and received by the buyer
	Bytes         float64 `json:"bytes"`    // likewise
	BareMedian    float64 `json:"bare_median_ms"`
	BarePerSecond float64 `json:"bare_per_second"`
	BareMessages  float64 `json:"bare_messages"`
	BareBytes     float64 `json:"bare_bytes"`
	Vote          float64 `json:"vote_median_ms"`
	Settle        float64 `json:"settle_median_ms"`
	ThreeCommits  float64 `json:"three_commits_median_ms"`
}

// auctionBench is one run.
type auctionBench struct {
	c       *cobra.Command
	market  demo // the same agents, brought up the same way
	sellers int
	time    time.Duration
	buyers  []*benchBuyer
}

func newBenchAuction() *cobra.Command {
	var b auctionBench
	var rounds, buyers, dir string
	c := &cobra.Command{
		Use: "auction", Short: "Auctions per second and their time, on real processes", Args: cobra.NoArgs,
		Long: `Brings up a bank, sellers and buyers, each its own process, and lets the buyers hold
auctions without pause. 'bare' is the same number and size of messages between the
same processes over streams kept in the same way, without encoding, logic, signature
or disk. vote and settle are those of whole purchases by one buyer; three_commits are
three bbolt transactions one after the other.`,
		RunE: func(c *cobra.Command, _ []string) error {
			b.c = c
			rs, err := parseCounts("--rounds", rounds, 100)
			if err != nil {
				return err
			}
			bs, err := parseCounts("--buyers", buyers, 64)
			if err != nil {
				return err
			}
			if b.time <= 0 {
				return fail(exitUsage, "", "--time %s: want more than 0s", b.time)
			}
			if b.sellers < 1 || b.sellers > len(demoSites()) {
				return fail(exitUsage, "", "--sellers %d: want 1..%d", b.sellers, len(demoSites()))
			}
			b.market = demo{c: c, dir: dir, quiet: true, count: b.sellers, bare: true}
			return b.run(c.Context(), rs, bs)
		},
	}
	f := c.Flags()
	f.IntVar(&b.sellers, "sellers", 20, "sellers")
	f.StringVar(&rounds, "rounds", "3,5", "rounds of bidding, several with commas between")
	f.StringVar(&buyers, "buyers", "1,4,16", "buyers at once, several with commas between")
	durationVar(f, &b.time, "time", 5*time.Second, "time of each measurement")
	f.StringVar(&dir, "dir", "", "keep all state in this directory (default: a temporary one)")
	return c
}

func (b *auctionBench) run(ctx context.Context, rounds, buyers []int) (err error) {
	made, err := b.market.makeDir()
	if err != nil {
		return err
	}
	defer func() {
		for _, x := range b.buyers {
			err = errors.Join(err, x.end())
		}
		err = errors.Join(err, b.market.takeDown())
		if made {
			err = errors.Join(err, os.RemoveAll(b.market.dir))
		}
	}()
	if err := b.market.openLogs(); err != nil {
		return err
	}
	b.market.begun = time.Now()
	if err := b.market.bringUp(ctx); err != nil {
		return err
	}
	figures := []auctionFigures{}
	for _, n := range buyers {
		if err := b.startBuyers(ctx, n); err != nil {
			return err
		}
		for _, r := range rounds {
			fmt.Fprintf(stderr(b.c), "measuring %d buyers, %d rounds\n", n, r)
			f, err := b.measure(n, r)
			if err != nil {
				return err
			}
			figures = append(figures, f)
		}
	}
	return b.print(figures)
}

// measure takes one row: auctions, the same bare, and at last some purchases.
func (b *auctionBench) measure(buyers, rounds int) (auctionFigures, error) {
	f := auctionFigures{Buyers: buyers, Rounds: rounds, Sellers: b.sellers}
	auctions, err := b.all(buyers, benchOrder{Mode: "auction", Rounds: rounds, Sellers: b.sellers, Time: b.time})
	if err != nil {
		return f, err
	}
	f.Median, f.P95, f.PerSecond = quantile(auctions.Times, 0.5), quantile(auctions.Times, 0.95), auctions.rate()
	f.Messages, f.Bytes = auctions.perRun(auctions.Out.Messages+auctions.In.Messages), auctions.perRun(auctions.Out.Bytes+auctions.In.Bytes)
	bare, err := b.all(buyers, benchOrder{Mode: "bare", Rounds: rounds, Sellers: b.sellers, Time: b.time, Like: auctions.sizes()})
	if err != nil {
		return f, err
	}
	f.BareMedian, f.BarePerSecond = quantile(bare.Times, 0.5), bare.rate()
	f.BareMessages, f.BareBytes = bare.perRun(bare.Out.Messages+bare.In.Messages), bare.perRun(bare.Out.Bytes+bare.In.Bytes)
	bought, err := b.all(1, benchOrder{Mode: "buy", Rounds: rounds, Sellers: b.sellers, Runs: 40})
	if err != nil {
		return f, err
	}
	f.Vote, f.Settle = quantile(bought.Votes, 0.5), quantile(bought.Settles, 0.5)
	f.ThreeCommits, err = threeCommits(filepath.Join(b.market.dir, "commits.db"))
	return f, err
}

// all gives every buyer the same order at once and sums what they report.
func (b *auctionBench) all(buyers int, o benchOrder) (benchReport, error) {
	for _, x := range b.buyers[:buyers] {
		if err := x.in.Encode(o); err != nil {
			return benchReport{}, err
		}
	}
	var sum benchReport
	for _, x := range b.buyers[:buyers] {
		var r benchReport
		if err := x.out.Decode(&r); err != nil {
			return sum, fail(exitFailed, "its log is "+filepath.Join(x.dir, "agent.log"), "buyer %s stopped: %w", x.dir, err)
		}
		if r.Error != "" {
			return sum, fail(exitFailed, "", "buyer %s: %s", x.dir, r.Error)
		}
		sum.add(r)
	}
	return sum, nil
}

func (b *auctionBench) print(figures []auctionFigures) error {
	if wantsJSON(b.c) {
		return printJSON(stdout(b.c), figures)
	}
	rows := [][]string{{"buyers", "rounds", "median ms", "p95", "per s", "bare ms", "bare per s", "messages", "bytes", "vote ms", "settle ms", "3 commits ms"}}
	for _, f := range figures {
		rows = append(rows, []string{
			fmt.Sprint(f.Buyers), fmt.Sprint(f.Rounds), millis(f.Median), millis(f.P95), fmt.Sprintf("%.0f", f.PerSecond),
			millis(f.BareMedian), fmt.Sprintf("%.0f", f.BarePerSecond), fmt.Sprintf("%.0f", f.Messages), fmt.Sprintf("%.0f", f.Bytes),
			millis(f.Vote), millis(f.Settle), millis(f.ThreeCommits),
		})
	}
	table(stdout(b.c), rows...)
	return nil
}

// threeCommits is the median time of three bbolt transactions in sequence.
func threeCommits(path string) (float64, error) {
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	var times []time.Duration
	for i := range 100 {
		begun := time.Now()
		for j := range 3 {
			err := db.Update(func(tx *bbolt.Tx) error {
				bucket, err := tx.CreateBucketIfNotExists([]byte("b"))
				if err != nil {
					return err
				}
				return bucket.Put(fmt.Appendf(nil, "%d-%d", i, j), make([]byte, 1024))
			})
			if err != nil {
				return 0, err
			}
		}
		times = append(times, time.Since(begun))
	}
	return quantile(times, 0.5), nil
}

// benchBuyer is a buyer in a process of its own.
type benchBuyer struct {
	dir string
	cmd *exec.Cmd
	w   io.Closer
	in  *json.Encoder
	out *json.Decoder
}

// startBuyers starts buyers until there are n, each with an account of its own.
func (b *auctionBench) startBuyers(ctx context.Context, n int) error {
	ca, err := b.market.authority()
	if err != nil {
		return err
	}
	for i := len(b.buyers); i < n; i++ {
		if err := b.startBuyer(ctx, ca, fmt.Sprintf("buyer%d", i+1)); err != nil {
			return err
		}
	}
	return nil
}

func (b *auctionBench) startBuyer(ctx context.Context, ca *identity.CA, name string) error {
	dir, err := b.market.agentDir(ca, name, config{User: &userConfig{Pay: b.market.pay()}})
	if err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, "agent.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(exe, "bench", "buyer", "--dir", dir)
	cmd.Stderr = log
	w, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	r, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	x := &benchBuyer{dir: dir, cmd: cmd, w: w, in: json.NewEncoder(w), out: json.NewDecoder(bufio.NewReader(r))}
	b.buyers = append(b.buyers, x)
	var up ready
	if err := x.out.Decode(&up); err != nil {
		return fail(exitFailed, "its log is "+filepath.Join(dir, "agent.log"), "buyer %s did not start: %w", name, err)
	}
	return b.market.fund(ctx, up.Agent, name)
}

func (x *benchBuyer) end() error {
	return errors.Join(x.w.Close(), x.cmd.Wait())
}

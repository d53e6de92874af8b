package lab

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"ramp/agents/background"
	"ramp/agents/workload/published"

	"github.com/spf13/cobra"

	"ramp/agents/bench"
	"ramp/agents/config"
	"ramp/agents/demo"
	"ramp/agents/exit"
	"ramp/cmd/ramp/cli"
)

// auctionFigures are the figures of one row; the names are fixed. An auction lasts from the first
// call for proposals to the award; vote and settlement are separate.
type auctionFigures struct {
	Buyers        int     `json:"buyers"`
	Concurrent    int     `json:"concurrent"` // auctions of each buyer at once
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

type auctionBench struct {
	c       *cobra.Command
	market  demo.Market // the same agents as in the demonstration
	sellers int
	atOnce  int
	time    time.Duration
	buyers  []*bench.Child
}

func newBenchAuction() *cobra.Command {
	var b auctionBench
	var rounds, buyers, dir string
	c := &cobra.Command{
		Use: "auction", Short: "Measure auctions per second and their latency, on real processes", Args: cobra.NoArgs,
		Long: `Start a bank, sellers and buyers, each in its own process, and let the buyers hold auctions
without pause. 'bare' sends messages of the same number and size between the same processes,
over streams kept open in the same way, without encoding, logic, signatures or disk. vote and
settle are those of whole purchases by one buyer; three_commits are three bbolt transactions in
a row.`,
		Example: "  ramp bench auction --sellers 20 --rounds 3,5 --buyers 1,4,16",
		RunE: func(c *cobra.Command, _ []string) error {
			b.c = c
			rs, err := bench.ParseCounts("--rounds", rounds, 100)
			if err != nil {
				return err
			}
			bs, err := bench.ParseCounts("--buyers", buyers, 64)
			if err != nil {
				return err
			}
			if b.time <= 0 {
				return exit.Fail(exit.Usage, "", "--time %s: want more than 0s", b.time)
			}
			if b.atOnce < 1 || b.atOnce > 64 {
				return exit.Fail(exit.Usage, "", "--concurrent %d: want 1..64", b.atOnce)
			}
			if b.sellers < 1 || b.sellers > len(published.Resources()) {
				return exit.Fail(exit.Usage, "", "--sellers %d: want 1..%d", b.sellers, len(published.Resources()))
			}
			b.market = demo.Market{Dir: dir, Out: demo.Silent{}, Count: b.sellers, Bare: true}
			return b.run(c.Context(), rs, bs)
		},
	}
	f := c.Flags()
	f.IntVar(&b.sellers, "sellers", 20, "sellers, 1..20")
	f.StringVar(&rounds, "rounds", "3,5", "rounds of bidding, a comma-separated `LIST`")
	f.StringVar(&buyers, "buyers", "1,4,16", "concurrent buyers, each 1..64, a comma-separated `LIST`")
	f.IntVar(&b.atOnce, "concurrent", 1, "auctions of each buyer at once, 1..64")
	cli.DurationVar(f, &b.time, "time", 5*time.Second, "duration of each measurement")
	f.StringVar(&dir, "dir", "", "keep all state in `DIR` (default: a temporary one)")
	return c
}

func (b *auctionBench) run(ctx context.Context, rounds, buyers []int) (err error) {
	made, err := b.market.Open(ctx)
	defer func() {
		for _, x := range b.buyers {
			err = errors.Join(err, x.End())
		}
		if ctx.Err() != nil {
			err = ctx.Err() // the buyers were killed
		}
		err = b.market.Close(ctx, made, err)
	}()
	if err != nil {
		return err
	}
	figures := []auctionFigures{}
	for _, n := range buyers {
		if err := b.startBuyers(ctx, n); err != nil {
			return err
		}
		for _, r := range rounds {
			fmt.Fprintf(cli.Stderr(b.c), "measuring %d buyers, %d rounds\n", n, r)
			f, err := b.measure(n, r)
			if err != nil {
				return err
			}
			figures = append(figures, f)
		}
	}
	return b.print(figures)
}

// measure measures one row: auctions, the same traffic bare, and finally some purchases.
func (b *auctionBench) measure(buyers, rounds int) (auctionFigures, error) {
	f := auctionFigures{Buyers: buyers, Concurrent: b.atOnce, Rounds: rounds, Sellers: b.sellers}
	auctions, err := b.all(buyers, bench.Order{Mode: "auction", Rounds: rounds, Sellers: b.sellers, Time: b.time, AtOnce: b.atOnce})
	if err != nil {
		return f, err
	}
	f.Median, f.P95, f.PerSecond = bench.Quantile(auctions.Times, 0.5), bench.Quantile(auctions.Times, 0.95), auctions.Rate()
	f.Messages, f.Bytes = auctions.PerRun(auctions.Out.Messages+auctions.In.Messages), auctions.PerRun(auctions.Out.Bytes+auctions.In.Bytes)
	bare, err := b.all(buyers, bench.Order{Mode: "bare", Rounds: rounds, Sellers: b.sellers, Time: b.time, AtOnce: b.atOnce, Like: auctions.Sizes()})
	if err != nil {
		return f, err
	}
	f.BareMedian, f.BarePerSecond = bench.Quantile(bare.Times, 0.5), bare.Rate()
	f.BareMessages, f.BareBytes = bare.PerRun(bare.Out.Messages+bare.In.Messages), bare.PerRun(bare.Out.Bytes+bare.In.Bytes)
	bought, err := b.all(1, bench.Order{Mode: "buy", Rounds: rounds, Sellers: b.sellers, Runs: 40})
	if err != nil {
		return f, err
	}
	f.Vote, f.Settle = bench.Quantile(bought.Votes, 0.5), bench.Quantile(bought.Settles, 0.5)
	f.ThreeCommits, err = bench.ThreeCommits(filepath.Join(b.market.Dir, "commits.db"))
	return f, err
}

// all gives every buyer the same order at once, and sums up their reports.
func (b *auctionBench) all(buyers int, o bench.Order) (bench.AuctionReport, error) {
	for _, x := range b.buyers[:buyers] {
		if err := x.Give(o); err != nil {
			return bench.AuctionReport{}, err
		}
	}
	var sum bench.AuctionReport
	for _, x := range b.buyers[:buyers] {
		var r bench.AuctionReport
		if err := x.Report(&r); err != nil {
			return sum, exit.Fail(exit.Failed, "its log is "+x.Log, "a buyer stopped: %w", err)
		}
		if r.Error != "" {
			return sum, exit.Fail(exit.Failed, "", "%s: %s", filepath.Base(filepath.Dir(x.Log)), r.Error)
		}
		sum.Add(r)
	}
	return sum, nil
}

func (b *auctionBench) print(figures []auctionFigures) error {
	rows := [][]string{{"buyers", "rounds", "median ms", "p95", "per s", "bare ms", "bare per s", "messages", "bytes", "vote ms", "settle ms", "3 commits ms"}}
	for _, f := range figures {
		rows = append(rows, []string{
			fmt.Sprint(f.Buyers), fmt.Sprint(f.Rounds), bench.Millis(f.Median), bench.Millis(f.P95), fmt.Sprintf("%.0f", f.PerSecond),
			bench.Millis(f.BareMedian), fmt.Sprintf("%.0f", f.BarePerSecond), fmt.Sprintf("%.0f", f.Messages), fmt.Sprintf("%.0f", f.Bytes),
			bench.Millis(f.Vote), bench.Millis(f.Settle), bench.Millis(f.ThreeCommits),
		})
	}
	return cli.ShowTable(b.c, figures, rows)
}

// newBenchBuyer is a buyer that 'bench auction' starts.
func newBenchBuyer() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use: "buyer", Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return bench.Buyer(c.Context(), dir, c.InOrStdin(), cli.Stdout(c), cli.Stderr(c))
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "the agent's `DIR`")
	return c
}

// startBuyers starts buyers until there are n, each with an account of its own.
func (b *auctionBench) startBuyers(ctx context.Context, n int) error {
	for i := len(b.buyers); i < n; i++ {
		if err := b.startBuyer(ctx, fmt.Sprintf("buyer%d", i+1)); err != nil {
			return err
		}
	}
	return nil
}

func (b *auctionBench) startBuyer(ctx context.Context, name string) error {
	dir, err := b.market.AgentDir(name, config.Config{User: &config.User{Pay: b.market.Pay(), Daemon: new(bool)}})
	if err != nil {
		return err
	}
	x, err := bench.StartChild(ctx, filepath.Join(dir, "agent.log"), demo.Tuning(), "bench", "buyer", "--dir", dir)
	if err != nil {
		return err
	}
	b.buyers = append(b.buyers, x)
	var up background.Ready
	if err := x.Report(&up); err != nil {
		return exit.Fail(exit.Failed, "its log is "+x.Log, "buyer %s did not start: %w", name, err)
	}
	return b.market.Fund(ctx, up.Agent, name)
}

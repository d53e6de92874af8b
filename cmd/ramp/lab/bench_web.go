package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"ramp/agents/background"
	"ramp/agents/bench"
	"ramp/agents/control"
	"ramp/agents/demo"
	"ramp/agents/exit"
	"ramp/agents/workload/published"
	"ramp/cmd/ramp/cli"
)

type webBench struct {
	purchases, gets, auctions, tabs int
	market                          demo.Market
}

func newBenchWeb() *cobra.Command {
	var b webBench
	var sellers int
	var dir string
	c := &cobra.Command{
		Use: "web", Short: "Measure pages of a user agent, on real processes", Args: cobra.NoArgs,
		Long: `Start a market, give its user many purchases, and serve its pages as 'ramp user web' does. Fetch
the list and a purchase as a browser does; 'static' is as many bytes from memory. 'visible' is
the time from when the agent knows that a round is closed until an open page shows it. Auctions
are held beside no open page and beside --tabs pages with the list, in turn; 'cost' is the share
that these add.`,
		Example: "  ramp bench web --json",
		RunE: func(c *cobra.Command, _ []string) error {
			for _, n := range []struct {
				flag       string
				have, most int
			}{{"purchases", b.purchases, 1_000_000}, {"gets", b.gets, 100_000}, {"auctions", b.auctions, 10_000}, {"tabs", b.tabs, 100}, {"sellers", sellers, len(published.Resources())}} {
				if n.have < 1 || n.have > n.most {
					return exit.Fail(exit.Usage, "", "--%s %d: want 1..%d", n.flag, n.have, n.most)
				}
			}
			b.market = demo.Market{Dir: dir, Out: demo.Silent{}, Count: sellers}
			f, err := b.run(c)
			if err != nil {
				return err
			}
			return printWeb(c, f)
		},
	}
	f := c.Flags()
	f.IntVar(&b.purchases, "purchases", 10_000, "purchases that the user has, 1..1000000")
	f.IntVar(&b.gets, "gets", 200, "fetches of each page, 1..100000")
	f.IntVar(&b.auctions, "auctions", 100, "auctions of each kind, 1..10000")
	f.IntVar(&b.tabs, "tabs", 20, "pages that are open, 1..100")
	f.IntVar(&sellers, "sellers", 20, "sellers, 1..20")
	f.StringVar(&dir, "dir", "", "keep all state in `DIR` (default: a temporary one)")
	return c
}

func (b *webBench) run(c *cobra.Command) (f bench.WebFigures, err error) {
	ctx := c.Context()
	made, err := b.market.Open(ctx)
	defer func() { err = b.market.Close(ctx, made, err) }()
	if err != nil {
		return f, err
	}
	dir := b.market.User.Dir
	fmt.Fprintln(cli.Stderr(c), "making purchases")
	id, err := bench.Purchase(ctx, control.At(dir))
	if err == nil {
		_, err = background.Stop(ctx, dir)
	}
	if err == nil {
		err = bench.CopyPurchases(dir, id, b.purchases-1)
	}
	if err != nil {
		return f, err
	}
	agent, err := background.Start(ctx, dir)
	if err != nil {
		return f, err
	}
	defer func() {
		_, stopped := background.Stop(context.WithoutCancel(ctx), dir)
		err = errors.Join(err, stopped)
	}()
	if err := control.Joined.Ask(ctx, agent, control.None{}, nil); err != nil {
		return f, err
	}
	return b.measure(c, agent, id)
}

// measure serves the pages in a process of their own.
func (b *webBench) measure(c *cobra.Command, agent *control.Client, id string) (f bench.WebFigures, err error) {
	f.Purchases = b.purchases
	exe, err := os.Executable()
	if err != nil {
		return f, err
	}
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	pages := exec.CommandContext(ctx, exe, "user", "web", "--print", "--json", "--dir", b.market.User.Dir) //nolint:gosec // this program
	out, err := pages.StdoutPipe()
	if err != nil {
		return f, err
	}
	if err := pages.Start(); err != nil {
		return f, err
	}
	defer func() { cancel(); _ = pages.Wait() }() // it was killed
	var link struct {
		URL string `json:"url"`
	}
	if err := json.NewDecoder(out).Decode(&link); err != nil {
		return f, err
	}
	browser, err := bench.NewBrowser(link.URL)
	if err != nil {
		return f, err
	}
	for _, part := range []struct {
		what string
		do   func() error
	}{
		{"pages", func() error { return browser.MeasurePages(ctx, id, b.gets, &f) }},
		{"rounds", func() error { return browser.MeasureRounds(ctx, agent, b.auctions, &f) }},
		{"auctions beside open pages", func() error { return browser.MeasureTabs(ctx, agent, b.tabs, b.auctions, &f) }},
	} {
		fmt.Fprintln(cli.Stderr(c), "measuring "+part.what)
		if err := part.do(); err != nil {
			return f, fmt.Errorf("%s: %w", part.what, err)
		}
	}
	return f, nil
}

func printWeb(c *cobra.Command, f bench.WebFigures) error {
	return cli.ShowTable(c, f, [][]string{
		{"purchases", "list ms", "p95", "page ms", "p95", "static ms", "p95", "visible ms", "p95", "auction ms", "with tabs", "cost"},
		{fmt.Sprint(f.Purchases), bench.Millis(f.List), bench.Millis(f.ListP95), bench.Millis(f.Page), bench.Millis(f.PageP95), bench.Millis(f.Static), bench.Millis(f.StaticP95),
			bench.Millis(f.Visible), bench.Millis(f.VisibleP95), bench.Millis(f.Alone), bench.Millis(f.Watched), fmt.Sprintf("%.1f %%", 100*f.Cost)},
	})
}

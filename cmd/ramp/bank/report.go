package bank

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/words"
	bankbooks "ramp/bank/books"
	"ramp/cmd/ramp/cli"
	"ramp/protocol"
)

func newBankReport() *cobra.Command {
	var from, to, figure string
	var step time.Duration
	var top int
	var asCSV bool
	c := &cobra.Command{
		Use: "report", Short: "Report turnover, prices and the largest accounts", Args: cobra.NoArgs, GroupID: "books",
		Long: `Report for each currency, in total and in periods of --step: contracts, what was paid for work,
refunded, issued and transferred, and what contracts cost; and the accounts that earned and
spent most. A contract paid on completion or metered counts with what was paid of it, once all
its units have ended, in the period in which it was made. A contract without payment, or made
before --from, has no price. Exchanges are not counted. Ends with 3 if there is nothing
to plot.`,
		Example: "  ramp bank report --step 24h\n  ramp bank report --plot turnover",
		RunE: func(c *cobra.Command, _ []string) error {
			q := control.ReportCall{Step: config.Span(step), Top: top}
			var err error
			if q.From, q.To, err = cli.ParseTimes(from, to); err != nil {
				return err
			}
			if cli.WantsJSON(c) && asCSV {
				return exit.Fail(exit.Usage, "", "--csv and --json: give one of them")
			}
			list := []bankbooks.Currency{}
			if err := askBank(c, control.Report, q, &list); err != nil {
				return err
			}
			if figure != "" {
				figure = strings.TrimSuffix(strings.TrimSuffix(figure, ".svg"), ".png")
				if err := plotReport(figure, list, step); err != nil {
					return err
				}
				fmt.Fprintf(cli.Stderr(c), "wrote %[1]s.svg and %[1]s.png\n", figure)
			}
			return printReport(c, list, asCSV)
		},
	}
	c.Flags().StringVar(&from, "from", "", "report from `TIME` on: 2026-11-01, 2026-11-01T09:30 or RFC 3339 (default: the first entry)")
	c.Flags().StringVar(&to, "to", "", "report until just before `TIME`")
	cli.DurationVar(c.Flags(), &step, "step", 24*time.Hour, "length of a period; at most 10,000 periods")
	c.Flags().IntVar(&top, "top", 10, "show the `N` largest accounts of each currency, 0..1000")
	c.Flags().BoolVar(&asCSV, "csv", false, "write the periods as CSV")
	c.Flags().StringVar(&figure, "plot", "", "also draw turnover and the price of a core-hour in `FILE`.svg and FILE.png")
	return cli.Watched(c)
}

func printReport(c *cobra.Command, list []bankbooks.Currency, asCSV bool) error {
	if asCSV {
		return writeReport(cli.Stdout(c), list)
	}
	return cli.Show(c, list, func(w io.Writer) {
		if len(list) == 0 {
			fmt.Fprintln(w, "no money moved in this time")
		}
		for _, one := range list {
			printCurrency(w, one)
		}
	})
}

func printCurrency(w io.Writer, r bankbooks.Currency) {
	fmt.Fprintf(w, "%s: %s, %d voided; turnover %s\n  refunded %s, issued %s, transferred %s\n",
		r.Currency, words.Plural(int(r.Contracts), "contract"), r.Voided, r.Turnover.Cents(), r.Refunded.Cents(), r.Issued.Cents(), r.Moved.Cents())
	if r.Prices.Most > 0 {
		fmt.Fprintf(w, "  a core-hour costs %s; a contract %s to %s, median %s, mean %s\n",
			r.PerCoreHour.Cents(), r.Prices.Least.Cents(), r.Prices.Most.Cents(), r.Prices.Median.Cents(), r.Prices.Mean.Cents())
	}
	if r.Open > 0 {
		fmt.Fprintf(w, "  %s not decided yet, and not part of the prices\n", words.Plural(int(r.Open), "contract"))
	}
	rows := [][]string{{"from (" + words.Zone() + ")", "contracts", "voided", "turnover", "refunded", "issued", "transferred", "per contract", "per core-hour"}}
	for _, p := range r.Periods {
		rows = append(rows, append([]string{words.Dated(p.Start)}, periodFields(p, protocol.Credits.Cents)...))
	}
	cli.Table(w, cli.WithoutZeros(rows)...)
	if len(r.Top) == 0 {
		return
	}
	rows = [][]string{{"account", "earned", "spent", "agent"}}
	for _, t := range r.Top {
		rows = append(rows, []string{t.Name, t.Earned.Cents(), t.Spent.Cents(), string(t.Account)})
	}
	cli.Table(w, rows...)
}

func periodFields(p bankbooks.Period, amount func(protocol.Credits) string) []string {
	return []string{
		fmt.Sprint(p.Contracts), fmt.Sprint(p.Voided), amount(p.Turnover), amount(p.Refunded), amount(p.Issued),
		amount(p.Moved), amount(p.Price), amount(p.PerCoreHour),
	}
}

func writeReport(w io.Writer, list []bankbooks.Currency) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"currency", "from", "contracts", "voided", "turnover", "refunded", "issued", "transferred", "mean_price", "price_core_hour"}}
	for _, one := range list {
		for _, p := range one.Periods {
			rows = append(rows, append([]string{one.Currency, p.Start.Format(time.RFC3339)}, periodFields(p, protocol.Credits.String)...))
		}
	}
	return out.WriteAll(rows)
}

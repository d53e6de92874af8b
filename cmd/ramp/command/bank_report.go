package command

import (
	"encoding/csv"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	bankbooks "ramp/bank/books"
)

func newBankReport() *cobra.Command {
	var from, to, figure string
	var step time.Duration
	var top int
	var asCSV bool
	c := &cobra.Command{
		Use: "report", Short: "Report turnover, prices and the greatest accounts", Args: cobra.NoArgs,
		Long: `Reports, for each currency and in periods of --step: contracts, what was paid for
work and refunded, what was issued, and what contracts cost; and the accounts that
earned and spent most. --csv writes the periods, --plot FILE also FILE.svg and FILE.png.
What a contract costs that is paid on completion or metered is what was paid of it, and
no ceiling: it counts once all its units have ended, in the period in which it was made;
one of which nothing was paid does not count.`,
		RunE: func(c *cobra.Command, _ []string) error {
			q := reportCall{Step: span(step), Top: top}
			var err error
			if q.From, q.To, err = parseTimes(from, to); err != nil {
				return err
			}
			if wantsJSON(c) && asCSV {
				return fail(exitUsage, "", "--csv and --json: want one of them")
			}
			list := []bankbooks.Currency{}
			if err := askBank(c, "/v1/report", q, &list); err != nil {
				return err
			}
			if figure != "" {
				if err := plotReport(figure, list, step); err != nil {
					return err
				}
			}
			return printReport(c, list, asCSV)
		},
	}
	c.Flags().StringVar(&from, "from", "", "first time: 2026-11-01, or RFC 3339; where the first period begins")
	c.Flags().StringVar(&to, "to", "", "time to end before, likewise")
	durationVar(c.Flags(), &step, "step", 24*time.Hour, "length of a period")
	c.Flags().IntVar(&top, "top", 10, "accounts of each currency, 0..1000")
	c.Flags().BoolVar(&asCSV, "csv", false, "write the periods as CSV")
	c.Flags().StringVar(&figure, "plot", "", "draw turnover and prices in FILE.svg and FILE.png")
	return c
}

func printReport(c *cobra.Command, list []bankbooks.Currency, asCSV bool) error {
	switch {
	case wantsJSON(c):
		return printJSON(stdout(c), list)
	case asCSV:
		return writeReport(stdout(c), list)
	}
	if len(list) == 0 {
		fmt.Fprintln(stdout(c), "no money has moved in that while")
	}
	for _, one := range list {
		printCurrency(stdout(c), one)
	}
	return nil
}

func printCurrency(w io.Writer, r bankbooks.Currency) {
	fmt.Fprintf(w, "%s: %s, %d voided; turnover %s, refunded %s, issued %s, transferred %s\n",
		r.Currency, plural(int(r.Contracts), "contract"), r.Voided, r.Turnover, r.Refunded, r.Issued, r.Moved)
	if r.Prices.Most > 0 {
		fmt.Fprintf(w, "  a contract costs %s to %s, median %s, mean %s\n", r.Prices.Least, r.Prices.Most, r.Prices.Median, r.Prices.Mean)
	}
	if r.Open > 0 {
		fmt.Fprintf(w, "  %s not decided yet: what is held is no price\n", plural(int(r.Open), "contract"))
	}
	rows := [][]string{{"from (UTC)", "contracts", "voided", "turnover", "refunded", "issued", "transferred", "mean price"}}
	for _, p := range r.Periods {
		rows = append(rows, append([]string{p.Start.Format("2006-01-02 15:04:05")}, periodFields(p)...))
	}
	table(w, rows...)
	if len(r.Top) == 0 {
		return
	}
	rows = [][]string{{"account", "earned", "spent", "agent"}}
	for _, t := range r.Top {
		rows = append(rows, []string{t.Name, t.Earned.String(), t.Spent.String(), string(t.Account)})
	}
	table(w, rows...)
}

func periodFields(p bankbooks.Period) []string {
	return []string{
		fmt.Sprint(p.Contracts), fmt.Sprint(p.Voided), p.Turnover.String(), p.Refunded.String(), p.Issued.String(),
		p.Moved.String(), p.Price.String(),
	}
}

// writeReport writes the periods as CSV.
func writeReport(w io.Writer, list []bankbooks.Currency) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"currency", "from", "contracts", "voided", "turnover", "refunded", "issued", "transferred", "mean_price"}}
	for _, one := range list {
		for _, p := range one.Periods {
			rows = append(rows, append([]string{one.Currency, p.Start.Format(time.RFC3339)}, periodFields(p)...))
		}
	}
	return out.WriteAll(rows)
}

package lab

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"ramp/agents/exit"
	"ramp/agents/sim/dbc"
	"ramp/agents/user/sweep"
	"ramp/cmd/ramp/cli"
	"ramp/protocol"
)

// dbcOutcome is the result of one problem; the names are fixed.
type dbcOutcome struct {
	Done  int              `json:"done"`
	Time  float64          `json:"time"`
	Spent protocol.Credits `json:"spent"`
	Per   map[string]int   `json:"per"`
}

func newSimDBC() *cobra.Command {
	var resources, lengths, deadline, budget, strategy string
	c := &cobra.Command{
		Use: "dbc", Short: "Schedule jobs of known lengths within a deadline and a budget", Args: cobra.NoArgs,
		Long: `Schedule jobs on priced resources as in the experiment of 004, with the planner of live sweeps.
--resources has the header name,pes,mips,policy,price, with the policy TS or SS and the price of
a processor for a time unit; --lengths has the header mi and one job a line. 'ramp sim
experiment dbc' runs the published problem for many deadlines and budgets.`,
		Example: "  ramp sim dbc --resources table1.csv --lengths jobs.csv --deadline 1100 --budget 22000 --strategy cost-time",
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := readFile(resources, dbc.ReadResources)
			if err != nil {
				return exit.Fail(exit.Usage, "", "--resources %s: %w", resources, err)
			}
			jobs, err := readFile(lengths, dbc.ReadLengths)
			if err != nil {
				return exit.Fail(exit.Usage, "", "--lengths %s: %w", lengths, err)
			}
			terms, err := dbc.Terms(strategy, deadline, budget)
			if err != nil {
				return exit.Fail(exit.Usage, "", "%w", err)
			}
			return showDBC(c, list, len(jobs), dbc.Run(list, jobs, terms, nil))
		},
	}
	c.Flags().StringVar(&resources, "resources", "", "`CSV` of resources")
	c.Flags().StringVar(&lengths, "lengths", "", "`CSV` of the jobs' lengths, in millions of instructions")
	c.Flags().StringVar(&deadline, "deadline", "", "`TIME` by which every job must end, in time units")
	c.Flags().StringVar(&budget, "budget", "", "the most to spend, `AMOUNT`")
	c.Flags().StringVar(&strategy, "strategy", string(sweep.CostTime), "`STRATEGY`: cost, cost-time, time, conservative-time or none")
	var names []string
	for _, s := range sweep.Strategies() {
		names = append(names, string(s))
	}
	cli.Choices(c, "strategy", names...)
	for _, name := range []string{"resources", "lengths", "deadline", "budget"} {
		_ = c.MarkFlagRequired(name) // the flags are there: they were made above
	}
	return c
}

func readFile[T any](path string, read func(io.Reader) (T, error)) (T, error) {
	f, err := os.Open(path)
	if err != nil {
		var none T
		return none, err
	}
	defer f.Close()
	return read(f)
}

func showDBC(c *cobra.Command, list []dbc.Resource, jobs int, o dbc.Outcome) error {
	ends := float64(o.Time) / float64(dbc.Unit)
	return cli.Show(c, dbcOutcome{o.Done, ends, o.Spent, o.Per}, func(w io.Writer) {
		rows := [][]string{{"resource", "PEs", "MIPS", "price", "jobs"}}
		for _, r := range list {
			rows = append(rows, []string{r.Name, fmt.Sprint(r.PEs), protocol.Credits(r.MIPS).String(), r.Price.String(), fmt.Sprint(o.Per[r.Name])})
		}
		cli.Table(w, rows...)
		fmt.Fprintf(w, "%d of %d jobs done, the last at %.2f; spent %s\n", o.Done, jobs, ends, o.Spent.Cents())
	})
}

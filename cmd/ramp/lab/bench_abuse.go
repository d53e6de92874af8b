package lab

import (
	"fmt"

	"github.com/spf13/cobra"

	"ramp/agents/bench"
	"ramp/agents/exit"
	"ramp/cmd/ramp/cli"
)

func newBenchAbuse() *cobra.Command {
	var contracts int
	c := &cobra.Command{
		Use: "abuse", Short: "Measure what void contracts leave at a seller and at the bank", Args: cobra.NoArgs,
		Long: `Have a buyer make contracts that its bank voids, once as they should be and once padded with
certificates that prove nothing. Print what the seller keeps of each after their holds are over:
bytes of records in its journal, and of memory. For the bank, print the bytes of records for
each contract within a user's allowance, and for all contracts beyond it.`,
		Example: "  ramp bench abuse --contracts 1000",
		RunE: func(c *cobra.Command, _ []string) error {
			if contracts < 1 || contracts > bench.MaxAbuse {
				return exit.Fail(exit.Usage, "", "--contracts %d: want 1..%d", contracts, bench.MaxAbuse)
			}
			a, err := bench.MeasureAbuse(contracts)
			if err != nil {
				return err
			}
			rows := [][]string{{"contracts", "sent bytes", "journal bytes", "memory bytes"}}
			for _, k := range []struct {
				name string
				bench.Kept
			}{{"plain", a.Plain}, {"padded", a.Padded}} {
				rows = append(rows, []string{k.name, fmt.Sprint(k.Sent), fmt.Sprint(k.Journal), fmt.Sprint(k.Memory)})
			}
			rows = append(rows, []string{fmt.Sprintf("bank, each of the first %d", a.Bank.Allowance), "", fmt.Sprint(a.Bank.Entry), ""},
				[]string{fmt.Sprintf("bank, all of %d more", a.Contracts), "", fmt.Sprint(a.Bank.Beyond), ""})
			return cli.ShowTable(c, a, rows)
		},
	}
	c.Flags().IntVar(&contracts, "contracts", 200, "contracts of each kind, 1..100000")
	return c
}

package command

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"ramp/protocol/message"
)

// askHolder makes one call to the agent whose money a command is about.
type askHolder func(c *cobra.Command, path string, q, v any) error

func newBalance(ask askHolder) *cobra.Command {
	return &cobra.Command{
		Use: "balance", Short: "Ask the banks for the agent's own balances", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var list []message.Balance
			if err := ask(c, "/v1/balance", nil, &list); err != nil {
				return err
			}
			if wantsJSON(c) {
				return printJSON(stdout(c), list)
			}
			table(stdout(c), balanceRows(list)...)
			return nil
		},
	}
}

// balanceRows are balances for people. Where members of groups barter, they say
// what each may spend with its group's.
func balanceRows(list []message.Balance) [][]string {
	grouped := slices.ContainsFunc(list, func(b message.Balance) bool { return b.Group != "" })
	rows := [][]string{{"account", "currency", "balance", "held", "available"}}
	if grouped {
		rows[0] = append(rows[0], "group", "may spend")
	}
	for _, b := range list {
		row := []string{accountWords(b.Account, b.Name), b.Currency, b.Balance.String(), b.Held.String(), b.Available.String()}
		switch {
		case grouped && b.Group == "":
			row = append(row, "-", "-")
		case grouped:
			row = append(row, b.Group, b.Spendable.String())
		}
		rows = append(rows, row)
	}
	return rows
}

func newStatement(ask askHolder) *cobra.Command {
	var q statementCall
	var from, to string
	c := &cobra.Command{
		Use: "statement", Short: "Ask the banks for the entries of the agent's own accounts", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if q.From, q.To, err = parseTimes(from, to); err != nil {
				return err
			}
			if q.Limit < 1 || q.Limit > message.MaxStatement {
				return fail(exitUsage, "", "--limit %d: want 1..%d", q.Limit, message.MaxStatement)
			}
			var list []bankStatement
			if err := ask(c, "/v1/statement", q, &list); err != nil {
				return err
			}
			return printStatements(c, list)
		},
	}
	c.Flags().StringVar(&from, "from", "", "first time: 2026-11-01, or RFC 3339")
	c.Flags().StringVar(&to, "to", "", "time to end before, likewise")
	c.Flags().Uint64Var(&q.After, "after", 0, "only entries behind this number")
	c.Flags().IntVar(&q.Limit, "limit", 100, "at most this many entries of each bank")
	return c
}

func printStatements(c *cobra.Command, list []bankStatement) error {
	if wantsJSON(c) {
		return printJSON(stdout(c), list)
	}
	for _, s := range list {
		fmt.Fprintf(stdout(c), "%s:\n", s.Bank.Name())
		if err := printStatement(c, s.Statement); err != nil {
			return err
		}
	}
	return nil
}

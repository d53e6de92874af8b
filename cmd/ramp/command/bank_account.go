package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"ramp/protocol"
)

// amountOf reads an amount of money that must be more than zero.
func amountOf(name, s string) (protocol.Credits, error) {
	amount, err := protocol.ParseCredits(s)
	if err != nil || amount <= 0 {
		return 0, fail(exitUsage, "", "%s %q: want a positive number of credits, at most %s, at most six decimals", name, s, protocol.MaxCredits)
	}
	return amount, nil
}

// amountOrZero reads an amount that may be zero.
func amountOrZero(name, s string) (protocol.Credits, error) {
	amount, err := protocol.ParseCredits(s)
	if err != nil || amount < 0 {
		return 0, fail(exitUsage, "", "%s %q: want zero or more credits, at most %s, at most six decimals", name, s, protocol.MaxCredits)
	}
	return amount, nil
}

// flagCurrency and flagRef are flags of many acts.
func flagCurrency(c *cobra.Command, v *string) {
	c.Flags().StringVar(v, "currency", "", "currency (default: the bank's first)")
}

func flagRef(c *cobra.Command, v *string) {
	c.Flags().StringVar(v, "ref", "", "a reference for the books")
}

func newBankAccountList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the accounts, with their groups, limits and incomes", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var list []accountView
			if err := askBank(c, "/v1/accounts", nil, &list); err != nil {
				return err
			}
			if wantsJSON(c) {
				return printJSON(stdout(c), list)
			}
			rows := [][]string{{"account", "standing", "group", "balance", "currency", "held", "limit", "available", "per day", "agent"}}
			for _, a := range list {
				rows = append(rows, accountRows(a)...)
			}
			table(stdout(c), rows...)
			return nil
		},
	}
}

// accountRows has a row for each currency, and one for an account without any.
func accountRows(a accountView) [][]string {
	var rows [][]string
	for _, l := range a.Lines {
		rows = append(rows, []string{
			accountWords(a.Account, a.Name), a.Standing, orDash(a.Group), l.Balance.String(), l.Currency, l.Held.String(), l.Limit.String(),
			l.Available.String(), l.PerDay.String(), string(a.Account),
		})
	}
	if len(rows) == 0 {
		rows = [][]string{{accountWords(a.Account, a.Name), a.Standing, orDash(a.Group), "-", "-", "-", "-", "-", "-", string(a.Account)}}
	}
	return rows
}

func newBankAccountLimit() *cobra.Command {
	var q limitCall
	c := &cobra.Command{
		Use: "limit ACCOUNT CREDITS", Short: "Set how far below zero an account may go", Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			q.Account = args[0]
			var err error
			if q.Limit, err = amountOrZero("CREDITS", args[1]); err != nil {
				return err
			}
			var e operatorEntry
			if err := askBank(c, "/v1/limit", q, &e); err != nil {
				return err
			}
			return said(c, e, "%s may go %s below zero (entry %d)", args[0], q.Limit, e.Entry)
		},
	}
	flagCurrency(c, &q.Currency)
	return c
}

// newBankStanding makes the command that gives an account a standing.
func newBankStanding(verb, standing, short string) *cobra.Command {
	q := standingCall{Standing: standing}
	c := &cobra.Command{
		Use: verb + " ACCOUNT", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			q.Account = args[0]
			var e operatorEntry
			if err := askBank(c, "/v1/standing", q, &e); err != nil {
				return err
			}
			return said(c, e, "%s is %s (entry %d)", args[0], standing, e.Entry)
		},
	}
	flagRef(c, &q.Ref)
	return c
}

func newBankHold() *cobra.Command {
	c := &cobra.Command{Use: "hold", Short: "Show what is held"}
	c.AddCommand(&cobra.Command{
		Use: "list", Short: "List the open holds", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var list []holdView
			if err := askBank(c, "/v1/holds", nil, &list); err != nil {
				return err
			}
			if wantsJSON(c) {
				return printJSON(stdout(c), list)
			}
			rows := [][]string{{"hold", "amount", "currency", "until (UTC)", "account", "reference"}}
			for _, h := range list {
				rows = append(rows, []string{fmt.Sprint(h.Hold), h.Amount.String(), h.Currency, secondTime(h.Until), string(h.Account), orDash(h.Ref)})
			}
			table(stdout(c), rows...)
			return nil
		},
	})
	return c
}

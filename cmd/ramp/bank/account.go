package bank

import (
	"fmt"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
)

// flagCurrency and flagRef are flags of many operations.
func flagCurrency(c *cobra.Command, v *string) {
	c.Flags().StringVar(v, "currency", "", "currency `CUR` (default: the bank's first)")
}

func flagRef(c *cobra.Command, v *string) {
	c.Flags().StringVar(v, "ref", "", "a reference for the books")
}

func newBankAccountList() *cobra.Command {
	return cli.Watched(&cobra.Command{
		Use: "list", Short: "List the accounts", Args: cobra.NoArgs,
		Long: `List the accounts as of now, in credits: the balance, how much of it is held and how much can be
spent, and the account's standing, group, overdraft and daily income. --json has the agent IDs.`,
		Example: "  ramp bank account list",
		RunE: func(c *cobra.Command, _ []string) error {
			return showBank(c, control.Accounts, struct{}{}, accountRows)
		},
	})
}

// accountRows have a row for each currency of an account, or one for an account without any.
func accountRows(list []control.AccountView) [][]string {
	rows := [][]string{{"account", "balance", "currency", "held", "available", "standing"}}
	for _, a := range list {
		name := words.AccountWords(a.Account, a.Name)
		for _, l := range a.Lines {
			rows = append(rows, []string{name, l.Balance.Cents(), l.Currency, l.Held.Cents(), l.Available.Cents(), standingWords(a, l)})
		}
		if len(a.Lines) == 0 {
			rows = append(rows, []string{name, "-", "-", "-", "-", standingWords(a, control.LineView{})})
		}
	}
	return rows
}

// standingWords name only what an account has, so that its row fits into 80 columns.
func standingWords(a control.AccountView, l control.LineView) string {
	s := a.Standing
	if a.Group != "" {
		s += ", group " + a.Group
	}
	if l.Limit != 0 {
		s += ", overdraft " + l.Limit.Cents()
	}
	if l.PerDay != 0 {
		s += ", " + l.PerDay.Cents() + " a day"
	}
	return s
}

func newBankAccountLimit() *cobra.Command {
	var q control.LimitCall
	c := &cobra.Command{
		Use: "overdraft ACCOUNT CREDITS", Aliases: []string{"limit"}, Short: "Set the overdraft of an account", Args: cobra.ExactArgs(2),
		Long: `Set the overdraft of an account: how many credits below zero its balance may go. If the account
is already lower, it just cannot spend more. In a currency with an allowance the overdraft is at
most 1125899906.842624.`,
		Example: "  ramp bank account overdraft ann 500", ValidArgsFunction: cli.Accounts(1),
		RunE: func(c *cobra.Command, args []string) error {
			q.Account = args[0]
			var err error
			if q.Limit, err = cli.AmountOrZero("CREDITS", args[1]); err != nil {
				return err
			}
			return operate(c, control.SetLimit, q, "the overdraft of %s is %s", args[0], q.Limit.Cents())
		},
	}
	flagCurrency(c, &q.Currency)
	return c
}

func newBankStanding(verb, standing, short string) *cobra.Command {
	q := control.StandingCall{Standing: standing}
	c := &cobra.Command{
		Use: verb + " ACCOUNT", Short: short, Args: cobra.ExactArgs(1),
		Example: "  ramp bank account " + verb + " ann", ValidArgsFunction: cli.Accounts(1),
		RunE: func(c *cobra.Command, args []string) error {
			q.Account = args[0]
			return operate(c, control.SetStanding, q, "%s is %s", args[0], standing)
		},
	}
	flagRef(c, &q.Ref)
	return c
}

func newBankHold() *cobra.Command {
	c := &cobra.Command{Use: "hold", Short: "Show the credits that are held", GroupID: "money"}
	c.AddCommand(cli.Watched(&cobra.Command{
		Use: "list", Short: "List the open holds", Args: cobra.NoArgs,
		Long:    "List the open holds: credits that wait for a decision or for the end of a job, and until when.",
		Example: "  ramp bank hold list",
		RunE: func(c *cobra.Command, _ []string) error {
			return showBank(c, control.Holds, struct{}{}, holdRows)
		},
	}))
	return c
}

func holdRows(list []control.HoldView) [][]string {
	rows := [][]string{{"hold", "amount", "currency", "until (" + words.Zone() + ")", "account", "reference"}}
	for _, h := range list {
		rows = append(rows, []string{fmt.Sprint(h.Hold), h.Amount.Cents(), h.Currency, words.Timestamp(h.Until), string(h.Account), words.OrDash(h.Ref)})
	}
	return rows
}

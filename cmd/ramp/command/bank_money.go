package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"ramp/protocol"
)

func newBankPolicy() *cobra.Command {
	var decay string
	c := &cobra.Command{
		Use: "policy [CURRENCY plain|barter|allowance]", Short: "Give a currency its policy, or show all of them",
		Long: `Gives a currency its policy, while all its balances are 0: plain (the operator
credits accounts), barter (nobody does, and all balances sum to zero) or allowance
(accounts have incomes, and what they keep decays). Without arguments: shows the
policies, the rates of exchange, and whether the bank is in recovery or its clock was set back.`,
		Args: exactly(0, 2),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return showPolicies(c)
			}
			q, err := policyOf(args[0], args[1], decay)
			if err != nil {
				return err
			}
			var e operatorEntry
			if err := askBank(c, "/v1/policy", q, &e); err != nil {
				return err
			}
			return said(c, e, "%s is %s (entry %d)", q.Currency, q.Policy, e.Entry)
		},
	}
	c.Flags().StringVar(&decay, "decay", "0", "of an allowance: the part of a balance that decays per day, such as 0.01")
	return c
}

// exactly wants one of some numbers of arguments.
func exactly(counts ...int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		for _, n := range counts {
			if len(args) == n {
				return nil
			}
		}
		return fmt.Errorf("%s: want %s", plural(len(args), "argument"), c.UseLine())
	}
}

// policyOf checks what a policy is to be, as far as a command can.
func policyOf(currency, policy, decay string) (policyCall, error) {
	q := policyCall{Currency: currency, Policy: policy}
	if _, err := policyKind(policy); err != nil {
		return q, err
	}
	var err error
	if q.Decay, err = protocol.ParseCredits(decay); err != nil || q.Decay < 0 {
		return q, fail(exitUsage, "", "--decay %q: want a part such as 0.01, at most six decimals", decay)
	}
	return q, nil
}

func showPolicies(c *cobra.Command) error {
	var v policiesView
	if err := askBank(c, "/v1/policies", nil, &v); err != nil {
		return err
	}
	if wantsJSON(c) {
		return printJSON(stdout(c), v)
	}
	rows := [][]string{{"currency", "policy", "decay per day"}}
	for _, p := range v.Policies {
		rows = append(rows, []string{p.Currency, p.Policy, p.Decay.String()})
	}
	table(stdout(c), rows...)
	for _, r := range v.Rates {
		fmt.Fprintf(stdout(c), "  1 %s buys %s %s\n", r.From, r.Rate, r.To)
	}
	if t := v.trouble(); t.words != "" {
		fmt.Fprintf(stdout(c), "  %s: %s\n", t.words, t.help)
	}
	return nil
}

func newBankTransfer() *cobra.Command {
	var q transferCall
	unit := 1
	c := &cobra.Command{
		Use: "transfer FROM TO AMOUNT", Short: "Move money between two accounts", Args: cobra.ExactArgs(3),
		Long: `Moves money between two accounts, by name or agent ID; group:NAME is a group's, and
.exchange the bank's own for exchanges; .issuer takes back what was credited by mistake.
FROM's limit holds; a frozen account may pay, since its operator decides. --contract and
--unit name the disputed job.`,
		RunE: func(c *cobra.Command, args []string) error {
			q.From, q.To = args[0], args[1]
			var err error
			if q.Amount, err = amountOf("AMOUNT", args[2]); err != nil {
				return err
			}
			if c.Flags().Changed("unit") && q.Contract == "" {
				return fail(exitUsage, "say which with --contract", "--unit %d: a unit is one of a contract", unit)
			}
			if q.Unit, err = unitOf(unit); err != nil {
				return err
			}
			return orderMoney(c, "/v1/transfer", q, func(n noted) any { q.noted = n; return q }, func(e operatorEntry) error {
				return said(c, e, "moved %s from %s to %s (entry %d)", q.Amount, q.From, q.To, e.Entry)
			})
		},
	}
	flagCurrency(c, &q.Currency)
	flagRef(c, &q.Ref)
	c.Flags().StringVar((*string)(&q.Contract), "contract", "", "the contract of a disputed job")
	c.Flags().IntVar(&unit, "unit", unit, "and its unit, from 1")
	return c
}

func newBankAllowance() *cobra.Command {
	c := &cobra.Command{Use: "allowance", Short: "Give accounts an income"}
	var q allowanceCall
	set := &cobra.Command{
		Use: "set ACCOUNT PER-DAY", Short: "Give an account an income per day; 0 takes it away", Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			q.Account = args[0]
			var err error
			if q.PerDay, err = amountOrZero("PER-DAY", args[1]); err != nil {
				return err
			}
			var e operatorEntry
			if err := askBank(c, "/v1/allowance", q, &e); err != nil {
				return err
			}
			return said(c, e, "%s gets %s a day (entry %d)", args[0], q.PerDay, e.Entry)
		},
	}
	flagCurrency(set, &q.Currency)
	flagRef(set, &q.Ref)
	c.AddCommand(set)
	return c
}

func newBankRate() *cobra.Command {
	c := &cobra.Command{Use: "rate", Short: "Exchange one currency of the bank for another"}
	var ref string
	set := &cobra.Command{
		Use: "set FROM TO RATE", Short: "Set how much of TO one FROM buys; 0 ends the exchange", Args: cobra.ExactArgs(3),
		Long: `Sets how much of one currency a credit of another buys. The other side of every
exchange is the account .exchange, which 'ramp bank credit' and 'ramp bank account
limit' provide for. Quotes that were given stay good until they are over.`,
		RunE: func(c *cobra.Command, args []string) error {
			q := rateCall{From: args[0], To: args[1], Ref: ref}
			var err error
			if q.Rate, err = amountOrZero("RATE", args[2]); err != nil {
				return err
			}
			var e operatorEntry
			if err := askBank(c, "/v1/rate", q, &e); err != nil {
				return err
			}
			return said(c, e, "1 %s buys %s %s (entry %d)", q.From, q.Rate, q.To, e.Entry)
		},
	}
	flagRef(set, &ref)
	c.AddCommand(set)
	return c
}

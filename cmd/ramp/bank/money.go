package bank

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/node"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol"
)

func newBankPolicy() *cobra.Command {
	var decay string
	c := &cobra.Command{
		Use: "policy [CURRENCY plain|barter|allowance]", Short: "Set a currency's policy, or show all policies", GroupID: "rules",
		Long: `Set the policy of a currency while all its balances are 0 and nothing is held: plain (the
operator credits accounts), barter (nobody does, and all balances sum to zero) or allowance
(accounts have incomes, and balances decay). Without arguments, show the policies, the exchange
rates, and whether the bank is in recovery or its clock was set back.`,
		Example: "  ramp bank policy\n  ramp bank policy CPU allowance --decay 0.01",
		Args:    exactly(0, 2), ValidArgsFunction: completePolicy,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return showPolicies(c)
			}
			q, err := policyOf(args[0], args[1], decay)
			if err != nil {
				return err
			}
			return operate(c, control.SetPolicy, q, "the policy of %s is %s", q.Currency, q.Policy)
		},
	}
	c.Flags().StringVar(&decay, "decay", "0", "allowance: the `SHARE` of a balance that decays per day, such as 0.01")
	return c
}

// completePolicy completes the policy, the second argument of 'bank policy'.
func completePolicy(_ *cobra.Command, args []string, _ string) (words []cobra.Completion, _ cobra.ShellCompDirective) {
	if len(args) == 1 {
		words = []cobra.Completion{"plain", "barter", "allowance"}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// exactly accepts any of these numbers of arguments.
func exactly(counts ...int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if slices.Contains(counts, len(args)) {
			return nil
		}
		return fmt.Errorf("%s: want %s", words.Plural(len(args), "argument"), c.UseLine())
	}
}

// policyOf checks a policy as far as a command can.
func policyOf(currency, policy, decay string) (control.PolicyCall, error) {
	q := control.PolicyCall{Currency: currency, Policy: policy}
	if _, err := node.PolicyKind(policy); err != nil {
		return q, err
	}
	var err error
	if q.Decay, err = protocol.ParseCredits(decay); err != nil || q.Decay < 0 {
		return q, exit.Fail(exit.Usage, "", "--decay %q: want a fraction such as 0.01, at most six decimals", decay)
	}
	return q, nil
}

func showPolicies(c *cobra.Command) error {
	var v control.PoliciesView
	if err := askBank(c, control.Policies, struct{}{}, &v); err != nil {
		return err
	}
	rows := [][]string{{"currency", "policy", "decay per day"}}
	for _, p := range v.Policies {
		rows = append(rows, []string{p.Currency, p.Policy, p.Decay.String()})
	}
	return cli.Show(c, v, func(w io.Writer) {
		cli.Table(w, rows...)
		for _, r := range v.Rates {
			fmt.Fprintf(w, "  1 %s buys %s %s\n", r.From, r.Rate, r.To)
		}
		if t := node.TroubleIn(v); t.Words != "" {
			fmt.Fprintf(w, "  %s: %s\n", t.Words, t.Help)
		}
	})
}

func newBankTransfer() *cobra.Command {
	var q control.TransferCall
	unit := 1
	c := &cobra.Command{
		Use: "transfer FROM TO AMOUNT", Short: "Move money between two accounts", Args: cobra.ExactArgs(3), GroupID: "money",
		Long: `Move money between two accounts. A transfer to .issuer takes back money that was credited by
mistake. FROM's overdraft applies; a frozen account may pay, since its operator decides.
--contract and --unit name a disputed job. After a crash the same command completes the same
transfer.`,
		Example: "  ramp bank transfer ann group:A 12.50 --ref 'half of job 7'", ValidArgsFunction: cli.Accounts(2),
		RunE: func(c *cobra.Command, args []string) error {
			q.From, q.To = args[0], args[1]
			var err error
			if q.Amount, err = cli.AmountOf("AMOUNT", args[2]); err != nil {
				return err
			}
			if c.Flags().Changed("unit") && q.Contract == "" {
				return exit.Fail(exit.Usage, "name it with --contract", "--unit %d: a unit needs its contract", unit)
			}
			if q.Unit, err = unitOf(unit); err != nil {
				return err
			}
			return orderMoney(c, control.Transfer, func(key string) control.TransferCall { q.Key = key; return q }, func(e control.OperatorEntry) error {
				return cli.ShowLine(c, e, "moved %s from %s to %s (entry %d)", q.Amount.Cents(), q.From, q.To, e.Entry)
			})
		},
	}
	flagCurrency(c, &q.Currency)
	flagRef(c, &q.Ref)
	c.Flags().StringVar((*string)(&q.Contract), "contract", "", "contract `ID` of a disputed job")
	c.Flags().IntVar(&unit, "unit", unit, "its unit `N`, counted from 1")
	return c
}

func newBankAllowance() *cobra.Command {
	c := &cobra.Command{Use: "allowance", Short: "Give accounts an income", GroupID: "rules"}
	var q control.AllowanceCall
	set := &cobra.Command{
		Use: "set ACCOUNT PER-DAY", Short: "Set the daily income of an account; 0 ends it", Args: cobra.ExactArgs(2),
		Example: "  ramp bank allowance set ann 24", ValidArgsFunction: cli.Accounts(1),
		RunE: func(c *cobra.Command, args []string) error {
			q.Account = args[0]
			var err error
			if q.PerDay, err = cli.AmountOrZero("PER-DAY", args[1]); err != nil {
				return err
			}
			return operate(c, control.SetAllowance, q, "%s gets %s a day", args[0], q.PerDay.Cents())
		},
	}
	flagCurrency(set, &q.Currency)
	flagRef(set, &q.Ref)
	c.AddCommand(set)
	return c
}

func newBankRate() *cobra.Command {
	c := &cobra.Command{Use: "rate", Short: "Set exchange rates between the bank's currencies", GroupID: "rules"}
	var ref string
	set := &cobra.Command{
		Use: "set FROM TO RATE", Short: "Set how much of TO one credit of FROM buys; 0 ends the exchange", Args: cobra.ExactArgs(3),
		Long: `Set how much of TO one credit of FROM buys. The account .exchange is the other side of every
exchange; 'ramp bank credit' and 'ramp bank account overdraft' fund it. Quotes that were given
remain valid until they expire.`,
		Example: "  ramp bank rate set CPU GPU 0.125",
		RunE: func(c *cobra.Command, args []string) error {
			q := control.RateCall{From: args[0], To: args[1], Ref: ref}
			var err error
			if q.Rate, err = cli.AmountOrZero("RATE", args[2]); err != nil {
				return err
			}
			return operate(c, control.SetRate, q, "1 %s buys %s %s", q.From, q.Rate, q.To)
		},
	}
	flagRef(set, &ref)
	c.AddCommand(set)
	return c
}

// orderMoney gives a bank an order that moves money and prints its answer. The ledger remembers the
// order until its answer was printed: if this command is killed before, the same command finds it.
func orderMoney[Q any](c *cobra.Command, call control.Endpoint[Q, control.OperatorEntry], order func(key string) Q, print func(e control.OperatorEntry) error) error {
	agent, done, err := cli.OpenBank(c)
	if err != nil {
		return err
	}
	defer done()
	key := control.CommandKey()
	var e control.OperatorEntry
	if err := call.Ask(c.Context(), agent, order(key), &e); err != nil {
		return err
	}
	if e.Again {
		fmt.Fprintf(cli.Stderr(c), "note: an interrupted command ordered this already: it is entry %d of %s; repeat the command to order it once more\n",
			e.Entry, words.At(e.Time))
	}
	if err := print(e); err != nil || !cli.WasShown(c) {
		return err
	}
	_ = control.Confirm.Ask(c.Context(), agent, control.KeyCall{Key: key}, nil) // if it fails, the next such command prints the note above
	return nil
}

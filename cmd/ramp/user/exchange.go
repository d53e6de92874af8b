package user

import (
	"fmt"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
)

func newUserExchange() *cobra.Command {
	var q control.ExchangeCall
	var least string
	c := &cobra.Command{
		Use: "exchange FROM TO AMOUNT", Short: "Exchange one currency for another at a bank's quoted rate", Args: cobra.ExactArgs(3), GroupID: "money",
		Long: `Ask a bank how much of the currency TO it gives for AMOUNT of FROM. The bank signs its quote,
which is good for a minute. With --least the quote is carried out if it gives at least that
much: either both currencies move or neither does. Without it nothing is exchanged. Ends with 3
if the quote gives less, and with 4 if the bank refuses.

It is safe to repeat: after a crash the same command completes the same exchange. An --id is
carried out once, ever.`,
		Example: "  ramp user exchange CPU GPU 100 --least 25",
		RunE: func(c *cobra.Command, args []string) error {
			q.From, q.To = args[0], args[1]
			var err error
			if q.Gives, err = cli.AmountOf("AMOUNT", args[2]); err != nil {
				return err
			}
			if least != "" {
				if q.Least, err = cli.AmountOf("--least", least); err != nil {
					return err
				}
			}
			if q.ID != "" && !control.ValidID(q.ID, control.MaxID) {
				return exit.Fail(exit.Usage, "", "--id %q: want 1..%d letters, digits, '.', '_' or '-'", q.ID, control.MaxID)
			}
			return runExchange(c, q)
		},
	}
	c.Flags().StringVar(&least, "least", "", "exchange if it gives at least `C` of TO")
	c.Flags().StringVar(&q.Bank, "bank", "", "name or agent `ID` of the bank (default: the first that exchanges these)")
	c.Flags().StringVar(&q.ID, "id", "", "`ID` of the order; reusing an ID never exchanges twice")
	return c
}

// runExchange quotes, or exchanges once. The agent remembers the order until its answer was
// printed: if this command is killed before, the same command finds it.
func runExchange(c *cobra.Command, q control.ExchangeCall) error {
	agent, done, err := cli.OpenUser(c)
	if err != nil {
		return err
	}
	defer done()
	q.Key = control.CommandKey()
	var x control.Exchanged
	stop := cli.Awaiting(c, "asking the bank", control.AnswerTime)
	err = control.Exchange.Ask(c.Context(), agent, q, &x)
	stop()
	switch {
	case err != nil:
		return err
	case x.Again && q.ID == "":
		fmt.Fprintf(cli.Stderr(c), "note: an interrupted command ordered this already: it is entry %d; repeat the command to order it once more\n", x.Entry)
	case x.Again:
		fmt.Fprintf(cli.Stderr(c), "note: exchange %s was done before, as entry %d\n", q.ID, x.Entry)
	}
	if err := printExchange(c, x); err != nil || !cli.WasShown(c) || q.ID != "" || q.Least == 0 {
		return err
	}
	_ = control.Confirm.Ask(c.Context(), agent, control.KeyCall{Key: q.Key}, nil) // if it fails, the next such command prints the note above
	return nil
}

func printExchange(c *cobra.Command, x control.Exchanged) error {
	if cli.WantsJSON(c) {
		return cli.PrintJSON(cli.Stdout(c), x)
	}
	if x.Entry == 0 {
		_, err := fmt.Fprintf(cli.Stdout(c), "%s quotes: %s %s buys %s %s, until %s; nothing is exchanged (--least %s does it)\n",
			x.Bank.Name(), x.Gives, x.From, x.Gets, x.To, words.At(x.Until), x.Gets)
		return err
	}
	_, err := fmt.Fprintf(cli.Stdout(c), "exchanged %s %s for %s %s at %s (entry %d, exchange %s)\n", x.Gives, x.From, x.Gets, x.To, x.Bank.Name(), x.Entry, x.ID)
	return err
}

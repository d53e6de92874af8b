package user

import (
	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/node"
	"ramp/cmd/ramp/cli"
	"ramp/protocol/message"
)

func newUserAgree() *cobra.Command {
	return judging("agree", "Accept the usage record of a metered purchase", true, `Countersign the usage record that a seller filed for a metered purchase, which pays what it says
is due. You need this only if the agent leaves the decision to you (ask_usage in its
configuration); otherwise it accepts every record that the contract allows. Ends with 3 if no
record waits, with 4 if the bank refuses, and with 5 if the bank does not answer within 10 s;
the agent then keeps trying.`)
}

func newUserDispute() *cobra.Command {
	return judging("dispute", "Dispute the usage record of a metered purchase", false, `Dispute the usage record that a seller filed for a metered purchase. The money stays held until
the bank's operator decides how much is paid. You need this only if the agent leaves the
decision to you (ask_usage in its configuration), within an hour after the record was filed;
silence counts as agreement. Exit codes are those of 'ramp user agree'.`)
}

func judging(verb, short string, agree bool, long string) *cobra.Command {
	q := control.UsageCall{Agree: agree}
	c := &cobra.Command{
		Use: verb + " ID", Short: short, Long: long, Args: cobra.ExactArgs(1), GroupID: "money",
		Example: "  ramp user " + verb + " p23", ValidArgsFunction: cli.PurchaseID,
		RunE: func(c *cobra.Command, args []string) error {
			return withID(c, cli.OpenUser, wholePurchase, args[0], func(agent *control.Client, id string) error {
				defer cli.Awaiting(c, "waiting for the bank", node.WordTime)()
				q.ID = id
				var p message.Purchase
				if err := control.Usage.Ask(c.Context(), agent, q, &p); err != nil {
					return err
				}
				outcome := "disputed usage of %s; the bank's operator decides how much is paid"
				if agree {
					outcome = "agreed to the usage of %s; the amount due is paid"
				}
				return cli.ShowLine(c, cli.AsShown(p), outcome, cli.NameOf(p))
			})
		},
	}
	cli.UnitVar(c.Flags(), &q.Unit, "only unit `N`, counted from 1 (default: all that wait)")
	if !agree {
		c.Flags().StringVar(&q.Why, "why", "", "the reason, for the bank's operator")
	}
	return c
}

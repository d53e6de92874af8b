package resource

import (
	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/cmd/ramp/cli"
	"ramp/protocol/message"
)

// askBalance gets the balances of all agents of a site.
func askBalance(c *cobra.Command, list *[]message.Balance) error {
	defer cli.Awaiting(c, "asking the banks", control.AnswerTime)()
	*list = []message.Balance{} // in JSON an empty list, not null
	paths, err := cli.Fleet(c)
	for i := 0; err == nil && i < len(paths); i++ {
		var own []message.Balance
		err = cli.AskResourceAt(c, paths[i], control.Balance, struct{}{}, &own)
		*list = append(*list, own...)
	}
	return err
}

func askStatements(c *cobra.Command, q control.StatementCall, list *[]control.BankStatement) error {
	defer cli.Awaiting(c, "asking the banks", control.AnswerTime)()
	return askResource(c, control.Statements, q, list)
}

func newResourceReceipt() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use: "receipt ID --out DIR", Short: "Write the signed contract and receipt of a sale to files", GroupID: "money",
		Long: `Write the contract of a sale as both sides signed it (sale-1.p7m: the seller's signature
outside, the buyer's inside), the bank's receipt (receipt.p7m), its place in the bank's log
(proof.json) and ca.pem, and print the commands that verify them. ID is that of the reservation
or of the contract. It reads only the journal.`,
		Example: "  ramp resource receipt atlas-2f921340-0-2 --out sold",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var f control.SignedFiles
			if err := askResource(c, control.SignedParts, control.IDCall{ID: args[0]}, &f); err != nil {
				return err
			}
			return cli.WriteReceipt(c, out, f)
		},
	}
	c.Flags().StringVar(&out, "out", "", "write to `DIR`, created if missing")
	_ = c.MarkFlagRequired("out") // the flag is there: it was made above
	return c
}

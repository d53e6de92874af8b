package bank

import (
	"fmt"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol"
)

func newBankDispute() *cobra.Command {
	c := &cobra.Command{Use: "dispute", Short: "Decide disputed usage records", GroupID: "money"}
	c.AddCommand(newBankDisputeList(), newBankDisputeSettle())
	return c
}

func newBankDisputeList() *cobra.Command {
	return cli.Watched(&cobra.Command{
		Use: "list", Short: "List unpaid usage records, filed or disputed", Args: cobra.NoArgs,
		Example: "  ramp bank dispute list --json",
		RunE: func(c *cobra.Command, _ []string) error {
			return showBank(c, control.Claims, struct{}{}, claimRows)
		},
	})
}

func claimRows(list []control.ClaimView) [][]string {
	rows := [][]string{{"contract", "unit", "held", "due", "user", "seller", "state"}}
	for _, v := range list {
		state := v.State
		if v.State == "filed" && !v.Until.IsZero() {
			state += ", agreed by silence at " + words.AtMinute(v.Until)
		}
		if v.Why != "" {
			state += ": " + v.Why
		}
		rows = append(rows, []string{
			string(v.Contract[:min(12, len(v.Contract))]), fmt.Sprint(v.Unit + 1), v.Held.Cents(), v.Due.Cents() + " " + v.Currency,
			v.User.Name(), v.Seller.Name(), state,
		})
	}
	return rows
}

func newBankDisputeSettle() *cobra.Command {
	var q control.ArbitrateCall
	unit := 1
	c := &cobra.Command{
		Use: "settle CONTRACT AMOUNT", Short: "Pay AMOUNT of a unit's hold and release the rest", Args: cobra.ExactArgs(2),
		Long: `Decide a usage record: pay AMOUNT, from 0 to what is held, to the seller and release the rest.
CONTRACT is a contract ID or a prefix of one in 'ramp bank dispute list'. The decision is a
signed entry of the ledger, and the bank's receipt informs both parties. It is final; correct a
mistake by a transfer. Ends with 2 if no record of the contract waits, and with 4 if AMOUNT
exceeds the hold or the unit has ended.`,
		Example: "  ramp bank dispute settle 25a6514d7191 1.5 --ref 'half of it ran'",
		RunE: func(c *cobra.Command, args []string) error {
			q.Contract = protocol.ContractID(args[0])
			var err error
			if q.Paid, err = cli.AmountOrZero("AMOUNT", args[1]); err != nil {
				return err
			}
			if q.Unit, err = unitOf(unit); err != nil {
				return err
			}
			if q.Ref == "" {
				return exit.Fail(exit.Usage, "it is the reason that the entry records", "--ref is required")
			}
			var done control.Arbitrated
			if err := askBank(c, control.Arbitrate, q, &done); err != nil {
				return err
			}
			return cli.ShowLine(c, done, "unit %d of contract %.12s: %s paid, the rest of its hold released (entry %d)", unit, done.Contract, done.Paid.Cents(), done.Entry)
		},
	}
	c.Flags().IntVar(&unit, "unit", 1, "unit `N`, counted from 1")
	c.Flags().StringVar(&q.Ref, "ref", "", "the reason, kept in the entry; required")
	return c
}

// unitOf converts the number of a unit, which people count from 1 and daemons from 0.
func unitOf(number int) (int, error) {
	if number < 1 || number > protocol.MaxUnits {
		return 0, exit.Fail(exit.Usage, "", "--unit %d: want 1..%d", number, protocol.MaxUnits)
	}
	return number - 1, nil
}

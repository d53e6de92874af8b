package bank

import (
	"fmt"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
)

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

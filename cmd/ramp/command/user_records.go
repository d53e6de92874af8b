package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"ramp/protocol/message"
)

func newUserList() *cobra.Command {
	var q lastCall
	c := &cobra.Command{
		Use: "list", Short: "List the purchases there were", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if q.Limit < 0 {
				return fail(exitUsage, "", "--limit %d: want zero or more", q.Limit)
			}
			agent, done, err := openUserRecords(c)
			if err != nil {
				return err
			}
			defer done()
			var list []message.Purchase
			if err := agent.call(c.Context(), "POST", "/v1/purchases", q, &list); err != nil {
				return err
			}
			if wantsJSON(c) {
				for i, p := range list {
					list[i] = asShown(p)
				}
				return printJSON(stdout(c), list)
			}
			rows := [][]string{{"id", "request", "when (UTC)", "state", "units", "paid"}}
			for _, p := range list {
				paid := "-"
				if p.Settled {
					paid = paidWords(p)
				}
				rows = append(rows, []string{p.ID, p.RFQ, clockTime(p.Created), standsAs(p), fmt.Sprint(len(p.Units)), paid})
			}
			table(stdout(c), rows...)
			return nil
		},
	}
	c.Flags().IntVar(&q.Limit, "limit", 0, "the last so many; 0: all")
	return c
}

func newUserShow() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show one purchase, from the journal", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			agent, done, err := openUserRecords(c)
			if err != nil {
				return err
			}
			defer done()
			id, err := wholePurchase(c, agent, args[0])
			if err != nil {
				return err
			}
			var p message.Purchase
			if err := agent.call(c.Context(), "POST", "/v1/purchase", idCall{ID: id}, &p); err != nil {
				return err
			}
			if wantsJSON(c) {
				return printJSON(stdout(c), asShown(p))
			}
			printPurchase(stdout(c), p)
			return nil
		},
	}
}

func newUserTrace() *cobra.Command {
	return &cobra.Command{
		Use: "trace ID", Short: "Print what was said for a purchase, as FIPA-ACL strings", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			agent, done, err := openUserRecords(c)
			if err != nil {
				return err
			}
			defer done()
			id, err := wholePurchase(c, agent, args[0])
			if err != nil {
				return err
			}
			var list []traced
			if err := agent.call(c.Context(), "POST", "/v1/trace", idCall{ID: id}, &list); err != nil {
				return err
			}
			if wantsJSON(c) {
				return printJSON(stdout(c), list)
			}
			for _, t := range list {
				fmt.Fprintf(stdout(c), "; %s %s\n%s\n", t.At.UTC().Format("2006-01-02T15:04:05.000000Z"), t.Dir, t.Text)
			}
			return nil
		},
	}
}

func newUserReceipt() *cobra.Command {
	var out string
	var proof bool
	c := &cobra.Command{
		Use: "receipt ID --out DIR", Short: "Write the signed contract and receipt of a purchase to files",
		Long: `Writes sale-1.p7m … (one per seller: the outer layer is the seller's signature, the
inner the user's), receipt.p7m (the bank's) and ca.pem, and prints the openssl
commands that verify them. The receipt's place in the bank's log, which the agent asks
for by itself once something is decided, goes to proof.json: 'ramp bank verify DIR'.
All this needs only the journal. With --proof the bank is asked for a proof as of now.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			open := openUserRecords
			if proof {
				open = openUser
			}
			agent, done, err := open(c)
			if err != nil {
				return err
			}
			defer done()
			id, err := wholePurchase(c, agent, args[0])
			if err != nil {
				return err
			}
			var f signedFiles
			if err := agent.call(c.Context(), "POST", "/v1/signed", idCall{ID: id}, &f); err != nil {
				return err
			}
			if proof {
				if f.Proof, err = fetchProof(c, agent, f); err != nil {
					return err
				}
			}
			return writeReceipt(c, out, f)
		},
	}
	c.Flags().StringVar(&out, "out", "", "directory to write to; it is made if it is not there")
	c.Flags().BoolVar(&proof, "proof", false, "ask the bank for the receipt's proof as of now, and check it")
	_ = c.MarkFlagRequired("out") // the flag is there: it was made above
	return c
}

package user

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/order"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol/message"
)

func newUserList() *cobra.Command {
	var q control.LastCall
	c := &cobra.Command{
		Use: "list", Short: "List past purchases", Args: cobra.NoArgs, GroupID: "records",
		Long: `List the agent's purchases, oldest first, with their outcomes and costs. It reads only the
journal.`,
		Example: "  ramp user list\n  ramp user list --limit 10 --watch",
		RunE: func(c *cobra.Command, _ []string) error {
			return listed(c, control.Purchases, q, func(p message.Purchase) string { return p.ID }, func(list []message.Purchase, short []string) [][]string {
				rows := [][]string{{"id", "name", "when (" + words.Zone() + ")", "state", "units", "paid"}}
				for i, p := range list {
					list[i] = cli.AsShown(p)
					paid := "-"
					if p.Settled {
						paid = order.PaidWords(p)
					}
					rows = append(rows, []string{short[i], p.RFQ, words.ClockTime(p.Created), cli.StandsAs(p), fmt.Sprint(len(p.Units)), paid})
				}
				return rows
			})
		},
	}
	c.Flags().IntVar(&q.Limit, "limit", 0, "show only the last `N`; 0: all")
	return cli.Watched(c)
}

// listed asks for the last purchases or runs, and prints them with short IDs.
func listed[A any](c *cobra.Command, call control.Endpoint[control.LastCall, []A], q control.LastCall, idOf func(A) string, rows func(list []A, short []string) [][]string) error {
	agent, done, err := cli.OpenUserRecords(c)
	if err != nil {
		return err
	}
	defer done()
	var list []A
	if err := call.Ask(c.Context(), agent, q, &list); err != nil {
		return err
	}
	ids := make([]string, len(list))
	for i, a := range list {
		ids[i] = idOf(a)
	}
	return cli.ShowTable(c, list, rows(list, cli.ShortIDs(agent, ids...)))
}

func newUserShow() *cobra.Command {
	return cli.Watched(&cobra.Command{
		Use: "show ID", Short: "Show one purchase", Args: cobra.ExactArgs(1), GroupID: "records",
		Long: `Show one purchase: its rounds, units and prices, and if it failed, why and what would help. It
reads only the journal. --json shows more.`,
		Example: "  ramp user show p23e5 --json", ValidArgsFunction: cli.PurchaseID,
		RunE: func(c *cobra.Command, args []string) error {
			return withID(c, cli.OpenUserRecords, wholePurchase, args[0], func(agent *control.Client, id string) error {
				var p message.Purchase
				if err := control.Purchase.Ask(c.Context(), agent, control.IDCall{ID: id}, &p); err != nil {
					return err
				}
				return showPurchase(c, agent, p)
			})
		},
	})
}

func newUserTrace() *cobra.Command {
	return &cobra.Command{
		Use: "trace ID", Short: "Print the messages of a purchase as FIPA-ACL strings", Args: cobra.ExactArgs(1), GroupID: "records",
		Long: `Print the messages that the agent exchanged for a purchase as FIPA-ACL strings, each below a
comment with its time and direction ('out' or 'in'). 'ramp acl parse' reads the output. It reads
only the journal, which keeps the newest 256 MiB of messages.`,
		Example: "  ramp user trace p23e5", ValidArgsFunction: cli.PurchaseID,
		RunE: func(c *cobra.Command, args []string) error {
			return withID(c, cli.OpenUserRecords, wholePurchase, args[0], func(agent *control.Client, id string) error {
				var list []control.Traced
				if err := control.Trace.Ask(c.Context(), agent, control.IDCall{ID: id}, &list); err != nil {
					return err
				}
				return cli.Show(c, list, func(w io.Writer) {
					for _, t := range list {
						fmt.Fprintf(w, "; %s %s\n%s\n", t.At.Local().Format("2006-01-02 15:04:05.000000 MST"), t.Dir, t.Text)
					}
				})
			})
		},
	}
}

func newUserReceipt() *cobra.Command {
	var out string
	var proof bool
	c := &cobra.Command{
		Use: "receipt ID --out DIR", Short: "Write the signed contract and receipt of a purchase to files", GroupID: "records",
		Long: `Write one signed contract per seller (sale-1.p7m, ...: the seller's signature outside, the
user's inside), the bank's receipt (receipt.p7m), the receipt's place in the bank's log
(proof.json) and ca.pem, and print the openssl commands that verify them. 'ramp bank verify DIR'
checks all of them. If the proof has not come yet, a running agent waits for it for at most
10 s; otherwise proof.json is missing, and the command says so. It reads only the journal;
--proof asks the bank for a proof as of now, from the head in the agent's heads.json, and stores
the new one.`,
		Example: "  ramp user receipt p23e5 --out receipt\n  ramp user receipt p23e5 --out receipt --proof",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: cli.PurchaseID,
		RunE: func(c *cobra.Command, args []string) error {
			open := cli.OpenUserRecords
			if proof {
				open = cli.OpenUser
			}
			return withID(c, open, wholePurchase, args[0], func(agent *control.Client, id string) error {
				defer cli.Awaiting(c, "waiting for the bank's proof", control.ProofTime)()
				var f control.SignedFiles
				err := control.SignedParts.Ask(c.Context(), agent, control.IDCall{ID: id}, &f)
				if err == nil && proof {
					f.Proof, err = cli.FetchProof(c, agent, f)
				}
				if err != nil {
					return err
				}
				return cli.WriteReceipt(c, out, f)
			})
		},
	}
	c.Flags().StringVar(&out, "out", "", "write to `DIR`, created if missing")
	c.Flags().BoolVar(&proof, "proof", false, "ask the bank for a proof as of now, and check it")
	_ = c.MarkFlagRequired("out") // the flag is there: it was made above
	return c
}

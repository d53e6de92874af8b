package command

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/resource"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// askSeller makes one call about money to the resource agent.
func askSeller(c *cobra.Command, path string, q, v any) error {
	defer awaiting(c, "asking the banks", answerTime)()
	list, ok := v.(*[]message.Balance)
	if !ok {
		return askResource(c, path, q, v)
	}
	*list = []message.Balance{} // in JSON an empty list, not null
	paths, err := fleet(c)
	for i := 0; err == nil && i < len(paths); i++ { // balances are of all agents of a site
		var own []message.Balance
		err = askResourceAt(c, paths[i], path, q, &own)
		*list = append(*list, own...)
	}
	return err
}

// ownBanks are those that pay the seller. A daemon that began just now has met none of
// them yet: then it waits until it has, or nobody is there.
func (r *resourceNode) ownBanks(ctx context.Context) (banks []protocol.AgentID, err error) {
	if r.mesh == nil {
		return nil, fail(exitUnreachable, "start it: 'ramp resource serve'", "the banks are asked by the agent's daemon, which does not run")
	}
	err = r.with(ctx, func(now time.Time, role *resource.Role) {
		for _, b := range role.Status(now).Banks {
			if !slices.Contains(banks, b.Bank) {
				banks = append(banks, b.Bank)
			}
		}
	})
	if err == nil && len(banks) == 0 {
		err = fail(exitUsage, "name them in its configuration, under 'resource: pay:'", "the agent deals with no bank")
	}
	if err != nil {
		return nil, err
	}
	join, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	_ = r.mesh.Joined(join) // if not, the bank that is asked cannot be reached, and that is the answer
	return banks, nil
}

func newResourceReceipt() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use: "receipt ID --out DIR", Short: "Write the signed contract and receipt of a sale to files",
		Long: `Writes the contract of a sale as buyer and seller signed it (sale-1.p7m: the outer layer
is the seller's signature, the inner the buyer's), receipt.p7m (the bank's), its place
in the bank's log (proof.json) and ca.pem, and prints the commands that verify them.
ID is of the reservation, or of the contract. All this needs only the journal.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var f signedFiles
			if err := askResource(c, "/v1/signed", idCall{ID: args[0]}, &f); err != nil {
				return err
			}
			return writeReceipt(c, out, f)
		},
	}
	c.Flags().StringVar(&out, "out", "", "directory to write to; it is made if it is not there")
	_ = c.MarkFlagRequired("out") // the flag is there: it was made above
	return c
}

// signed are the documents of a sale.
func (r *resourceNode) signed(ctx context.Context, q idCall) (signedFiles, error) {
	id, err := r.contractOf(ctx, q.ID)
	if err != nil {
		return signedFiles{}, err
	}
	var f signedFiles
	err = reserve.EachSold(r.journal, func(p reserve.Papers) error {
		if p.Decided.Contract != id {
			return nil
		}
		f.Sales, f.Receipt = [][]byte{p.Sale}, p.Receipt
		return errFound
	})
	switch {
	case err == nil:
		return f, fail(exitNothing, "", "the bank has not decided %s", q.ID)
	case !errors.Is(err, errFound):
		return f, err
	}
	if f.Anchors, err = os.ReadFile(r.cfg.path(r.cfg.Trust)); err != nil {
		return f, err
	}
	f.Proof, err = proofOf(r.journal, id, f.Receipt)
	return f, err
}

// contractOf is the contract that is meant, or that a reservation was sold by.
func (r *resourceNode) contractOf(ctx context.Context, id string) (protocol.ContractID, error) {
	var lines []message.ReservationLine
	if err := r.with(ctx, func(_ time.Time, role *resource.Role) { lines = role.Reservations() }); err != nil {
		return "", err
	}
	for _, l := range lines {
		switch {
		case id != l.ID && id != string(l.Contract):
		case l.Contract == "":
			return "", fail(exitNothing, "", "reservation %s was never sold", id)
		default:
			return l.Contract, nil
		}
	}
	return "", fail(exitUsage, "'ramp resource reservations' shows those that there are", "no reservation or contract %q", id)
}

package node

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/receipts"
	"ramp/agents/resource"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// ownBanks are those that pay the seller. A daemon that began just now has met none of
// them yet: then it waits until it has, or nobody is there.
func (r *Resource) ownBanks(ctx context.Context) (banks []protocol.AgentID, err error) {
	if r.Mesh == nil {
		return nil, exit.Fail(exit.Unreachable, "start it: 'ramp resource serve'", "only the agent's daemon can ask the banks, and it is not running")
	}
	err = r.with(ctx, func(now time.Time, role *resource.Role) {
		for _, b := range role.Status(now).Banks {
			if !slices.Contains(banks, b.Bank) {
				banks = append(banks, b.Bank)
			}
		}
	})
	if err == nil && len(banks) == 0 {
		err = exit.Fail(exit.Usage, "name one in its config.yaml, under 'resource: pay:'", "the agent has no bank")
	}
	if err != nil {
		return nil, err
	}
	join, cancel := context.WithTimeout(ctx, JoinTime)
	defer cancel()
	_ = r.Mesh.Acquainted(join) // if not, the bank that is asked cannot be reached, and that is the answer
	return banks, nil
}

// signed are the documents of a sale.
func (r *Resource) signed(ctx context.Context, q control.IDCall) (control.SignedFiles, error) {
	id, err := r.contractOf(ctx, q.ID)
	if err != nil {
		return control.SignedFiles{}, err
	}
	var f control.SignedFiles
	err = reserve.EachSold(r.journal, func(p reserve.DecidedContract) error {
		if p.Decided.Contract != id {
			return nil
		}
		f.Sales, f.Receipt = [][]byte{p.Sale}, p.Receipt
		return errFound
	})
	switch {
	case err == nil:
		return f, exit.Fail(exit.Nothing, "", "the bank has not decided %s", q.ID)
	case !errors.Is(err, errFound):
		return f, err
	}
	if f.Anchors, err = os.ReadFile(r.Cfg.Path(r.Cfg.Trust)); err != nil {
		return f, err
	}
	f.Proof, err = receipts.ProofOf(r.journal, id, f.Receipt)
	return f, err
}

// contractOf is the contract that is meant, or that a reservation was sold by.
func (r *Resource) contractOf(ctx context.Context, id string) (protocol.ContractID, error) {
	var lines []message.ReservationLine
	if err := r.with(ctx, func(_ time.Time, role *resource.Role) { lines = role.Reservations() }); err != nil {
		return "", err
	}
	for _, l := range lines {
		switch {
		case id != l.ID && id != string(l.Contract):
		case l.Contract == "":
			return "", exit.Fail(exit.Nothing, "", "reservation %s was never sold", id)
		default:
			return l.Contract, nil
		}
	}
	return "", exit.Fail(exit.Usage, "'ramp resource reservations' shows those that there are", "no reservation or contract %q", id)
}

package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents"
	"ramp/agents/bank"
	"ramp/bank/ledger"
	"ramp/protocol"
)

// claimView is a usage record that is filed and not paid, in JSON; the names are
// fixed.
type claimView struct {
	Contract protocol.ContractID `json:"contract"`
	Unit     int                 `json:"unit"`
	State    string              `json:"state"` // filed or disputed
	User     protocol.AgentID    `json:"user"`
	Seller   protocol.AgentID    `json:"seller"`
	Currency string              `json:"currency"`
	Held     protocol.Credits    `json:"held"`
	Due      protocol.Credits    `json:"due"`            // by the record
	Until    time.Time           `json:"until,omitzero"` // of filed: when silence agrees
	Record   string              `json:"record"`         // hash of the signed record
}

// arbitrateCall decides what a held unit is paid.
type arbitrateCall struct {
	Contract protocol.ContractID `json:"contract"` // or the beginning of one that has a claim
	Unit     int                 `json:"unit"`
	Paid     protocol.Credits    `json:"paid"`
	Ref      string              `json:"ref"`
}

// arbitrated is what an arbitration came to.
type arbitrated struct {
	Entry    uint64              `json:"entry"`
	Contract protocol.ContractID `json:"contract"`
	Unit     int                 `json:"unit"`
	Paid     protocol.Credits    `json:"paid"`
	Time     time.Time           `json:"time"`
}

func (b *bankNode) disputeRoutes(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/claims", handler(b.claims))
	mux.HandleFunc("POST /v1/arbitrate", handler(b.arbitrate))
}

func (b *bankNode) claims(ctx context.Context, _ struct{}) ([]claimView, error) {
	list := []claimView{}
	err := b.read(ctx, func(_ time.Time, l *ledger.Ledger) {
		for _, c := range l.Claims() {
			v := claimView{
				Contract: c.Contract, Unit: c.Unit, State: "disputed", User: c.User, Seller: c.Seller,
				Currency: c.Hold.Currency, Held: c.Hold.Amount, Due: c.Due, Record: c.Hold.Ref,
			}
			if !c.Disputed {
				v.State, v.Until = "filed", c.Hold.Until
			}
			list = append(list, v)
		}
	})
	return list, err
}

// arbitrate decides a unit; what memory has let go is asked of the store first.
func (b *bankNode) arbitrate(ctx context.Context, q arbitrateCall) (arbitrated, error) {
	done, err := b.tryArbitrate(ctx, &q)
	if errors.Is(err, ledger.ErrAskStore) {
		found, asked := b.db.Outcome(q.Contract)
		if asked != nil {
			return done, asked
		}
		err = b.runner.Do(ctx, func(_ time.Time, r agents.Role) protocol.Output {
			asked = r.(*bank.Role).Recall(q.Contract, found)
			return protocol.Output{}
		})
		if err = errors.Join(err, asked); err == nil {
			done, err = b.tryArbitrate(ctx, &q)
		}
	}
	return done, err
}

func (b *bankNode) tryArbitrate(ctx context.Context, q *arbitrateCall) (arbitrated, error) {
	done := arbitrated{Unit: q.Unit, Paid: q.Paid}
	var refused error
	err := b.runner.Do(ctx, func(now time.Time, r agents.Role) protocol.Output {
		role := r.(*bank.Role)
		if q.Contract, refused = claimed(role.Ledger(), q.Contract); refused != nil {
			return protocol.Output{}
		}
		var receipt protocol.Receipt
		var out protocol.Output
		receipt, out, refused = role.Arbitrate(now, q.Contract, q.Unit, q.Paid, q.Ref)
		for _, e := range receipt.Ends {
			if e.Unit == q.Unit {
				done.Entry, done.Time = e.Entry, e.Time
			}
		}
		return out
	})
	done.Contract = q.Contract
	if refused != nil {
		return done, bankRefusal(refused)
	}
	return done, err
}

// claimed is the one contract with a claim that begins so; a whole ID is itself.
func claimed(l *ledger.Ledger, id protocol.ContractID) (protocol.ContractID, error) {
	const whole = 64
	if len(id) == whole {
		return id, nil
	}
	found := protocol.ContractID("")
	for _, c := range l.Claims() {
		if !strings.HasPrefix(string(c.Contract), string(id)) || c.Contract == found {
			continue
		}
		if found != "" || id == "" {
			return "", fail(exitUsage, "'ramp bank dispute list --json' has them whole", "contract %q: it begins more than one", id)
		}
		found = c.Contract
	}
	if found == "" {
		return "", fail(exitUsage, "'ramp bank dispute list' has those that wait", "contract %q: no usage record of one that begins so waits", id)
	}
	return found, nil
}

func newBankDispute() *cobra.Command {
	c := &cobra.Command{Use: "dispute", Short: "Decide what a disputed usage record is paid"}
	c.AddCommand(newBankDisputeList(), newBankDisputeSettle())
	return c
}

func newBankDisputeList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the usage records that are filed or disputed, and not paid", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var list []claimView
			if err := askBank(c, "/v1/claims", nil, &list); err != nil {
				return err
			}
			if wantsJSON(c) {
				return printJSON(stdout(c), list)
			}
			rows := [][]string{{"contract", "unit", "state", "held", "due", "currency", "silence agrees (UTC)", "user", "seller"}}
			for _, v := range list {
				rows = append(rows, []string{
					string(v.Contract[:min(12, len(v.Contract))]), fmt.Sprint(v.Unit + 1), v.State, v.Held.String(), v.Due.String(), v.Currency,
					secondTime(v.Until), v.User.Name(), v.Seller.Name(),
				})
			}
			table(stdout(c), rows...)
			return nil
		},
	}
}

func newBankDisputeSettle() *cobra.Command {
	var q arbitrateCall
	unit := 1
	c := &cobra.Command{
		Use: "settle CONTRACT AMOUNT", Short: "Decide that AMOUNT of what a unit holds is paid; the rest is free again", Args: cobra.ExactArgs(2),
		Long: `Decides a usage record: AMOUNT, from 0 to what is held, is paid to the seller, and the
rest is free again. CONTRACT is a contract ID, or the beginning of one in 'ramp bank
dispute list'. The decision is a signed entry of the ledger, and both parties are
told by the bank's receipt. It is final: what is decided wrongly is put right by a
transfer.`,
		RunE: func(c *cobra.Command, args []string) error {
			q.Contract = protocol.ContractID(args[0])
			var err error
			if q.Paid, err = amountOrZero("AMOUNT", args[1]); err != nil {
				return err
			}
			if q.Unit, err = unitOf(unit); err != nil {
				return err
			}
			var done arbitrated
			if err := askBank(c, "/v1/arbitrate", q, &done); err != nil {
				return err
			}
			if wantsJSON(c) {
				return printJSON(stdout(c), done)
			}
			_, err = fmt.Fprintf(stdout(c), "unit %d of contract %.12s: %s paid, the rest of its hold is free again (entry %d)\n", unit, done.Contract, done.Paid, done.Entry)
			return err
		},
	}
	c.Flags().IntVar(&unit, "unit", 1, "the unit, from 1")
	c.Flags().StringVar(&q.Ref, "ref", "", "why, for the entry; it is needed")
	return c
}

// unitOf is what daemons call a unit, from 0, of one that a user numbers from 1.
func unitOf(number int) (int, error) {
	if number < 1 || number > protocol.MaxUnits {
		return 0, fail(exitUsage, "", "--unit %d: want 1..%d", number, protocol.MaxUnits)
	}
	return number - 1, nil
}

package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

// usageCall is an owner's word on usage records: of one unit from 1, or of all.
type usageCall struct {
	ID    string `json:"id"`
	Unit  int    `json:"unit"`
	Agree bool   `json:"agree"`
	Why   string `json:"why,omitempty"`
}

// wordTime is how long a bank has for the answer to an owner's word, while somebody waits.
const wordTime = 10 * time.Second

// usage takes the owner's word, and answers the purchase when the bank has answered.
func (u userAgent) usage(ctx context.Context, q usageCall) (message.Purchase, error) {
	p, err := u.show(ctx, idCall{ID: q.ID})
	if err != nil {
		return p, err
	}
	if err := mayJudge(p, q); err != nil {
		return p, err
	}
	told := map[int]bool{} // units of which the bank is told
	for _, u := range p.Units {
		told[u.Unit] = user.Judged(u) && q.about(u)
	}
	if err := u.order(ctx, message.OwnerWord{ID: q.ID, Unit: q.Unit - 1, Agree: q.Agree, Why: q.Why}); err != nil {
		return p, err
	}
	again := time.NewTicker(busyPause)
	defer again.Stop()
	late := time.After(wordTime)
	for {
		p, err = u.show(ctx, idCall{ID: q.ID})
		if err != nil || !slices.ContainsFunc(p.Units, func(u message.PurchasedUnit) bool { return u.Word != "" && told[u.Unit] }) {
			return p, cmp.Or(err, refusedWord(p, q, told))
		}
		select {
		case <-again.C:
		case <-late:
			return p, fail(exitUnreachable, "'ramp user show "+q.ID+"' tells when it has", "%s does not answer: your word on the usage of %s is kept, and said again until it does", p.Bank.Name(), q.ID)
		case <-ctx.Done():
			return p, ctx.Err()
		}
	}
}

func (q usageCall) about(u message.PurchasedUnit) bool { return q.Unit == 0 || u.Unit == q.Unit-1 }

// refusedWord is why the bank did not take a word on the units of which it was told; nil
// if it did.
func refusedWord(p message.Purchase, q usageCall, told map[int]bool) error {
	word := message.WordDispute
	if q.Agree {
		word = message.WordAgree
	}
	for _, u := range p.Units {
		if told[u.Unit] && user.Judged(u) && u.Heard != word {
			return fail(exitRefused, "", "%s", cmp.Or(p.Why, "the bank did not take it"))
		}
	}
	return nil
}

// mayJudge reports why there is nothing to agree to.
func mayJudge(p message.Purchase, q usageCall) error {
	switch {
	case q.Unit < 0 || q.Unit > len(p.Units):
		return fail(exitUsage, "", "purchase %s has units 1..%d, not %d", p.ID, len(p.Units), q.Unit)
	case !q.Agree && q.Why == "":
		return fail(exitUsage, "--why 'it printed nothing'", "a dispute needs a reason for the operator")
	case len(q.Why) > protocol.MaxWords:
		return fail(exitUsage, "", "--why of %d bytes: want at most %d", len(q.Why), protocol.MaxWords)
	}
	for _, unit := range p.Units {
		if user.Judged(unit) && q.about(unit) {
			return nil
		}
	}
	return fail(exitNothing, "records wait for their owner if the configuration has 'ask_usage: true' below user", "purchase %s has no usage record that waits for a word", p.ID)
}

func newUserAgree() *cobra.Command {
	c := judging("agree ID", "Countersign the usage record of what was metered", true)
	c.Long = `Countersigns the usage record that a seller has filed for a metered purchase: what it
says is due is paid. It is for agents that leave this to their owner (ask_usage in
their configuration); others do it by themselves, if the contract allows the record.`
	return c
}

func newUserDispute() *cobra.Command {
	c := judging("dispute ID", "Dispute the usage record of what was metered", false)
	c.Long = `Disputes the usage record that a seller has filed for a metered purchase. Its money
stays held until the bank's operator has decided what is paid of it. It is for agents
that leave this to their owner (ask_usage in their configuration), until an hour
after the record was filed; whoever says nothing agrees.`
	return c
}

func judging(use, short string, agree bool) *cobra.Command {
	q := usageCall{Agree: agree}
	c := &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			agent, done, err := openUser(c)
			if err != nil {
				return err
			}
			defer done()
			if q.ID, err = wholePurchase(c, agent, args[0]); err != nil {
				return err
			}
			defer awaiting(c, "waiting for the bank", wordTime)()
			var p message.Purchase
			if err := agent.call(c.Context(), "POST", "/v1/usage", q, &p); err != nil {
				return err
			}
			if wantsJSON(c) {
				return printJSON(stdout(c), asShown(p))
			}
			word := "disputed: the bank's operator decides what is paid"
			if agree {
				word = "agreed to: what is due is paid"
			}
			_, err = fmt.Fprintf(stdout(c), "the usage of %s is %s\n", nameOf(p), word)
			return err
		},
	}
	unitVar(c.Flags(), &q.Unit, "only this unit, from 1 (default: all that wait)")
	if !agree {
		c.Flags().StringVar(&q.Why, "why", "", "the reason, in words")
	}
	return c
}

package command

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"ramp/protocol"
	"ramp/protocol/message"
)

// exchangeCall asks for an exchange: of a quote, and to carry it out if it gives
// at least so much.
type exchangeCall struct {
	ID    string           `json:"id"`
	Bank  string           `json:"bank,omitempty"` // name or agent ID; none: the first that exchanges these
	From  string           `json:"from"`
	To    string           `json:"to"`
	Gives protocol.Credits `json:"gives"`
	Least protocol.Credits `json:"least,omitempty"` // zero: only a quote
}

// exchanged is a quote as its bank signed it, in JSON; the names are fixed.
type exchanged struct {
	ID    string           `json:"id"`
	Bank  protocol.AgentID `json:"bank"`
	From  string           `json:"from"`
	To    string           `json:"to"`
	Gives protocol.Credits `json:"gives"`
	Gets  protocol.Credits `json:"gets"`
	Until time.Time        `json:"until"`
	Entry uint64           `json:"entry,omitempty"` // that carried it out
	Quote []byte           `json:"quote"`           // signed, DER
}

// exchange asks the banks in turn for a quote, and carries out the first that it
// gets, if that is worth it. Asked again with the same ID it is the same exchange.
func (u userAgent) exchange(ctx context.Context, q exchangeCall) (exchanged, error) {
	self, banks, err := u.banks(ctx)
	if err != nil {
		return exchanged{}, err
	}
	refused := fail(exitUsage, "'ramp user balance' names the banks", "no bank %q is known", q.Bank)
	for _, bank := range banks {
		if q.Bank != "" && q.Bank != bank.Name() && q.Bank != string(bank) {
			continue
		}
		var x exchanged
		if x, refused = u.quoted(ctx, self, bank, q, message.QuoteRequest{ID: q.ID, From: q.From, To: q.To, Gives: q.Gives}); refused != nil {
			continue
		}
		switch {
		case q.Least == 0 || x.Entry != 0:
			return x, nil
		case x.Gets < q.Least:
			return x, fail(exitNothing, "", "%s %s buys %s %s, which is less than %s", x.Gives, x.From, x.Gets, x.To, q.Least)
		}
		return u.quoted(ctx, self, bank, q, message.ExchangeRequest{ID: q.ID})
	}
	return exchanged{}, refused
}

// quoted asks a bank, and holds that its signed answer is what was asked.
func (u userAgent) quoted(ctx context.Context, self, bank protocol.AgentID, q exchangeCall, body protocol.Body) (exchanged, error) {
	answer, err := u.asks.ask(ctx, u.runner, protocol.Message{
		Performative: protocol.Request, Sender: self, Receivers: []protocol.AgentID{bank}, Protocol: protocol.ProtocolRequest, Body: body,
	})
	if err != nil {
		return exchanged{}, err
	}
	switch got := answer.Body.(type) {
	case message.Quoted:
		n := got.Signed.Note
		if n.User != self || n.Bank != bank || got.Signed.Signer.ID != bank || n.ID != q.ID || n.From != q.From || n.To != q.To || n.Gives != q.Gives {
			return exchanged{}, fail(exitFailed, "", "%s answers with a quote for something else", bank.Name())
		}
		return exchanged{n.ID, bank, n.From, n.To, n.Gives, n.Gets, n.Until, n.Entry, got.Signed.DER}, nil
	case message.Refusal:
		if len(got.Reasons) > 0 {
			return exchanged{}, fail(exitRefused, "", "%s refuses: %s", bank.Name(), cmp.Or(got.Reasons[0].Note, string(got.Reasons[0].Code)))
		}
	}
	return exchanged{}, fail(exitRefused, "", "%s does not exchange", bank.Name())
}

func newUserExchange() *cobra.Command {
	var q exchangeCall
	var least string
	c := &cobra.Command{
		Use: "exchange FROM TO AMOUNT", Short: "Exchange AMOUNT of one currency for another, at a bank's quoted rate", Args: cobra.ExactArgs(3),
		Long: `Asks a bank what AMOUNT of the currency FROM buys of TO; its quote is signed, and good
for a while. With --least it is carried out if that is at least so much: both
currencies move, or none does. Without it nothing is exchanged. It is safe to repeat
with the same --id: an exchange is done once.`,
		RunE: func(c *cobra.Command, args []string) error {
			q.From, q.To = args[0], args[1]
			var err error
			if q.Gives, err = amountOf("AMOUNT", args[2]); err != nil {
				return err
			}
			if least != "" {
				if q.Least, err = amountOf("--least", least); err != nil {
					return err
				}
			}
			if q.ID == "" {
				q.ID = newPurchaseID(false)
			}
			if !validID(q.ID) {
				return fail(exitUsage, "", "--id %q: want 1..%d letters, digits, '.', '_' or '-'", q.ID, maxID)
			}
			var x exchanged
			if err := askUserWith(c, "/v1/exchange", q, &x); err != nil {
				return err
			}
			return printExchange(c, x)
		},
	}
	c.Flags().StringVar(&least, "least", "", "exchange, if it gives at least so much of TO")
	c.Flags().StringVar(&q.Bank, "bank", "", "the bank (default: the first that exchanges these)")
	c.Flags().StringVar(&q.ID, "id", "", "ID of the exchange; one that was given before is done once (default: a random one)")
	return c
}

func printExchange(c *cobra.Command, x exchanged) error {
	if wantsJSON(c) {
		return printJSON(stdout(c), x)
	}
	if x.Entry == 0 {
		_, err := fmt.Fprintf(stdout(c), "%s quotes: %s %s buys %s %s, until %s UTC; nothing is exchanged (--least %s does it)\n",
			x.Bank.Name(), x.Gives, x.From, x.Gets, x.To, secondTime(x.Until), x.Gets)
		return err
	}
	_, err := fmt.Fprintf(stdout(c), "exchanged %s %s for %s %s at %s (entry %d, exchange %s)\n", x.Gives, x.From, x.Gets, x.To, x.Bank.Name(), x.Entry, x.ID)
	return err
}

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/message"
)

// exchangeCall asks for a quote, or has one carried out.
type exchangeCall struct {
	ID    string           `json:"id"`             // of the quote
	Bank  string           `json:"bank,omitempty"` // name or agent ID; none: the first that exchanges these
	From  string           `json:"from"`
	To    string           `json:"to"`
	Gives protocol.Credits `json:"gives"`
	Least protocol.Credits `json:"least,omitempty"` // of To, that the command exchanges for
	// Carry has the quote carried out that Bank has given under ID.
	Carry bool `json:"carry,omitempty"`
	// Tries are the quotes that may have been carried out since an instant, if this one
	// cannot be.
	Tries []string  `json:"tries,omitempty"`
	Since time.Time `json:"since,omitzero"`
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
	Quote []byte           `json:"quote,omitempty"` // signed, DER; none of one that was found among the entries
	// Again is said of an exchange that an interrupted command had ordered.
	Again bool `json:"again,omitempty"`
	// Lapsed: the bank does not know the quote any more, and none of the tries was
	// carried out.
	Lapsed bool `json:"lapsed,omitempty"`
}

// exchange asks the banks in turn for a quote, until one gives it, or has one carried
// out.
func (u userAgent) exchange(ctx context.Context, q exchangeCall) (exchanged, error) {
	banks, err := u.banks(ctx)
	if err != nil {
		return exchanged{}, err
	}
	refused := fail(exitUsage, "'ramp user balance' names the banks", "no bank %q is known", q.Bank)
	for _, bank := range banks {
		if q.Bank != "" && q.Bank != bank.Name() && q.Bank != string(bank) {
			continue
		}
		d := counter{u, bank, q}
		if q.Carry {
			return carryOut(ctx, d, q)
		}
		var x exchanged
		if x, refused = d.quoted(ctx, message.QuoteRequest{ID: q.ID, From: q.From, To: q.To, Gives: q.Gives}); refused == nil {
			return x, nil
		}
	}
	return exchanged{}, refused
}

// desk is a bank as an exchange needs it.
type desk interface {
	quoted(ctx context.Context, body protocol.Body) (exchanged, error)
	statement(ctx context.Context, q statementCall) (message.Statement, error)
}

// errLapsed is that a bank has no quote of that name that is good still.
var errLapsed = errors.New("no such quote")

// carryOut has a quote carried out. A bank forgets quotes within a minute, and with
// them that they were carried out. One that is forgotten cannot be carried out any
// more, since its name is never used again; so what the entries do not have then was
// not done, and will not be.
func carryOut(ctx context.Context, d desk, q exchangeCall) (exchanged, error) {
	x, err := d.quoted(ctx, message.ExchangeRequest{ID: q.ID})
	if !errors.Is(err, errLapsed) {
		return x, err
	}
	x, ok, err := entered(ctx, d, q)
	x.Lapsed = !ok
	return x, err
}

// entered looks for an exchange among the entries of the agent's account.
func entered(ctx context.Context, d desk, q exchangeCall) (x exchanged, ok bool, err error) {
	call := statementCall{From: q.Since.Add(-clocksApart), Limit: message.MaxStatement}
	for more := true; more; {
		s, err := d.statement(ctx, call)
		if err != nil {
			return x, false, err
		}
		for _, l := range s.Lines {
			if l.What == ledger.KindExchange.String() && slices.Contains(q.Tries, l.Ref) {
				ok = true
				x.line(q, l)
			}
		}
		if more = s.More && len(s.Lines) > 0; more {
			call.After = s.Lines[len(s.Lines)-1].Entry
		}
	}
	return x, ok, nil
}

// line takes one side of an exchange from the account's entries.
func (x *exchanged) line(q exchangeCall, l message.StatementLine) {
	x.ID, x.Bank, x.From, x.To, x.Entry, x.Until = l.Ref, protocol.AgentID(q.Bank), q.From, q.To, l.Entry, l.Time
	switch l.Currency {
	case q.From:
		x.Gives = -l.Amount
	case q.To:
		x.Gets = l.Amount
	}
}

// clocksApart is how far the clock of a bank may be behind, for what is looked for
// in its entries.
const clocksApart = time.Hour

// counter is one bank's.
type counter struct {
	userAgent
	bank protocol.AgentID
	q    exchangeCall
}

func (c counter) quoted(ctx context.Context, body protocol.Body) (exchanged, error) {
	return c.userAgent.quoted(ctx, c.bank, c.q, body)
}

func (c counter) statement(ctx context.Context, q statementCall) (message.Statement, error) {
	s, err := c.userAgent.statement(ctx, c.bank, message.StatementQuery{Account: c.self, From: q.From, To: q.To, After: q.After, Limit: q.Limit})
	return s.Statement, err
}

// quoted asks a bank, and holds that its signed answer is what was asked.
func (u userAgent) quoted(ctx context.Context, bank protocol.AgentID, q exchangeCall, body protocol.Body) (exchanged, error) {
	answer, err := u.asks.ask(ctx, u.runner, protocol.Message{
		Performative: protocol.Request, Sender: u.self, Receivers: []protocol.AgentID{bank}, Protocol: protocol.ProtocolRequest, Body: body,
	})
	if err != nil {
		return exchanged{}, err
	}
	switch got := answer.Body.(type) {
	case message.Quoted:
		n := got.Signed.Note
		if n.User != u.self || n.Bank != bank || got.Signed.Signer.ID != bank || n.ID != q.ID || n.From != q.From || n.To != q.To || n.Gives != q.Gives {
			return exchanged{}, fail(exitFailed, "", "%s answers with a quote for something else", bank.Name())
		}
		return exchanged{
			ID: n.ID, Bank: bank, From: n.From, To: n.To, Gives: n.Gives, Gets: n.Gets, Until: n.Until, Entry: n.Entry, Quote: got.Signed.DER,
		}, nil
	case message.Refusal:
		if lapsed(got) {
			return exchanged{}, errLapsed
		}
		if len(got.Reasons) > 0 {
			return exchanged{}, fail(exitRefused, "", "%s refuses: %s", bank.Name(), cmp.Or(got.Reasons[0].Note, string(got.Reasons[0].Code)))
		}
	}
	return exchanged{}, fail(exitRefused, "", "%s does not exchange", bank.Name())
}

// lapsed reports whether a bank refuses since it has no such quote, or none that is
// good still.
func lapsed(r message.Refusal) bool {
	return len(r.Reasons) > 0 && (r.Reasons[0].Code == protocol.CodeUnknown || r.Reasons[0].Code == protocol.CodeExpired)
}

func newUserExchange() *cobra.Command {
	var q exchangeCall
	var least string
	c := &cobra.Command{
		Use: "exchange FROM TO AMOUNT", Short: "Exchange AMOUNT of one currency for another, at a bank's quoted rate", Args: cobra.ExactArgs(3),
		Long: `Asks a bank what AMOUNT of the currency FROM buys of TO; its quote is signed, and good
for a while. With --least it is carried out if that is at least so much: both
currencies move, or none does. Without it nothing is exchanged. It is safe to repeat:
a command that was killed is carried on by the same command, and one with --id is
done once, ever.`,
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
			if q.ID != "" && !validID(q.ID) {
				return fail(exitUsage, "", "--id %q: want 1..%d letters, digits, '.', '_' or '-'", q.ID, maxID)
			}
			return runExchange(c, q)
		},
	}
	c.Flags().StringVar(&least, "least", "", "exchange, if it gives at least so much of TO")
	c.Flags().StringVar(&q.Bank, "bank", "", "the bank, by name or agent ID (default: the first that exchanges these)")
	c.Flags().StringVar(&q.ID, "id", "", "name of the order; one that was given before is done once, ever")
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

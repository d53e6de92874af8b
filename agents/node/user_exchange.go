package node

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"ramp/agents"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/user"
	"ramp/agents/words"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// maxQuotes bounds the quotes of one order that lapse before the bank carries them out.
const maxQuotes = 3

// exchange asks for a quote, and carries it out if the order says how much it must give
// at least: once for each key. If the same order was given by a command that ended before
// it confirmed the answer, the outcome of that order is the answer.
func (u userAgent) exchange(ctx context.Context, q control.ExchangeCall) (x control.Exchanged, err error) {
	if q.Least == 0 {
		quote, der, err := u.quote(ctx, q)
		return exchanged(quote, der), err
	}
	if q.Key = cmp.Or(q.Key, control.NewPurchaseID(false)); q.ID != "" {
		q.Key = "id:" + q.ID
	}
	var quote contract.Quote // for a new order
	for range 2 * maxQuotes {
		o, err := u.orderExchange(ctx, q, quote)
		if err != nil {
			return x, err
		}
		if o.State == "" {
			quote, _, err = u.quote(ctx, q)
			if err == nil && quote.Gets < q.Least {
				err = exit.Fail(exit.Nothing, "", "%s %s buys %s %s, which is less than %s", q.Gives, q.From, quote.Gets, q.To, q.Least)
			}
			if err != nil {
				return x, err
			}
			continue
		}
		again := o.Quote.ID != quote.ID && (o.State == user.ExchangeAsked || o.State == user.ExchangeDone)
		o, err = u.exchangeAnswered(ctx, q, o)
		switch {
		case err != nil:
			return x, err
		case o.State == user.ExchangeDone:
			x = exchanged(o.Quote, o.Signed)
			x.Again = again
			return x, nil
		case o.State == user.ExchangeRefused:
			return x, exit.Fail(exit.Refused, "", "%s refuses: %s", o.Quote.Bank.Name(), o.Why)
		}
		_, err = u.onExchange(ctx, q, func(_ time.Time, e *user.Exchanges) (*user.Exchange, protocol.Output) {
			return nil, e.Confirm(q.Key, user.ExchangeLapsed, user.ExchangeUnknown) // not what the same --id has ordered meanwhile
		})
		if err != nil || o.State == user.ExchangeUnknown {
			return x, cmp.Or(err, exit.Fail(exit.Refused, "'ramp user statement' shows it if it was; the same command orders it anew",
				"%s no longer knows whether it carried out exchange %s, ordered at %s", o.Quote.Bank.Name(), o.Quote.ID, words.AtMinute(o.At)))
		}
		quote = contract.Quote{}
	}
	return x, exit.Fail(exit.Refused, "", "the bank's quotes lapse before it carries them out, or too many exchanges await its answer")
}

func exchanged(q contract.Quote, der []byte) control.Exchanged {
	return control.Exchanged{ID: q.ID, Bank: q.Bank, From: q.From, To: q.To, Gives: q.Gives, Gets: q.Gets, Until: q.Until, Entry: q.Entry, Quote: der}
}

func exchangeWords(q control.ExchangeCall) string {
	return fmt.Sprintf("%q %q %s %s %q", q.From, q.To, q.Gives, q.Least, q.Bank)
}

// onExchange calls the role's exchanges, waits until the outcome is durable, and returns a
// copy of the order that f returns. It refuses one with other words than q.
func (u userAgent) onExchange(ctx context.Context, q control.ExchangeCall, f func(now time.Time, e *user.Exchanges) (*user.Exchange, protocol.Output)) (x user.Exchange, err error) {
	err = orderFault(u.runner.Do(ctx, func(now time.Time, r agents.Role) protocol.Output {
		o, out := f(now, &r.(*user.Role).Exchanges)
		if o != nil {
			x = *o
		}
		return out
	}))
	if err == nil && x.State != "" && x.Words != exchangeWords(q) {
		err = exit.Fail(exit.Usage, "give another --id, or the same amounts",
			"exchange %s was ordered as %s %s for at least %s %s", cmp.Or(q.ID, q.Key), x.Quote.Gives, x.Quote.From, x.Least, x.Quote.To)
	}
	return x, err
}

// orderExchange places an order with a quote, unless the key has one already, or a command
// that no longer lives has given the same one. It returns that as it was.
func (u userAgent) orderExchange(ctx context.Context, q control.ExchangeCall, quote contract.Quote) (user.Exchange, error) {
	x := user.Exchange{Key: q.Key, Words: exchangeWords(q), Least: q.Least, Quote: quote}
	return u.onExchange(ctx, q, func(now time.Time, e *user.Exchanges) (*user.Exchange, protocol.Output) {
		return e.Order(now, x, slices.DeleteFunc(e.Unconfirmed(x.Words), control.CommandLives))
	})
}

// exchangeAnswered waits until the bank has answered an order.
func (u userAgent) exchangeAnswered(ctx context.Context, q control.ExchangeCall, o user.Exchange) (user.Exchange, error) {
	for {
		now, err := u.onExchange(context.WithoutCancel(ctx), q, func(_ time.Time, e *user.Exchanges) (*user.Exchange, protocol.Output) {
			return e.ByID(o.Quote.ID), protocol.Output{}
		})
		if err == nil && now.State == "" {
			err = exit.Fail(exit.Failed, "give the same command again", "exchange %s is gone: the agent could not write its journal, or another command confirmed it", o.Quote.ID)
		}
		if err != nil || now.State != user.ExchangeAsked {
			return now, err
		}
		if !agents.Pause(ctx, control.BusyPause) {
			return o, exit.Fail(exit.Unreachable, "is it running? 'ramp doctor' finds the cause; the same command asks again", "%s does not answer", o.Quote.Bank.Name())
		}
	}
}

// confirm forgets an exchange whose answer its command has shown.
func (u userAgent) confirm(ctx context.Context, q control.KeyCall) (control.None, error) {
	_, err := u.onExchange(context.WithoutCancel(ctx), control.ExchangeCall{}, func(_ time.Time, e *user.Exchanges) (*user.Exchange, protocol.Output) {
		return nil, e.Confirm(q.Key)
	})
	return control.None{}, err
}

// quote asks the banks in turn until one gives a quote.
func (u userAgent) quote(ctx context.Context, q control.ExchangeCall) (x contract.Quote, der []byte, err error) {
	banks, err := u.banks(ctx)
	if err != nil {
		return x, nil, err
	}
	id := control.NewPurchaseID(false)
	if q.ID != "" {
		id = q.ID + "." + id[1:9]
	}
	err = exit.Fail(exit.Usage, "'ramp user balance' names the banks", "no bank %q is known", q.Bank)
	for _, bank := range banks {
		if q.Bank != "" && q.Bank != bank.Name() && q.Bank != string(bank) {
			continue
		}
		if x, der, err = u.quoteOf(ctx, bank, message.QuoteRequest{ID: id, From: q.From, To: q.To, Gives: q.Gives}); err == nil {
			break
		}
	}
	return x, der, err
}

// quoteOf asks one bank, and checks that its signed answer is what was asked.
func (u userAgent) quoteOf(ctx context.Context, bank protocol.AgentID, q message.QuoteRequest) (x contract.Quote, der []byte, err error) {
	answer, err := u.ask(ctx, bank, protocol.Request, q)
	if err != nil {
		return x, nil, err
	}
	switch got := answer.Body.(type) {
	case message.Quoted:
		n := got.Signed.Note
		want := contract.Quote{Version: n.Version, Bank: bank, ID: q.ID, User: u.self, From: q.From, To: q.To, Gives: q.Gives, Gets: n.Gets, Until: n.Until}
		if n != want || got.Signed.Signer.ID != bank {
			return x, nil, exit.Fail(exit.Failed, "", "%s sent a quote for another exchange", bank.Name())
		}
		return n, got.Signed.DER, nil
	case message.Refusal:
		return x, nil, exit.Fail(exit.Refused, "", "%s refuses: %s", bank.Name(), refusalNote(got))
	}
	return x, nil, exit.Fail(exit.Refused, "", "%s does not exchange", bank.Name())
}

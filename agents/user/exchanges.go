package user

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// TableExchanges has one Exchange per order, by the ID of its quote.
const TableExchanges = "exchanges"

// exchangePrefix marks the reply-with of a request to carry a quote out; its ID follows.
const exchangePrefix = "exchange-"

// Bounds of orders to exchange money.
const (
	maxExchanges   = 1 << 12   // beyond, the oldest order that its bank has answered is forgotten
	maxExchangeKey = 128       // bytes
	clocksApart    = time.Hour // that the bank's clock may differ from the agent's
)

// The states of an Exchange.
const (
	ExchangeAsked   = "asked"
	ExchangeDone    = "done"
	ExchangeRefused = "refused"
	ExchangeLapsed  = "lapsed"  // the quote was not carried out, and cannot be any more
	ExchangeUnknown = "unknown" // the bank answered so late that it may have forgotten the exchange
)

// Exchange is an order to exchange money, as the journal has it.
type Exchange struct {
	Key    string           `json:"key"`   // of the command that waits for the answer
	Words  string           `json:"words"` // what was ordered: the same for the same command
	Least  protocol.Credits `json:"least"`
	At     time.Time        `json:"at"` // when it was ordered
	State  string           `json:"state"`
	Why    string           `json:"why,omitempty"` // of the last refusal
	Quote  contract.Quote   `json:"quote"`
	Signed []byte           `json:"signed,omitempty"` // the quote, DER, with its entry

	retryAt time.Time
	tries   int
}

// Exchanges owns the owner's orders to exchange money, so that an order that is given
// again, because its answer was lost, is carried out once.
//
//	asked ---entry of the bank--> done
//	asked ---refusal------------> refused --adopted--> asked
//	asked ---no such quote------> lapsed | unknown
//	all but asked --confirmed---> forgotten
//
// An order is saved before its first request leaves, and requested until the bank
// answers. The bank remembers what it carried out under the ID of a quote for
// protocol.OrderMemory. Nobody asks for a quote with that ID again, so one that the bank
// does not have within that time was not carried out and never will be.
type Exchanges struct {
	cfg  *Config
	list []*Exchange // oldest first
}

// Order places an order with a quote, unless there is one: one with its key, or one with the same
// words whose key is dead, which gets the new key. It returns that order as it was, or the new one.
// A refused order is requested again. Order returns nil if x has no quote, its key is too long or
// too many orders await an answer, and does nothing to an order with other words.
func (e *Exchanges) Order(now time.Time, x Exchange, dead []string) (*Exchange, protocol.Output) {
	o := e.find(func(o *Exchange) bool { return o.Key == x.Key })
	if o == nil {
		o = e.find(func(o *Exchange) bool { return o.Words == x.Words && slices.Contains(dead, o.Key) })
	}
	switch {
	case o == nil:
		return e.place(now, x)
	case o.Words != x.Words:
		return o, protocol.Output{}
	}
	was := *o
	o.Key, o.tries = x.Key, 0
	if o.State != ExchangeAsked && o.State != ExchangeRefused {
		return &was, o.saved()
	}
	o.State = ExchangeAsked
	return &was, e.ask(now, o).Join(o.saved())
}

func (e *Exchanges) place(now time.Time, x Exchange) (o *Exchange, out protocol.Output) {
	if x.Quote.ID == "" || len(x.Key) > maxExchangeKey {
		return nil, out
	}
	if len(e.list) >= maxExchanges {
		out = e.forget(e.find(func(o *Exchange) bool { return o.State != ExchangeAsked }))
	}
	if len(e.list) >= maxExchanges {
		return nil, out
	}
	x.At, x.State = now, ExchangeAsked
	e.list = append(e.list, &x)
	return &x, out.Join(e.ask(now, &x)).Join(x.saved())
}

// Unconfirmed are the keys of the orders with these words: whoever gave them may not have
// heard the answer.
func (e *Exchanges) Unconfirmed(words string) (keys []string) {
	for _, o := range e.list {
		if o.Words == words {
			keys = append(keys, o.Key)
		}
	}
	return keys
}

// ByID is the order with a quote, or nil.
func (e *Exchanges) ByID(id string) *Exchange {
	return e.find(func(o *Exchange) bool { return o.Quote.ID == id })
}

// Confirm forgets an order that is in one of some states, by default any in which its answer
// has arrived. Without one it does nothing.
func (e *Exchanges) Confirm(key string, states ...string) protocol.Output {
	return e.forget(e.find(func(o *Exchange) bool {
		return o.Key == key && o.State != ExchangeAsked && (len(states) == 0 || slices.Contains(states, o.State))
	}))
}

func (e *Exchanges) find(match func(o *Exchange) bool) *Exchange {
	if i := slices.IndexFunc(e.list, match); i >= 0 {
		return e.list[i]
	}
	return nil
}

func (e *Exchanges) forget(o *Exchange) (out protocol.Output) {
	if o != nil {
		e.list = slices.DeleteFunc(e.list, func(x *Exchange) bool { return x == o })
		out.Save = []protocol.Record{{Table: TableExchanges, Key: o.Quote.ID}}
	}
	return out
}

// ask requests that the bank carries a quote out, and sets the time of the next request.
func (e *Exchanges) ask(now time.Time, o *Exchange) protocol.Output {
	o.retryAt = now.Add(retryAfter(o.tries))
	o.tries++
	m := request(e.cfg.self(), o.Quote.Bank, o.Quote.ID, exchangePrefix+o.Quote.ID, message.ExchangeRequest{ID: o.Quote.ID, Least: o.Least})
	return protocol.Output{Send: []protocol.Message{m}, WakeAt: o.retryAt}
}

// receive takes a bank's answer; false: the message is about something else.
func (e *Exchanges) receive(now time.Time, m protocol.Message) (protocol.Output, bool) {
	id, ok := strings.CutPrefix(m.InReplyTo, exchangePrefix)
	o := e.find(func(o *Exchange) bool { return o.Quote.ID == id && o.Quote.Bank == m.Sender })
	if !ok || o == nil || o.State == ExchangeDone {
		return protocol.Output{}, ok
	}
	switch body := m.Body.(type) {
	case message.Quoted:
		want := o.Quote
		want.Entry, want.Until = body.Signed.Note.Entry, body.Signed.Note.Until
		if want != body.Signed.Note || body.Signed.Signer.ID != o.Quote.Bank || want.Entry == 0 {
			return protocol.Output{}, true // not what was ordered
		}
		o.State, o.Why, o.Quote, o.Signed = ExchangeDone, "", want, body.Signed.DER
		return o.saved(), true
	case message.Refusal:
		if o.State == ExchangeAsked {
			o.refused(now, append(body.Reasons, protocol.Reason{Note: "no reason was given"})[0])
			return o.saved(), true
		}
	}
	return protocol.Output{}, true
}

func (o *Exchange) refused(now time.Time, why protocol.Reason) {
	gone := why.Code == protocol.CodeUnknown || why.Code == protocol.CodeExpired
	switch {
	case gone && (o.Why != "" || now.Before(o.Quote.Until.Add(protocol.OrderMemory-clocksApart))):
		o.State = ExchangeLapsed
	case gone:
		o.State = ExchangeUnknown
	default:
		o.State = ExchangeRefused
	}
	o.Why = cmp.Or(why.Note, string(why.Code))
}

// wake requests again what the banks have not answered.
func (e *Exchanges) wake(now time.Time) (out protocol.Output) {
	for _, o := range e.list {
		switch {
		case o.State != ExchangeAsked:
		case now.Before(o.retryAt):
			out.WakeAt = protocol.Earlier(out.WakeAt, o.retryAt)
		default:
			out = out.Join(e.ask(now, o))
		}
	}
	return out
}

// restore goes on with the orders that were not answered before a restart.
func (e *Exchanges) restore(now time.Time, t protocol.Tables) (protocol.Output, error) {
	err := t.Each(TableExchanges, func(id string, value []byte) error {
		o := &Exchange{}
		if err := json.Unmarshal(value, o); err != nil {
			return fmt.Errorf("record of exchange %s: %w", id, err)
		}
		e.list = append(e.list, o)
		return nil
	})
	slices.SortStableFunc(e.list, func(a, b *Exchange) int { return a.At.Compare(b.At) })
	return e.wake(now), err
}

func (o *Exchange) saved() protocol.Output {
	return protocol.Output{Save: []protocol.Record{record(TableExchanges, o.Quote.ID, o)}}
}

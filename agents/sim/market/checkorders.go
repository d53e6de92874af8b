package market

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ramp/agents/sim"
	"ramp/agents/user"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/contract"
)

// OrderedOnce: an order that moves money is carried out once, however often it is given,
// and its owner learns what became of it. That holds for exchanges, which move both
// amounts at the rate, and for the operator's credits and transfers.
const OrderedOnce = "E-orders-once"

// orderChecks checks the orders of users and of the operator. Unlike other checks they go
// on after the bank was restored, with the entries that it has then.
type orderChecks struct {
	audit *audit
	bank  *bankBook

	lines    map[uint32]line
	credited map[line]bool
	asked    map[string]contract.Quote // what users' journals ask the bank to carry out, by ID
	done     map[string]contract.Quote // what it has carried out
	lost     map[string]bool           // those that its backup lacked
	reading  bool                      // the entries of a backup
	ordered  map[uint64]string         // words of the clerks' orders, by entry
}

func newOrderChecks(a *audit, bank *bankBook) *orderChecks {
	c := &orderChecks{audit: a, bank: bank, asked: map[string]contract.Quote{}, lost: map[string]bool{}}
	c.forget()
	return c
}

func (c *orderChecks) forget() {
	c.lines, c.credited, c.done, c.ordered = map[uint32]line{}, map[line]bool{}, map[string]contract.Quote{}, map[uint64]string{}
}

// saved checks a record of the bank or a user.
func (c *orderChecks) saved(h *sim.Host, r protocol.Record) {
	var err error
	switch r.Table {
	case ledger.TableLines:
		n, _ := lineNumber(r.Key)
		var l line
		l.account, l.currency, err = ledger.DecodeLine(r.Value)
		c.lines[n] = l
	case ledger.TableEntries:
		var e ledger.Entry
		if e, err = ledger.DecodeEntry(r.Key, r.Value); err == nil {
			c.entry(e)
		}
	case user.TableExchanges:
		var o user.Exchange
		if r.Value != nil {
			err = json.Unmarshal(r.Value, &o)
		}
		c.answered(h, r.Key, o)
	}
	c.audit.check(OrderedOnce, err == nil, "%s: %s %q cannot be read: %v", h.Name, r.Table, r.Key, err)
}

func (c *orderChecks) entry(e ledger.Entry) {
	switch {
	case strings.HasPrefix(e.Ref, clerkPrefix):
		c.orders(e)
	case e.Kind == ledger.KindTransfer:
		c.audit.check(OrderedOnce, false, "entry %d is a transfer that nobody ordered", e.Number)
	case e.Kind == ledger.KindCredit:
		for _, leg := range e.Legs {
			if l := c.lines[leg.Line]; l.account != ledger.Issuer {
				c.audit.check(OrderedOnce, !c.credited[l], "entry %d credits %s in %s again", e.Number, l.account, l.currency)
				c.credited[l] = true
			}
		}
	case e.Kind == ledger.KindExchange:
		q := c.exchanged(e)
		_, again := c.done[q.ID]
		c.audit.check(OrderedOnce, !again, "entry %d carries out exchange %s again", e.Number, q.ID)
		c.audit.check(OrderedOnce, c.reading || same(q, c.asked[q.ID]), "entry %d carries out %+v; its user asks for %+v", e.Number, q, c.asked[q.ID])
		c.audit.check(OrderedOnce, q.Gives > 0 && q.Gets == buys(q.From, q.Gives), "entry %d exchanges %s %s for %s %s", e.Number, q.Gives, q.From, q.Gets, q.To)
		c.done[q.ID] = q
		if q.From == Currency {
			c.bank.exchanged[q.User] -= q.Gives
		} else {
			c.bank.exchanged[q.User] += q.Gets
		}
	}
}

// orders checks an entry that a clerk ordered: there are never more with the same words
// than were given, and the money moves as they say.
func (c *orderChecks) orders(e ledger.Entry) {
	n := 0
	for _, words := range c.ordered {
		if words == e.Ref {
			n++
		}
	}
	c.ordered[e.Number] = e.Ref
	if c.audit.m == nil {
		return
	}
	given := c.audit.m.clerks.given[e.Ref]
	c.audit.check(OrderedOnce, c.reading || n < given, "entry %d carries out %q, which was ordered %d times, as %d others do", e.Number, e.Ref, given, n)
	var moved []string
	for _, leg := range e.Legs {
		moved = append(moved, fmt.Sprintf("%s %s %s", c.lines[leg.Line].account, leg.Amount, c.lines[leg.Line].currency))
	}
	want := c.audit.m.clerks.moves(e.Ref)
	c.audit.check(OrderedOnce, slices.Equal(slices.Sorted(slices.Values(moved)), want), "entry %d for %q moves %q, want %q", e.Number, e.Ref, moved, want)
}

// exchanged reads an exchange from the legs of its entry: the user gives what the house gets,
// and the reverse.
func (c *orderChecks) exchanged(e ledger.Entry) contract.Quote {
	q, house := contract.Quote{ID: e.Ref, Entry: e.Number}, map[string]protocol.Credits{}
	for _, leg := range e.Legs {
		switch l := c.lines[leg.Line]; {
		case l.account == ledger.House:
			house[l.currency] += leg.Amount
		case leg.Amount < 0:
			q.User, q.From, q.Gives = l.account, l.currency, -leg.Amount
		default:
			q.User, q.To, q.Gets = l.account, l.currency, leg.Amount
		}
	}
	ok := len(e.Legs) == 4 && house[q.From] == q.Gives && house[q.To] == -q.Gets
	c.audit.check(OrderedOnce, ok, "entry %d moves %v for exchange %s", e.Number, e.Legs, q.ID)
	return q
}

// answered checks what a user's journal has about an exchange; nothing once it is over.
func (c *orderChecks) answered(h *sim.Host, id string, o user.Exchange) {
	c.audit.follow("exchange "+id, o.State == user.ExchangeAsked)
	delete(c.asked, id)
	switch q := o.Quote; o.State {
	case user.ExchangeAsked, user.ExchangeRefused: // a late copy of the request may still arrive
		c.asked[id] = q
	case user.ExchangeDone:
		c.audit.check(OrderedOnce, c.has(q) && q.Gets >= o.Least, "%s has the answer %+v; the bank has %+v", h.Name, q, c.done[id])
	}
}

// has reports whether the bank has carried out an exchange, or lost it.
func (c *orderChecks) has(q contract.Quote) bool {
	return c.lost[q.ID] || same(q, c.done[q.ID]) && q.Entry == c.done[q.ID].Entry
}

// same reports whether two quotes exchange the same for the same user.
func same(a, b contract.Quote) bool {
	return a.ID == b.ID && a.User == b.User && a.From == b.From && a.To == b.To && a.Gives == b.Gives && a.Gets == b.Gets
}

// rewound reads what a bank has after it was restored: what its backup lacked, its users
// were shown in vain.
func (c *orderChecks) rewound(h *sim.Host) {
	if c.audit.m == nil || h.ID() != c.audit.m.bank.ID() {
		return
	}
	before := c.done
	c.forget()
	c.reading = true
	c.read(h, ledger.TableLines)
	c.read(h, ledger.TableEntries)
	c.reading = false
	for id := range before {
		if _, has := c.done[id]; !has {
			c.lost[id] = true
		}
	}
	for _, u := range c.audit.m.users {
		c.read(u.Host, user.TableExchanges)
	}
	maps.DeleteFunc(c.audit.m.clerks.shown, func(n uint64, words string) bool { return c.ordered[n] != words })
}

func (c *orderChecks) read(h *sim.Host, table string) {
	err := h.Disk().Each(table, func(key string, value []byte) error {
		c.saved(h, protocol.Record{Table: table, Key: key, Value: value})
		return nil
	})
	c.audit.check(OrderedOnce, err == nil, "%s: %v", h.Name, err)
}

// finish compares what owners and the operator were shown with what the bank did.
func (c *orderChecks) finish() {
	shown := c.audit.m.clerks.shown
	c.audit.check(OrderedOnce, maps.Equal(shown, c.ordered), "the operator was shown entries %v for its orders; the bank has %v", shown, c.ordered)
	known := map[string]bool{}
	for _, u := range c.audit.m.users {
		c.audit.check(OrderedOnce, !u.exchanges.open, "the owner of %s awaits the answer to %+v", u.Host.Name, u.exchanges.order)
		for _, id := range sorted(u.exchanges.shown) {
			known[id] = true
			c.audit.check(OrderedOnce, c.has(u.exchanges.shown[id]), "the owner of %s was shown exchange %s; the bank has %+v", u.Host.Name, id, c.done[id])
		}
		maps.Copy(known, u.exchanges.gave) // a late copy of the request may have been carried out
	}
	for _, id := range sorted(c.done) {
		c.audit.check(OrderedOnce, known[id], "the bank carried out exchange %s of %s, whose owner does not know", id, c.done[id].User)
	}
}

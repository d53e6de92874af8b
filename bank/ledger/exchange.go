package ledger

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"
	"time"

	"ramp/protocol"
)

// House is the account on the other side of every exchange: it takes what is
// sold to the bank and gives what is bought. It is opened with the first rate;
// the operator funds it, or lets it go below zero.
const House protocol.AgentID = ".exchange"

// pair is two currencies, sold and bought.
type pair struct{ from, to string }

func (p pair) key() string { return p.from + "/" + p.to }

// Quote is a bank's promise to exchange an amount, until a time, once.
type Quote struct {
	ID    string           `json:"id"`
	User  protocol.AgentID `json:"user"`
	From  string           `json:"from"` // currency that the user gives
	To    string           `json:"to"`   // and gets
	Gives protocol.Credits `json:"gives"`
	Gets  protocol.Credits `json:"gets"`
	Until time.Time        `json:"until"`
	Entry uint64           `json:"entry,omitempty"` // that carried it out; zero: none yet
}

// quoteKey names a quote: the ID is its user's.
type quoteKey struct {
	user protocol.AgentID
	id   string
}

func (k quoteKey) String() string { return string(k.user) + " " + k.id }

// SetRate sets what one unit of a currency buys of another, in micro-credits
// per credit; zero ends the exchange. Quotes that were given stay good.
func (l *Ledger) SetRate(now time.Time, from, to string, rate protocol.Credits, ref string) (Entry, []protocol.Record, error) {
	switch {
	case !l.knows(from) || !l.knows(to) || from == to:
		return Entry{}, nil, refuse(protocol.CodeNoBank, "rate of %q in %q: want two of %s", from, to, strings.Join(l.cfg.Currencies, ", "))
	case rate < 0:
		return Entry{}, nil, refuse(protocol.CodeMalformed, "rate %s: want zero or more", rate)
	case len(ref) > MaxRef:
		return Entry{}, nil, refuse(protocol.CodeMalformed, "reference of %d bytes, at most %d", len(ref), MaxRef)
	}
	var records []protocol.Record
	if l.accounts[House] == nil {
		_, opened, err := l.open(now, House, "exchange")
		if err != nil {
			return Entry{}, nil, err
		}
		records = opened
	}
	c := l.change()
	p := pair{from, to}
	e := Entry{Kind: KindRate, Key: p.key(), Ref: ref}
	delete(l.rates, p)
	if rate > 0 {
		l.rates[p] = rate
		e.Value = encodeNumber(uint64(rate))
	}
	e = c.set(now, e)
	return e, append(records, c.recs...), nil
}

// Rate is what one credit of a currency buys of another; zero: not here.
func (l *Ledger) Rate(from, to string) protocol.Credits { return l.rates[pair{from, to}] }

// Quote promises an exchange of an amount at the present rate, rounded down, for
// QuoteValidity. The ID is the user's own; asking again with it gets the same.
func (l *Ledger) Quote(now time.Time, user protocol.AgentID, id, from, to string, gives protocol.Credits) (Quote, []protocol.Record, error) {
	k := quoteKey{user, id}
	if q, ok := l.quotes[k]; ok && nanos(now) < nanos(q.Until) {
		if q.From != from || q.To != to || q.Gives != gives {
			return Quote{}, nil, refuse(protocol.CodeMismatch, "quote %s was asked for %s %s", id, q.Gives, q.From)
		}
		return q, nil, nil
	}
	gets, err := l.mayQuote(user, id, pair{from, to}, gives)
	if err != nil {
		return Quote{}, nil, err
	}
	q := Quote{ID: id, User: user, From: from, To: to, Gives: gives, Gets: gets, Until: now.Add(protocol.QuoteValidity).UTC()}
	c := l.change()
	c.dropQuote(k)
	l.keepQuote(q)
	c.put(TableQuotes, k.String(), q.encode())
	return q, c.recs, nil
}

func (l *Ledger) mayQuote(user protocol.AgentID, id string, p pair, gives protocol.Credits) (protocol.Credits, error) {
	if _, err := l.spender(user, p.from); err != nil {
		return 0, err
	}
	rate := l.rates[p]
	if !l.knows(p.to) {
		rate = 0 // it was set when the bank still kept the currency
	}
	switch {
	case l.recovery:
		return 0, l.recovering()
	case id == "" || len(id) > protocol.MaxConversation:
		return 0, refuse(protocol.CodeMalformed, "quote with an ID of %d bytes: want 1..%d", len(id), protocol.MaxConversation)
	case gives <= 0:
		return 0, refuse(protocol.CodeMalformed, "amount %s: want more than zero", gives)
	case rate == 0:
		return 0, refuse(protocol.CodeNoBank, "%q is not exchanged for %q here", p.from, p.to)
	case len(l.quotes) >= MaxQuotes || l.quoted[user].open >= MaxUserQuotes || l.quoted[user].done >= MaxUserDone:
		return 0, refuse(protocol.CodeLimit, "of the last %s there are %d quotes, for %s %d that are open and %d that were carried out: at most %d, %d and %d; ask again in a minute",
			protocol.QuoteValidity, len(l.quotes), user, l.quoted[user].open, l.quoted[user].done, MaxQuotes, MaxUserQuotes, MaxUserDone)
	}
	hi, lo := bits.Mul64(uint64(gives), uint64(rate))
	if hi >= uint64(protocol.Credit) {
		return 0, refuse(protocol.CodeOverflow, "exchange of %s %s: %s", gives, p.from, protocol.ErrOverflow)
	}
	gets, _ := bits.Div64(hi, lo, uint64(protocol.Credit))
	if gets == 0 || gets > uint64(protocol.MaxCredits) {
		return 0, refuse(protocol.CodeOverflow, "%s %s buys nothing, or more than fits", gives, p.from)
	}
	return protocol.Credits(gets), nil
}

// Exchange carries a quote out: both currencies move in one entry, or nothing
// does. Again, it answers what it did.
func (l *Ledger) Exchange(now time.Time, user protocol.AgentID, id string) (Quote, []protocol.Record, error) {
	k := quoteKey{user, id}
	q, ok := l.quotes[k]
	switch {
	case !ok:
		return Quote{}, nil, refuse(protocol.CodeUnknown, "there is no quote %.40q for %s", id, user)
	case q.Entry != 0:
		return q, nil, nil
	case l.recovery:
		return Quote{}, nil, l.recovering()
	case nanos(now) >= nanos(q.Until):
		return Quote{}, nil, refuse(protocol.CodeExpired, "quote %s was good until %s", id, q.Until.Format(time.RFC3339))
	}
	legs, err := l.mayExchange(now, &q)
	if err != nil {
		return Quote{}, nil, err
	}
	c := l.change()
	a, house := l.accounts[user], l.accounts[House]
	amounts := [...]protocol.Credits{-q.Gives, q.Gives, -q.Gets, q.Gets}
	moves := make([]move, len(legs))
	for i, side := range [...]*account{a, house, house, a} {
		moves[i] = move{line: c.line(side, legs[i]), amount: amounts[i]}
	}
	e := c.write(now, Entry{Kind: KindExchange, Ref: id}, nil, moves...)
	l.countQuote(q, -1)
	q.Entry = e.Number
	l.countQuote(q, 1)
	l.quotes[k] = q
	c.put(TableQuotes, k.String(), q.encode())
	return q, c.recs, nil
}

// mayExchange are the currencies of the four legs.
func (l *Ledger) mayExchange(now time.Time, q *Quote) ([4]string, error) {
	legs := [4]string{q.From, q.From, q.To, q.To}
	a, err := l.spender(q.User, q.From)
	if err != nil {
		return legs, err
	}
	if err := l.keeps(q.To); err != nil {
		return legs, err
	}
	house := l.accounts[House]
	switch have, there := l.available(now, a.line(q.From)), l.available(now, house.line(q.To)); {
	case have < q.Gives:
		return legs, refuse(protocol.CodeFunds, "exchange of %s %s: %s available", q.Gives, q.From, have)
	case house.standing() != StandingOpen:
		return legs, refuse(protocol.CodeFrozen, "nothing is exchanged now: account %s is %s", House, house.standing())
	case there < q.Gets:
		return legs, refuse(protocol.CodeFunds, "exchange for %s %s: the bank has %s", q.Gets, q.To, there)
	case !l.takes(now, house.line(q.From), q.Gives) || !l.takes(now, a.line(q.To), q.Gets):
		return legs, refuse(protocol.CodeOverflow, "exchange of %s %s: %s", q.Gives, q.From, protocol.ErrOverflow)
	}
	return legs, nil
}

func (l *Ledger) keepQuote(q Quote) {
	k := quoteKey{q.User, q.ID}
	l.quotes[k] = q
	l.countQuote(q, 1)
	l.awaitEnd(deadline{at: nanos(q.Until), quote: k})
}

func (c *change) dropQuote(k quoteKey) {
	q, ok := c.l.quotes[k]
	if !ok {
		return
	}
	delete(c.l.quotes, k)
	c.l.countQuote(q, -1)
	c.drop(TableQuotes, k.String())
}

// quoteCount is how many quotes a user has whose time is not over.
type quoteCount struct{ open, done int }

func (l *Ledger) countQuote(q Quote, by int) {
	n := l.quoted[q.User]
	if q.Entry == 0 {
		n.open += by
	} else {
		n.done += by
	}
	if l.quoted[q.User] = n; n == (quoteCount{}) {
		delete(l.quoted, q.User)
	}
}

func (q *Quote) encode() []byte {
	b := appendString([]byte{rowVersion}, string(q.User))
	b = appendString(b, q.ID)
	b = appendString(b, q.From)
	b = appendString(b, q.To)
	b = binary.AppendVarint(b, int64(q.Gives))
	b = binary.AppendVarint(b, int64(q.Gets))
	b = appendTime(b, nanos(q.Until))
	return binary.AppendUvarint(b, q.Entry)
}

func decodeQuote(value []byte) (Quote, error) {
	d := newDecoder(value)
	q := Quote{User: d.agent(), ID: d.string(protocol.MaxConversation), From: d.string(MaxCurrency), To: d.string(MaxCurrency)}
	q.Gives, q.Gets, q.Until, q.Entry = d.credits(), d.credits(), fromNanos(d.nanos()), d.uvarint()
	if err := d.done(); err != nil {
		return Quote{}, fmt.Errorf("quote: %w", err)
	}
	return q, nil
}

func (l *Ledger) loadQuote(key string, value []byte) error {
	q, err := decodeQuote(value)
	if err != nil {
		return err
	}
	if (quoteKey{q.User, q.ID}).String() != key {
		return fmt.Errorf("quote %q is out of place", key)
	}
	l.keepQuote(q)
	return nil
}

func (l *Ledger) loadRate(key string, value []byte) error {
	from, to, _ := strings.Cut(key, "/")
	rate, err := DecodeNumber(value)
	l.rates[pair{from, to}] = protocol.Credits(rate)
	return err
}

package ledger

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"ramp/bank/row"
	"ramp/protocol"
)

// House is the account on the other side of every exchange: it takes the currency that
// a user gives, and pays the other. It is opened with the first rate; the operator funds
// it, or lets it go below zero.
const House protocol.AgentID = ".exchange"

// pair is two currencies, sold and bought.
type pair struct{ from, to string }

func (p pair) key() string { return p.from + "/" + p.to }

// Quote is a bank's promise to exchange an amount, until a time, once. Its ID is also
// the key of the exchange: the ledger remembers what it carried out under it.
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

// Exchange owns the rates between currencies, and the quotes given at them.
type Exchange struct {
	books     *books
	deadlines *deadlines
	recovery  *recovery
	rates     map[pair]protocol.Credits
	quotes    map[quoteKey]Quote
	perUser   map[protocol.AgentID]quoteCount
	done      int // quotes that were carried out
}

// SetRate sets how much of a currency one credit of another buys, in micro-credits; zero
// ends the exchange. Open quotes stay good.
func (ex *Exchange) SetRate(now time.Time, from, to string, rate protocol.Credits, ref string) (Entry, []protocol.Record, error) {
	switch {
	case from == to:
		return Entry{}, nil, refuse(protocol.CodeMalformed, "rate of %q in %[1]q: want two currencies", from)
	case !ex.books.knows(from) || !ex.books.knows(to):
		alien := slices.DeleteFunc([]string{from, to}, ex.books.knows)
		return Entry{}, nil, refuse(protocol.CodeNoBank, "rate of %q in %q: this bank does not keep %s, only %s", from, to, strings.Join(alien, " and "), strings.Join(ex.books.cfg.Currencies, ", "))
	case rate < 0:
		return Entry{}, nil, refuse(protocol.CodeMalformed, "rate %s: want zero or more", rate)
	case checkRef(ref) != nil:
		return Entry{}, nil, checkRef(ref)
	}
	var records []protocol.Record
	if ex.books.accounts[House] == nil {
		_, opened, err := ex.books.open(now, House, "exchange")
		if err != nil {
			return Entry{}, nil, err
		}
		records = opened
	}
	c := ex.books.change()
	p := pair{from, to}
	e := Entry{Kind: KindRate, Key: p.key(), Ref: ref}
	delete(ex.rates, p)
	if rate > 0 {
		ex.rates[p] = rate
		e.Value = encodeNumber(uint64(rate))
	}
	e = c.set(now, e)
	return e, append(records, c.recs...), nil
}

// Rate is how much of a currency one credit of another buys; zero: it is not exchanged.
func (ex *Exchange) Rate(from, to string) protocol.Credits { return ex.rates[pair{from, to}] }

// Quote promises an exchange of an amount at the present rate, rounded down, for
// QuoteValidity. The ID is the user's own. Asked again with it, Quote returns the
// same while it is good; and for protocol.OrderMemory after it was carried out, with its Entry.
// An ID that was given for other amounts is refused with CodeMismatch.
func (ex *Exchange) Quote(now time.Time, user protocol.AgentID, id, from, to string, gives protocol.Credits) (Quote, []protocol.Record, error) {
	k := quoteKey{user, id}
	if q, ok := ex.quotes[k]; ok && (q.Entry != 0 || row.Nanos(now) < row.Nanos(q.Until)) {
		if q.From != from || q.To != to || q.Gives != gives {
			return Quote{}, nil, refuse(protocol.CodeMismatch, "quote %s was asked for %s %s", id, q.Gives, q.From)
		}
		return q, nil, nil
	}
	gets, err := ex.mayQuote(user, id, pair{from, to}, gives)
	if err != nil {
		return Quote{}, nil, err
	}
	q := Quote{ID: id, User: user, From: from, To: to, Gives: gives, Gets: gets, Until: now.Add(protocol.QuoteValidity).UTC()}
	c := ex.books.change()
	ex.drop(c, k)
	ex.keep(q)
	c.put(TableQuotes, k.String(), q.encode())
	return q, c.recs, nil
}

func (ex *Exchange) mayQuote(user protocol.AgentID, id string, p pair, gives protocol.Credits) (protocol.Credits, error) {
	if _, err := ex.books.spender(user, p.from); err != nil {
		return 0, err
	}
	rate := ex.rates[p]
	if !ex.books.knows(p.to) {
		rate = 0 // the bank no longer keeps the currency
	}
	switch {
	case ex.recovery.on:
		return 0, errRecovering
	case id == "" || len(id) > protocol.MaxConversation:
		return 0, refuse(protocol.CodeMalformed, "quote with an ID of %d bytes: want 1..%d", len(id), protocol.MaxConversation)
	case gives <= 0:
		return 0, refuse(protocol.CodeMalformed, "amount %s: want more than zero", gives)
	case rate == 0:
		return 0, refuse(protocol.CodeNoBank, "%q is not exchanged for %q here", p.from, p.to)
	case len(ex.quotes)-ex.done >= MaxQuotes || ex.perUser[user].open >= MaxUserQuotes:
		return 0, refuse(protocol.CodeLimit, "%d quotes are open, %d of them for %s: at most %d and %d; ask again in a minute",
			len(ex.quotes)-ex.done, ex.perUser[user].open, user, MaxQuotes, MaxUserQuotes)
	case ex.done >= MaxDone || ex.perUser[user].done >= MaxUserDone:
		return 0, refuse(protocol.CodeLimit, "%d quotes of the last %s were carried out, %d of them for %s: at most %d and %d",
			ex.done, protocol.OrderMemory, ex.perUser[user].done, user, MaxDone, MaxUserDone)
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

// CarryOut carries a quote out, if it gives the user at least so much: both
// currencies move in one entry, or nothing does. A quote that was carried out is
// returned with its Entry, whatever least is now, for protocol.OrderMemory.
//
// CodeUnknown and CodeExpired are for good, so they come with a record that ends the quote:
// a machine of the bank that was deposed cannot save it, and so does not give up what its
// successor carries out.
func (ex *Exchange) CarryOut(now time.Time, user protocol.AgentID, id string, least protocol.Credits) (Quote, []protocol.Record, error) {
	k := quoteKey{user, id}
	q, ok := ex.quotes[k]
	switch {
	case !ok:
		return Quote{}, ex.end(k), refuse(protocol.CodeUnknown, "there is no quote %.40q for %s", id, user)
	case q.Entry != 0:
		return q, nil, nil
	case ex.recovery.on:
		return Quote{}, nil, errRecovering
	case row.Nanos(now) >= row.Nanos(q.Until):
		return Quote{}, ex.end(k), refuse(protocol.CodeExpired, "quote %s was good until %s", id, q.Until.Format(time.RFC3339))
	}
	if q.Gets < least {
		return Quote{}, nil, refuse(protocol.CodePrice, "quote %s is for %s %s, less than %s", id, q.Gets, q.To, least)
	}
	if err := ex.mayExchange(now, &q); err != nil {
		return Quote{}, nil, err
	}
	c := ex.books.change()
	a, house := ex.books.accounts[user], ex.books.accounts[House]
	e := c.write(now, Entry{Kind: KindExchange, Ref: id}, nil,
		move{line: c.line(a, q.From), amount: -q.Gives}, move{line: c.line(house, q.From), amount: q.Gives},
		move{line: c.line(house, q.To), amount: -q.Gets}, move{line: c.line(a, q.To), amount: q.Gets})
	ex.count(q, -1)
	q.Entry = e.Number
	ex.keep(q)
	c.put(TableQuotes, k.String(), q.encode())
	return q, c.recs, nil
}

func (ex *Exchange) mayExchange(now time.Time, q *Quote) error {
	a, err := ex.books.spender(q.User, q.From)
	if err := cmp.Or(err, ex.books.keeps(q.To)); err != nil {
		return err
	}
	house := ex.books.accounts[House]
	switch have, there := ex.books.available(now, a.line(q.From)), ex.books.available(now, house.line(q.To)); {
	case have < q.Gives:
		return refuse(protocol.CodeFunds, "exchange of %s %s: %s available", q.Gives, q.From, have)
	case house.standing() != StandingOpen:
		return refuse(protocol.CodeFrozen, "nothing is exchanged now: account %s is %s", House, house.standing())
	case there < q.Gets:
		return refuse(protocol.CodeFunds, "exchange for %s %s: the bank has %s", q.Gets, q.To, there)
	case !ex.books.takes(now, house.line(q.From), q.Gives) || !ex.books.takes(now, a.line(q.To), q.Gets):
		return refuse(protocol.CodeOverflow, "exchange of %s %s: %s", q.Gives, q.From, protocol.ErrOverflow)
	}
	return nil
}

func (ex *Exchange) keep(q Quote) {
	k := quoteKey{q.User, q.ID}
	ex.quotes[k] = q
	ex.count(q, 1)
	ex.deadlines.await(deadline{at: q.forgottenAt(), quote: k})
}

// end ends a quote, and saves that even if no quote exists. Only accounts have quotes.
func (ex *Exchange) end(k quoteKey) []protocol.Record {
	c := ex.books.change()
	if ex.drop(c, k); len(c.recs) == 0 && ex.books.accounts[k.user] != nil {
		c.drop(TableQuotes, k.String())
	}
	return c.recs
}

func (ex *Exchange) drop(c *change, k quoteKey) {
	q, ok := ex.quotes[k]
	if !ok {
		return
	}
	delete(ex.quotes, k)
	ex.count(q, -1)
	c.drop(TableQuotes, k.String())
}

// forgottenAt is when the ledger forgets a quote.
func (q *Quote) forgottenAt() int64 {
	if q.Entry != 0 {
		return row.Nanos(q.Until.Add(protocol.OrderMemory))
	}
	return row.Nanos(q.Until)
}

// quoteCount is how many quotes a user has, open and carried out.
type quoteCount struct{ open, done int }

func (ex *Exchange) count(q Quote, by int) {
	n := ex.perUser[q.User]
	if q.Entry == 0 {
		n.open += by
	} else {
		n.done += by
		ex.done += by
	}
	if ex.perUser[q.User] = n; n == (quoteCount{}) {
		delete(ex.perUser, q.User)
	}
}

func (q *Quote) encode() []byte {
	b := row.New(row.Version, 64).Agent(q.User).String(q.ID).String(q.From).String(q.To).Credits(q.Gives).Credits(q.Gets)
	return b.Time(row.Nanos(q.Until)).Uvarint(q.Entry)
}

func decodeQuote(value []byte) (Quote, error) {
	d := row.Read(value)
	q := Quote{User: d.Agent(), ID: d.String(protocol.MaxConversation), From: d.String(MaxCurrency), To: d.String(MaxCurrency)}
	q.Gives, q.Gets, q.Until, q.Entry = d.Credits(), d.Credits(), row.Instant(d.Time()), d.Uvarint()
	return q, d.DoneWith("quote")
}

func (ex *Exchange) loadQuote(key string, value []byte) error {
	q, err := decodeQuote(value)
	if err != nil {
		return err
	}
	if (quoteKey{q.User, q.ID}).String() != key {
		return fmt.Errorf("quote %q is out of place", key)
	}
	ex.keep(q)
	return nil
}

func (ex *Exchange) loadRate(key string, value []byte) error {
	from, to, _ := strings.Cut(key, "/")
	rate, err := DecodeNumber(value)
	ex.rates[pair{from, to}] = protocol.Credits(rate)
	return err
}

package ledger

import (
	"slices"
	"strings"
	"time"

	"ramp/protocol"
)

// Account is what people may know of an account.
type Account struct {
	ID     protocol.AgentID
	Name   string
	Opened time.Time
	Lines  []Balance // in order of currency
}

// Balance is an account's money in one currency.
type Balance struct {
	Currency  string
	Balance   protocol.Credits
	Held      protocol.Credits
	Available protocol.Credits // balance + overdraft − held
	Overdraft protocol.Credits // how far below zero the balance may go
}

// Open opens an account. One that is open already is refused with CodeMismatch.
func (l *Ledger) Open(now time.Time, id protocol.AgentID, name string) (Entry, []protocol.Record, error) {
	if err := l.mayOpen(id, name); err != nil {
		return Entry{}, nil, err
	}
	c := l.change()
	a := &account{id: id, name: name, opened: nanos(now)}
	l.accounts[id] = a
	var moves []move
	for _, currency := range l.cfg.Currencies {
		moves = append(moves, move{line: c.line(a, currency)})
	}
	return c.write(now, Entry{Kind: KindOpen, Ref: name}, nil, moves...), c.recs, nil
}

func (l *Ledger) mayOpen(id protocol.AgentID, name string) error {
	if err := id.Validate(); err != nil {
		return refuse(protocol.CodeMalformed, "%s", err)
	}
	if name == "" || len(name) > MaxName {
		return refuse(protocol.CodeMalformed, "account name of %d bytes, want 1..%d", len(name), MaxName)
	}
	if l.accounts[id] != nil {
		return refuse(protocol.CodeMismatch, "account %s is open already", id)
	}
	if len(l.accounts) >= MaxAccounts {
		return refuse(protocol.CodeLimit, "%d accounts are open, which is the most", len(l.accounts))
	}
	return nil
}

// SetOverdraft sets how far below zero an account may go. A limit that is less
// than what is used already only stops further spending.
func (l *Ledger) SetOverdraft(now time.Time, id protocol.AgentID, currency string, limit protocol.Credits) (Entry, []protocol.Record, error) {
	a, err := l.find(id, currency)
	if err != nil {
		return Entry{}, nil, err
	}
	if limit < 0 {
		return Entry{}, nil, refuse(protocol.CodeMalformed, "overdraft limit %s: want zero or more", limit)
	}
	c := l.change()
	n := c.line(a, currency)
	n.overdraft = limit
	return c.write(now, Entry{Kind: KindOverdraft, Ref: limit.String()}, nil, move{line: n}), c.recs, nil
}

// Credit issues money to an account. The amount must be positive and, like the
// issuer's debt, fit the account.
func (l *Ledger) Credit(now time.Time, to protocol.AgentID, currency string, amount protocol.Credits, ref string) (Entry, []protocol.Record, error) {
	a, err := l.find(to, currency)
	if err != nil {
		return Entry{}, nil, err
	}
	if err := checkRequest(amount, ref); err != nil {
		return Entry{}, nil, err
	}
	issuer := l.accounts[Issuer]
	if !fits(a.line(currency), amount) || issuer != nil && !fits(issuer.line(currency), -amount) {
		return Entry{}, nil, refuse(protocol.CodeOverflow, "credit of %s %s to %s: %s", amount, currency, to, protocol.ErrOverflow)
	}
	c := l.change()
	if issuer == nil {
		issuer = &account{id: Issuer, name: "issuer", opened: nanos(now)}
		l.accounts[Issuer] = issuer
	}
	from, into := c.line(issuer, currency), c.line(a, currency)
	e := Entry{Kind: KindCredit, Ref: ref}
	return c.write(now, e, nil, move{line: from, amount: -amount}, move{line: into, amount: amount}), c.recs, nil
}

// fits reports whether a balance can take an amount. The least int64 is left
// out, so that every balance can be negated.
func fits(n *line, amount protocol.Credits) bool {
	if n == nil {
		return true
	}
	sum, err := n.balance.Add(amount)
	return err == nil && sum >= -protocol.MaxCredits
}

func checkRequest(amount protocol.Credits, ref string) error {
	if amount <= 0 {
		return refuse(protocol.CodeMalformed, "amount %s: want more than zero", amount)
	}
	if len(ref) > MaxRef {
		return refuse(protocol.CodeMalformed, "reference of %d bytes, at most %d", len(ref), MaxRef)
	}
	return nil
}

// find is the account of an agent that may deal in a currency.
func (l *Ledger) find(id protocol.AgentID, currency string) (*account, error) {
	a := l.accounts[id]
	if a == nil || id == Issuer {
		return nil, refuse(protocol.CodeAccount, "%s has no account here", id)
	}
	if !l.knows(currency) {
		return nil, refuse(protocol.CodeNoBank, "currency %q is not kept here: want one of %s", currency, strings.Join(l.cfg.Currencies, ", "))
	}
	return a, nil
}

// Account is the account of an agent, if it has one. Issuer has one as soon as
// anything was credited.
func (l *Ledger) Account(id protocol.AgentID) (Account, bool) {
	a := l.accounts[id]
	if a == nil {
		return Account{}, false
	}
	v := Account{ID: a.id, Name: a.name, Opened: fromNanos(a.opened)}
	for _, n := range a.lines {
		b := Balance{Currency: n.currency, Balance: n.balance, Held: n.held, Available: n.available(), Overdraft: n.overdraft}
		v.Lines = append(v.Lines, b)
	}
	slices.SortFunc(v.Lines, func(x, y Balance) int { return strings.Compare(x.Currency, y.Currency) })
	return v, true
}

// Accounts are all accounts in order of ID.
func (l *Ledger) Accounts() []Account {
	all := make([]Account, 0, len(l.accounts))
	for id := range l.accounts {
		a, _ := l.Account(id)
		all = append(all, a)
	}
	slices.SortFunc(all, func(x, y Account) int { return strings.Compare(string(x.ID), string(y.ID)) })
	return all
}

package ledger

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"ramp/protocol"
)

// Account is what people may know of an account.
type Account struct {
	ID       protocol.AgentID
	Name     string
	Opened   time.Time
	Standing Standing
	Group    string    // that it is a member of; "" for none
	Lines    []Balance // in order of currency
}

// Balance is an account's money in one currency.
type Balance struct {
	Currency  string
	Balance   protocol.Credits
	Held      protocol.Credits
	Available protocol.Credits // balance + overdraft − held
	Overdraft protocol.Credits // how far below zero the balance may go
	Income    protocol.Credits // per day
	Decay     int64            // of the currency: parts per million per day; zero: it has no allowance

	// Under barter, of a member of a group.
	Group     string           // "" for none
	Spendable protocol.Credits // what a job may cost now, by its way to pay: its own, its group's, or both
	Pays      Pays
}

// Open opens an account. One that is open already is refused with CodeMismatch.
func (l *Ledger) Open(now time.Time, id protocol.AgentID, name string) (Entry, []protocol.Record, error) {
	if err := id.Validate(); err != nil {
		return Entry{}, nil, refuse(protocol.CodeMalformed, "%s", err)
	}
	if misnamed(name) {
		return Entry{}, nil, refuse(protocol.CodeMalformed, "account name %q: want what can be printed, without '@' and ':', and no '.' or '-' before it", name)
	}
	return l.open(now, id, name)
}

// misnamed reports whether an operator could take a name for another account, such as
// .exchange, group:A or an agent ID, or for a flag, or cannot read it.
func misnamed(name string) bool {
	odd := func(c rune) bool { return c == '@' || c == ':' || c == utf8.RuneError || !unicode.IsPrint(c) }
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-") || strings.TrimSpace(name) != name || strings.ContainsFunc(name, odd)
}

func (l *Ledger) open(now time.Time, id protocol.AgentID, name string) (Entry, []protocol.Record, error) {
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
	if name == "" || len(name) > MaxName {
		return refuse(protocol.CodeMalformed, "account name of %d bytes, want 1..%d", len(name), MaxName)
	}
	if a := l.accounts[id]; a != nil {
		return refuse(protocol.CodeMismatch, "account %s is %s already", ownerWords(id), a.standing())
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
	if err := l.MayOverdraw(currency, limit); err != nil {
		return Entry{}, nil, err
	}
	c := l.change()
	n := c.line(a, currency)
	n.overdraft = limit
	return c.write(now, Entry{Kind: KindOverdraft, Ref: limit.String()}, nil, move{line: n}), c.recs, nil
}

// MayOverdraw refuses an overdraft limit that no account may have: zero or more, and at
// most MaxOverdraft in a currency with an allowance.
func (l *Ledger) MayOverdraw(currency string, limit protocol.Credits) error {
	switch allowance := l.Policy(currency).Kind == PolicyAllowance; {
	case limit < 0:
		return refuse(protocol.CodeMalformed, "overdraft limit %s: want zero or more", limit)
	case allowance && limit > MaxOverdraft:
		return refuse(protocol.CodeMalformed, "overdraft limit %s: %s has an allowance, want at most %s", limit, currency, MaxOverdraft)
	}
	return nil
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
	if err := l.mayIssue(to, currency, amount); err != nil {
		return Entry{}, nil, err
	}
	if !l.takes(now, a.line(currency), amount) {
		return Entry{}, nil, tooMuch(to, currency, amount)
	}
	c := l.change()
	from, into := c.line(c.issuer(now), currency), c.line(a, currency)
	e := Entry{Kind: KindCredit, Ref: ref}
	return c.write(now, e, nil, move{line: from, amount: -amount}, move{line: into, amount: amount}), c.recs, nil
}

// mayIssue refuses what nobody issues, and what the issuer cannot owe beside the rest.
// Of a currency with an allowance, half of what fits is left to incomes, which nobody
// refuses (MaxIncome).
func (l *Ledger) mayIssue(to protocol.AgentID, currency string, amount protocol.Credits) error {
	if err := l.keeps(currency); err != nil {
		return err
	}
	if k := l.Policy(currency).Kind; k == PolicyBarter {
		return refuse(protocol.CodeMode, "nobody issues %s: its policy is %s, and the operator only transfers", currency, k)
	}
	most := protocol.MaxCredits
	if l.Policy(currency).Kind == PolicyAllowance {
		most /= 2
	}
	var owes protocol.Credits
	if issuer := l.accounts[Issuer]; issuer != nil && issuer.line(currency) != nil {
		owes = -issuer.line(currency).balance
	}
	if sum, err := owes.Add(amount); err != nil || sum > most {
		return tooMuch(to, currency, amount)
	}
	return nil
}

func tooMuch(to protocol.AgentID, currency string, amount protocol.Credits) error {
	return refuse(protocol.CodeOverflow, "credit of %s %s to %s: %s", amount, currency, to, protocol.ErrOverflow)
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

// Transfer moves money between two accounts because the operator says so: what
// arbitration gives back, what one member lends another. Contract and unit name
// the disputed job, if there is one; no other record of it is looked at. The
// payer's limit holds, and a frozen account may pay: the operator decides. What goes to
// Issuer is money no more, as what was credited by mistake.
func (l *Ledger) Transfer(now time.Time, from, to protocol.AgentID, currency string, amount protocol.Credits, about Disputed, ref string) (Entry, []protocol.Record, error) {
	payer, err := l.find(from, currency)
	if err != nil {
		return Entry{}, nil, err
	}
	payee, err := l.payee(to, currency)
	if err != nil {
		return Entry{}, nil, err
	}
	if err := l.mayTransfer(now, payer.line(currency), payee.line(currency), amount, about, ref); err != nil {
		return Entry{}, nil, err
	}
	c := l.change()
	e := Entry{Kind: KindTransfer, Contract: about.Contract, Unit: about.Unit, Ref: ref}
	moves := []move{{line: c.line(payer, currency), amount: -amount}, {line: c.line(payee, currency), amount: amount}}
	return c.write(now, e, nil, moves...), c.recs, nil
}

// issued is what an issuer owes, with the income that is due to who pays it back.
func (l *Ledger) issued(now time.Time, issuer, payer *line) protocol.Credits {
	due, _ := l.due(payer, l.instant(now))
	return due - issuer.balance
}

// payee is the account that a transfer goes to.
func (l *Ledger) payee(to protocol.AgentID, currency string) (*account, error) {
	issuer := l.accounts[Issuer]
	if to != Issuer || issuer == nil || issuer.line(currency) == nil {
		return l.find(to, currency)
	}
	return issuer, l.keeps(currency)
}

// Disputed is the job that a transfer is about; without a contract, none.
type Disputed struct {
	Contract protocol.ContractID
	Unit     int
}

func (l *Ledger) mayTransfer(now time.Time, from, to *line, amount protocol.Credits, about Disputed, ref string) error {
	if err := checkRequest(amount, ref); err != nil {
		return err
	}
	if about.Contract != "" {
		if _, err := parseContract(about.Contract); err != nil {
			return err
		}
	}
	switch have := l.available(now, from); {
	case about.Unit < 0 || about.Unit >= protocol.MaxUnits || about.Contract == "" && about.Unit != 0:
		return refuse(protocol.CodeMalformed, "unit %d: want one of the disputed contract", about.Unit)
	case from == to && from != nil:
		return refuse(protocol.CodeMalformed, "transfer from %s to itself", from.account)
	case have < amount:
		return refuse(protocol.CodeFunds, "transfer of %s: %s available", amount, have)
	case !l.takes(now, to, amount):
		return refuse(protocol.CodeOverflow, "transfer of %s: %s", amount, protocol.ErrOverflow)
	case to != nil && to.account == Issuer && amount > l.issued(now, to, from):
		return refuse(protocol.CodeFunds, "transfer of %s to the issuer: it has issued %s", amount, l.issued(now, to, from))
	}
	return nil
}

// takes reports whether a line can take an amount, with what is due on it.
func (l *Ledger) takes(now time.Time, n *line, amount protocol.Credits) bool {
	if n == nil {
		return true
	}
	whole, _ := l.due(n, l.instant(now))
	amount, err := amount.Add(whole)
	return err == nil && fits(n, amount)
}

// find is the account of an agent that may deal in a currency.
func (l *Ledger) find(id protocol.AgentID, currency string) (*account, error) {
	a, err := l.owner(id)
	if err != nil {
		return nil, err
	}
	return a, l.keeps(currency)
}

// keeps refuses a currency that the bank keeps no accounts in, or none any more.
func (l *Ledger) keeps(currency string) error {
	if !l.knows(currency) {
		return refuse(protocol.CodeNoBank, "currency %q is not kept here: want one of %s", currency, strings.Join(l.cfg.Currencies, ", "))
	}
	return nil
}

// owner is the account of an agent or a group.
func (l *Ledger) owner(id protocol.AgentID) (*account, error) {
	a := l.accounts[id]
	if a == nil || a.closed || id == Issuer {
		return nil, refuse(protocol.CodeAccount, "%s has no account here", ownerWords(id))
	}
	return a, nil
}

// ownerWords name an owner as an operator does.
func ownerWords(id protocol.AgentID) string {
	if name, ok := strings.CutPrefix(string(id), groupPrefix); ok {
		return "group:" + name
	}
	return string(id)
}

// spender is the account of an agent that may spend in a currency.
func (l *Ledger) spender(id protocol.AgentID, currency string) (*account, error) {
	a, err := l.find(id, currency)
	if err == nil && a.frozen {
		return nil, refuse(protocol.CodeFrozen, "account %s is frozen", id)
	}
	return a, err
}

// Account is the account of an agent, if it has one, as its last entry left it.
// Issuer has one as soon as anything was credited.
func (l *Ledger) Account(id protocol.AgentID) (Account, bool) {
	return l.AccountAt(fromNanos(l.state.time), id)
}

// AccountAt is the account of an agent at a time, with what it has got or lost
// by its income until then.
func (l *Ledger) AccountAt(now time.Time, id protocol.AgentID) (Account, bool) {
	a := l.accounts[id]
	if a == nil {
		return Account{}, false
	}
	v := Account{ID: a.id, Name: a.name, Opened: fromNanos(a.opened), Standing: a.standing()}
	if g := l.memberOf[id]; g != nil {
		v.Group = g.Name
	}
	for _, n := range a.lines {
		whole, _ := l.due(n, l.instant(now))
		b := Balance{
			Currency: n.currency, Balance: n.balance + whole, Held: n.held, Available: l.available(now, n),
			Overdraft: n.overdraft, Income: n.income, Decay: l.policies[n.currency].Decay,
		}
		if v.Group != "" && l.policies[n.currency].Kind == PolicyBarter {
			b.Group, b.Spendable = v.Group, newPurse(l, now, a, n.currency).available()
			b.Pays = l.memberOf[id].member(id).Pays
		}
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

package ledger

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"ramp/bank/row"
	"ramp/protocol"
)

// Account is an account as people see it.
type Account struct {
	ID       protocol.AgentID
	Name     string
	Opened   time.Time
	Standing Standing
	Group    string    // its group, if it is a member of one
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

	// Only under barter, for a member of a group.
	Group     string
	Spendable protocol.Credits // the most that a job may cost now: from its own money, its group's, or both
	Pays      Pays
}

// Open opens an account. One that is open already is refused with CodeMismatch.
func (l *Ledger) Open(now time.Time, id protocol.AgentID, name string) (Entry, []protocol.Record, error) {
	if err := id.Validate(); err != nil {
		return Entry{}, nil, refuse(protocol.CodeMalformed, "%s", err)
	}
	if misnamed(name) {
		return Entry{}, nil, refuse(protocol.CodeMalformed, "account name %q: want printable characters, without '@' and ':', and no '.' or '-' at its start", name)
	}
	return l.books.open(now, id, name)
}

// misnamed reports whether an operator could take a name for another account, such as
// .exchange, group:A or an agent ID, or for a flag, or cannot read it.
func misnamed(name string) bool {
	odd := func(c rune) bool { return c == '@' || c == ':' || c == utf8.RuneError || !unicode.IsPrint(c) }
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-") || strings.TrimSpace(name) != name || strings.ContainsFunc(name, odd)
}

func (bk *books) open(now time.Time, id protocol.AgentID, name string) (Entry, []protocol.Record, error) {
	if err := bk.mayOpen(id, name); err != nil {
		return Entry{}, nil, err
	}
	c := bk.change()
	a := &account{id: id, name: name, opened: row.Nanos(now)}
	bk.accounts[id] = a
	var moves []move
	for _, currency := range bk.cfg.Currencies {
		moves = append(moves, move{line: c.line(a, currency)})
	}
	return c.write(now, Entry{Kind: KindOpen, Ref: name}, nil, moves...), c.recs, nil
}

func (bk *books) mayOpen(id protocol.AgentID, name string) error {
	if name == "" || len(name) > MaxName {
		return refuse(protocol.CodeMalformed, "account name of %d bytes, want 1..%d", len(name), MaxName)
	}
	if a := bk.accounts[id]; a != nil {
		return refuse(protocol.CodeMismatch, "account %s is %s already", ownerWords(id), a.standing())
	}
	if len(bk.accounts) >= MaxAccounts {
		return refuse(protocol.CodeLimit, "%d accounts are open, which is the most", len(bk.accounts))
	}
	return nil
}

// SetOverdraft sets how far below zero an account may go. A limit below the present
// debt only stops further spending.
func (l *Ledger) SetOverdraft(now time.Time, id protocol.AgentID, currency string, limit protocol.Credits) (Entry, []protocol.Record, error) {
	a, err := l.books.find(id, currency)
	if err := cmp.Or(err, l.MayOverdraw(currency, limit)); err != nil {
		return Entry{}, nil, err
	}
	c := l.books.change()
	n := c.line(a, currency)
	n.overdraft = limit
	return c.write(now, Entry{Kind: KindOverdraft, Ref: limit.String()}, nil, move{line: n}), c.recs, nil
}

// MayOverdraw refuses limits below zero, and above MaxOverdraft in a currency with an allowance.
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
	return l.books.credit(now, to, currency, amount, ref)
}

func (bk *books) credit(now time.Time, to protocol.AgentID, currency string, amount protocol.Credits, ref string) (Entry, []protocol.Record, error) {
	a, err := bk.find(to, currency)
	if err := cmp.Or(err, checkRequest(amount, ref), bk.mayIssue(to, currency, amount)); err != nil {
		return Entry{}, nil, err
	}
	if !bk.takes(now, a.line(currency), amount) {
		return Entry{}, nil, tooMuch(to, currency, amount)
	}
	c := bk.change()
	from, into := c.line(c.issuer(now), currency), c.line(a, currency)
	e := Entry{Kind: KindCredit, Ref: ref}
	return c.write(now, e, nil, move{line: from, amount: -amount}, move{line: into, amount: amount}), c.recs, nil
}

// mayIssue refuses bartered currencies, which nobody issues, and amounts that the
// issuer cannot owe besides its present debt. In a currency with an allowance half of
// that room is kept for incomes, which are never refused (MaxIncome).
func (bk *books) mayIssue(to protocol.AgentID, currency string, amount protocol.Credits) error {
	if err := bk.keeps(currency); err != nil {
		return err
	}
	if k := bk.policy(currency).Kind; k == PolicyBarter {
		return refuse(protocol.CodeMode, "nobody issues %s: its policy is %s, and the operator only transfers", currency, k)
	}
	most := protocol.MaxCredits
	if bk.policy(currency).Kind == PolicyAllowance {
		most /= 2
	}
	var owes protocol.Credits
	if issuer := bk.accounts[Issuer]; issuer != nil && issuer.line(currency) != nil {
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

func checkRequest(amount protocol.Credits, ref string) error {
	if amount <= 0 {
		return refuse(protocol.CodeMalformed, "amount %s: want more than zero", amount)
	}
	return checkRef(ref)
}

func checkRef(ref string) error {
	if len(ref) > MaxRef {
		return refuse(protocol.CodeMalformed, "the reference has %d bytes: want at most %d", len(ref), MaxRef)
	}
	return nil
}

// Transfer moves money between two accounts by order of the operator: a refund after
// arbitration, a loan between members. About names the disputed job, if there is one,
// for the record only. The payer's limit holds; a frozen account may pay. A transfer to
// Issuer takes money out of circulation, such as a mistaken credit.
func (l *Ledger) Transfer(now time.Time, from, to protocol.AgentID, currency string, amount protocol.Credits, about Disputed, ref string) (Entry, []protocol.Record, error) {
	payer, err1 := l.books.find(from, currency)
	payee, err2 := l.books.payee(to, currency)
	if err := cmp.Or(err1, err2); err != nil {
		return Entry{}, nil, err
	}
	if err := l.books.mayTransfer(now, payer.line(currency), payee.line(currency), amount, about, ref); err != nil {
		return Entry{}, nil, err
	}
	c := l.books.change()
	e := Entry{Kind: KindTransfer, Contract: about.Contract, Unit: about.Unit, Ref: ref}
	moves := []move{{line: c.line(payer, currency), amount: -amount}, {line: c.line(payee, currency), amount: amount}}
	return c.write(now, e, nil, moves...), c.recs, nil
}

// issued is the issuer's debt, with the income that is due to the payer.
func (bk *books) issued(now time.Time, issuer, payer *line) protocol.Credits {
	due, _ := bk.due(payer, bk.instant(now))
	return due - issuer.balance
}

// payee is the account that receives a transfer.
func (bk *books) payee(to protocol.AgentID, currency string) (*account, error) {
	issuer := bk.accounts[Issuer]
	if to != Issuer || issuer == nil || issuer.line(currency) == nil {
		return bk.find(to, currency)
	}
	return issuer, bk.keeps(currency)
}

// Disputed is the job that a transfer is about, if it has a contract.
type Disputed struct {
	Contract protocol.ContractID
	Unit     int
}

func (bk *books) mayTransfer(now time.Time, from, to *line, amount protocol.Credits, about Disputed, ref string) error {
	_, err := parseContract(about.Contract)
	if about.Contract == "" {
		err = nil
	}
	if err := cmp.Or(checkRequest(amount, ref), err); err != nil {
		return err
	}
	switch have := bk.available(now, from); {
	case about.Unit < 0 || about.Unit >= protocol.MaxUnits || about.Contract == "" && about.Unit != 0:
		return refuse(protocol.CodeMalformed, "unit %d: want one of the disputed contract", about.Unit)
	case from == to && from != nil:
		return refuse(protocol.CodeMalformed, "transfer from %s to itself", from.account)
	case have < amount:
		return refuse(protocol.CodeFunds, "transfer of %s: %s available", amount, have)
	case !bk.takes(now, to, amount):
		return refuse(protocol.CodeOverflow, "transfer of %s: %s", amount, protocol.ErrOverflow)
	case to != nil && to.account == Issuer && amount > bk.issued(now, to, from):
		return refuse(protocol.CodeFunds, "transfer of %s to the issuer: it has issued %s", amount, bk.issued(now, to, from))
	}
	return nil
}

// Account is the account of an agent, if it has one, as its last entry left it.
// Issuer has one as soon as anything was credited.
func (l *Ledger) Account(id protocol.AgentID) (Account, bool) {
	return l.AccountAt(row.Instant(l.books.state.time), id)
}

// AccountAt is the account of an agent at a time, with its income until then. Of a frozen one
// nothing is available.
func (l *Ledger) AccountAt(now time.Time, id protocol.AgentID) (Account, bool) {
	a := l.books.accounts[id]
	if a == nil {
		return Account{}, false
	}
	v := Account{ID: a.id, Name: a.name, Opened: row.Instant(a.opened), Standing: a.standing()}
	if g := l.Groups.memberOf[id]; g != nil {
		v.Group = g.Name
	}
	for _, n := range a.lines {
		whole, _ := l.books.due(n, l.books.instant(now))
		b := Balance{
			Currency: n.currency, Balance: n.balance + whole, Held: n.held, Available: l.books.available(now, n),
			Overdraft: n.overdraft, Income: n.income, Decay: l.books.policies[n.currency].Decay,
		}
		if v.Group != "" && l.books.policies[n.currency].Kind == PolicyBarter {
			b.Group, b.Spendable = v.Group, l.Groups.purse(now, a, n.currency).available()
			b.Pays = l.Groups.memberOf[id].member(id).Pays
		}
		if v.Standing == StandingFrozen {
			b.Available, b.Spendable = min(0, b.Available), 0
		}
		v.Lines = append(v.Lines, b)
	}
	slices.SortFunc(v.Lines, func(x, y Balance) int { return strings.Compare(x.Currency, y.Currency) })
	return v, true
}

// Accounts are all accounts in order of ID.
func (l *Ledger) Accounts() []Account {
	all := make([]Account, 0, len(l.books.accounts))
	for id := range l.books.accounts {
		a, _ := l.Account(id)
		all = append(all, a)
	}
	slices.SortFunc(all, func(x, y Account) int { return strings.Compare(string(x.ID), string(y.ID)) })
	return all
}

package ledger_test

import (
	"math/big"
	"slices"
	"time"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// exchangeModel is the ledger's exchange as one would write it without a thought for
// speed: balances are big numbers, quotes a list that is searched.
type exchangeModel struct {
	open, frozen map[protocol.AgentID]bool
	money        map[purseKey]*modelPurse
	rates        map[[2]string]protocol.Credits
	quotes       []modelQuote
	holds        []exchangeHold
	graceEnds    time.Time
}

type purseKey struct {
	of       protocol.AgentID
	currency string
}

type modelPurse struct{ balance, overdraft *big.Int }

type modelQuote struct {
	ledger.Quote
	done bool
}

type exchangeHold struct {
	purseKey
	amount protocol.Credits
	until  time.Time
}

// forgotten is when the exchange no longer knows the quote.
func (q modelQuote) forgotten() time.Time {
	if q.done {
		return q.Until.Add(protocol.OrderMemory)
	}
	return q.Until
}

func newExchangeModel() *exchangeModel {
	return &exchangeModel{
		open: map[protocol.AgentID]bool{}, frozen: map[protocol.AgentID]bool{},
		money: map[purseKey]*modelPurse{}, rates: map[[2]string]protocol.Credits{},
	}
}

func (m *exchangeModel) purse(of protocol.AgentID, currency string) *modelPurse {
	k := purseKey{of, currency}
	if m.money[k] == nil {
		m.money[k] = &modelPurse{new(big.Int), new(big.Int)}
	}
	return m.money[k]
}

func (m *exchangeModel) held(of protocol.AgentID, currency string) *big.Int {
	sum := new(big.Int)
	for _, h := range m.holds {
		if h.purseKey == (purseKey{of, currency}) {
			sum.Add(sum, bigOf(h.amount))
		}
	}
	return sum
}

func (m *exchangeModel) lacks(of protocol.AgentID, currency string, amount protocol.Credits) bool {
	p := m.purse(of, currency)
	have := new(big.Int).Add(p.balance, p.overdraft)
	return have.Sub(have, m.held(of, currency)).Cmp(bigOf(amount)) < 0
}

func (m *exchangeModel) overflows(of protocol.AgentID, currency string, amount protocol.Credits) bool {
	return tooBig(new(big.Int).Add(m.purse(of, currency).balance, bigOf(amount)))
}

func (m *exchangeModel) move(from, to protocol.AgentID, currency string, amount protocol.Credits) {
	a, b := m.purse(from, currency).balance, m.purse(to, currency).balance
	a.Sub(a, bigOf(amount))
	b.Add(b, bigOf(amount))
}

func (m *exchangeModel) credit(to protocol.AgentID, currency string, amount protocol.Credits) protocol.Code {
	owes := new(big.Int).Sub(m.purse(ledger.Issuer, currency).balance, bigOf(amount))
	switch {
	case !m.open[to]:
		return protocol.CodeAccount
	case amount <= 0:
		return protocol.CodeMalformed
	case m.overflows(to, currency, amount) || tooBig(owes):
		return protocol.CodeOverflow
	}
	m.move(ledger.Issuer, to, currency, amount)
	return ""
}

func (m *exchangeModel) hold(now time.Time, k purseKey, amount protocol.Credits, until time.Time) protocol.Code {
	switch {
	case !m.open[k.of]:
		return protocol.CodeAccount
	case m.frozen[k.of]:
		return protocol.CodeFrozen
	case amount <= 0:
		return protocol.CodeMalformed
	case !until.After(now):
		return protocol.CodeExpired
	case m.lacks(k.of, k.currency, amount):
		return protocol.CodeFunds
	case tooBig(new(big.Int).Add(m.held(k.of, k.currency), bigOf(amount))):
		return protocol.CodeOverflow
	}
	m.holds = append(m.holds, exchangeHold{k, amount, until})
	return ""
}

func (m *exchangeModel) find(user protocol.AgentID, id string) *modelQuote {
	for i := range m.quotes {
		if m.quotes[i].User == user && m.quotes[i].ID == id {
			return &m.quotes[i]
		}
	}
	return nil
}

// gets is what an amount buys: all of it times the rate, rounded down to a micro-credit.
func (m *exchangeModel) gets(from, to string, gives protocol.Credits) *big.Int {
	n := new(big.Int).Mul(bigOf(gives), bigOf(m.rates[[2]string{from, to}]))
	return n.Div(n, bigOf(protocol.Credit))
}

// quote returns what must be promised, if there is no code.
func (m *exchangeModel) quote(now time.Time, user protocol.AgentID, id, from, to string, gives protocol.Credits) (ledger.Quote, protocol.Code) {
	there := m.find(user, id)
	if there != nil && (there.done || now.Before(there.Until)) {
		if there.From != from || there.To != to || there.Gives != gives {
			return ledger.Quote{}, protocol.CodeMismatch
		}
		return there.Quote, ""
	}
	open := 0
	for _, q := range m.quotes {
		if q.User == user && !q.done {
			open++
		}
	}
	gets := m.gets(from, to, gives)
	switch {
	case !m.open[user]:
		return ledger.Quote{}, protocol.CodeAccount
	case m.frozen[user]:
		return ledger.Quote{}, protocol.CodeFrozen
	case id == "" || gives <= 0:
		return ledger.Quote{}, protocol.CodeMalformed
	case m.rates[[2]string{from, to}] == 0:
		return ledger.Quote{}, protocol.CodeNoBank
	case open >= ledger.MaxUserQuotes:
		return ledger.Quote{}, protocol.CodeLimit
	case gets.Sign() == 0 || tooBig(gets):
		return ledger.Quote{}, protocol.CodeOverflow
	}
	q := ledger.Quote{ID: id, User: user, From: from, To: to, Gives: gives, Gets: protocol.Credits(gets.Int64()), Until: now.Add(time.Minute)}
	m.quotes = slices.DeleteFunc(m.quotes, func(q modelQuote) bool { return q.User == user && q.ID == id })
	m.quotes = append(m.quotes, modelQuote{Quote: q})
	return q, ""
}

// exchange moves both currencies or none, and once.
func (m *exchangeModel) exchange(now time.Time, user protocol.AgentID, id string, least protocol.Credits) (again bool, code protocol.Code) {
	q := m.find(user, id)
	switch {
	case q == nil:
		return false, protocol.CodeUnknown
	case q.done:
		return true, ""
	case !now.Before(q.Until):
		m.quotes = slices.DeleteFunc(m.quotes, func(q modelQuote) bool { return q.User == user && q.ID == id })
		return false, protocol.CodeExpired
	case q.Gets < least:
		return false, protocol.CodePrice
	case m.frozen[user]:
		return false, protocol.CodeFrozen
	case m.lacks(user, q.From, q.Gives):
		return false, protocol.CodeFunds
	case m.frozen[ledger.House]:
		return false, protocol.CodeFrozen
	case m.lacks(ledger.House, q.To, q.Gets):
		return false, protocol.CodeFunds
	case m.overflows(ledger.House, q.From, q.Gives) || m.overflows(user, q.To, q.Gets):
		return false, protocol.CodeOverflow
	}
	m.move(user, ledger.House, q.From, q.Gives)
	m.move(ledger.House, user, q.To, q.Gets)
	q.done = true
	return false, ""
}

func (m *exchangeModel) over(now, deadline time.Time) bool {
	return !now.Before(deadline) && !now.Before(m.graceEnds)
}

func (m *exchangeModel) expire(now time.Time) {
	m.quotes = slices.DeleteFunc(m.quotes, func(q modelQuote) bool { return m.over(now, q.forgotten()) })
	m.holds = slices.DeleteFunc(m.holds, func(h exchangeHold) bool { return m.over(now, h.until) })
}

func (m *exchangeModel) nextDeadline() time.Time {
	var first time.Time
	for _, q := range m.quotes {
		first = protocol.Earlier(first, q.forgotten())
	}
	for _, h := range m.holds {
		first = protocol.Earlier(first, h.until)
	}
	if !first.IsZero() && first.Before(m.graceEnds) {
		return m.graceEnds
	}
	return first
}

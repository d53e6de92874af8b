package ledger

import (
	"slices"
	"strings"
	"time"

	"ramp/bank/decay"
	"ramp/bank/row"
	"ramp/protocol"
)

// books owns the accounts, what is on them, the policies of the currencies, and
// where the ledger stands: all that an entry changes.
type books struct {
	cfg      Config
	state    State
	accounts map[protocol.AgentID]*account
	lines    []*line // by number, from 1
	sums     map[string]protocol.Credits
	policies map[string]Policy
}

// account is an agent's name and its lines.
type account struct {
	id     protocol.AgentID
	name   string
	opened int64
	frozen bool
	closed bool
	lines  []*line // in order of creation
}

func (a *account) line(currency string) *line {
	for _, n := range a.lines {
		if n.currency == currency {
			return n
		}
	}
	return nil
}

type line struct {
	number    uint32
	key       string
	account   protocol.AgentID
	currency  string
	balance   protocol.Credits
	held      protocol.Credits
	overdraft protocol.Credits
	tail      []uint64 // latest entries, not yet in the index

	// Of currencies with an allowance.
	income  protocol.Credits // per day
	anchor  int64            // when balance and residue were right; zero: never moved
	residue uint64           // 2⁻⁶⁴ micro-credits beyond balance
}

// available is balance + overdraft − held, and the income that is due. Balance − held
// fits, because the overdraft of its time covered every hold and payment; a sum beyond
// 63 bits counts as MaxCredits.
func (bk *books) available(now time.Time, n *line) protocol.Credits {
	if n == nil {
		return 0
	}
	have, err := n.balance.Add(-n.held)
	if err != nil { // decay has eaten what an old overdraft covered
		return -protocol.MaxCredits
	}
	whole, _ := bk.due(n, bk.instant(now))
	if have, err = have.Add(whole); err != nil {
		return -protocol.MaxCredits
	}
	if have, err = have.Add(n.overdraft); err != nil {
		return protocol.MaxCredits
	}
	return have
}

// instant is the time that an entry made now would have: never before the last.
func (bk *books) instant(now time.Time) int64 { return max(bk.state.time, row.Nanos(now)) }

func (bk *books) newLine(a *account, currency string) *line {
	number := uint32(len(bk.lines) + 1)
	n := &line{number: number, key: row.Key32(number), account: a.id, currency: currency}
	bk.lines = append(bk.lines, n)
	a.lines = append(a.lines, n)
	return n
}

func (bk *books) knows(currency string) bool { return slices.Contains(bk.cfg.Currencies, currency) }

// fits reports whether a balance can take an amount. The least int64 is left
// out, so that every balance can be negated.
func fits(n *line, amount protocol.Credits) bool {
	if n == nil {
		return true
	}
	sum, err := n.balance.Add(amount)
	return err == nil && sum >= -protocol.MaxCredits
}

// takes reports whether a line can take an amount, with what is due on it.
func (bk *books) takes(now time.Time, n *line, amount protocol.Credits) bool {
	if n == nil {
		return true
	}
	whole, _ := bk.due(n, bk.instant(now))
	amount, err := amount.Add(whole)
	return err == nil && fits(n, amount)
}

// find is the account of an agent that may deal in a currency.
func (bk *books) find(id protocol.AgentID, currency string) (*account, error) {
	a, err := bk.owner(id)
	if err != nil {
		return nil, err
	}
	return a, bk.keeps(currency)
}

// keeps refuses a currency in which the bank keeps no accounts.
func (bk *books) keeps(currency string) error {
	if !bk.knows(currency) {
		return refuse(protocol.CodeNoBank, "currency %q is not kept here: want one of %s", currency, strings.Join(bk.cfg.Currencies, ", "))
	}
	return nil
}

// owner is the account of an agent or a group.
func (bk *books) owner(id protocol.AgentID) (*account, error) {
	a := bk.accounts[id]
	if a == nil || a.closed || id == Issuer {
		return nil, refuse(protocol.CodeAccount, "%s has no account here", ownerWords(id))
	}
	return a, nil
}

// ownerWords is an account's owner as an operator writes it.
func ownerWords(id protocol.AgentID) string {
	if name, ok := strings.CutPrefix(string(id), groupPrefix); ok {
		return "group:" + name
	}
	return string(id)
}

// spender is the account of an agent that may spend in a currency.
func (bk *books) spender(id protocol.AgentID, currency string) (*account, error) {
	a, err := bk.find(id, currency)
	if err == nil && a.frozen {
		return nil, refuse(protocol.CodeFrozen, "account %s is frozen", id)
	}
	return a, err
}

// due is the income of a line since it last moved, below zero if more decayed, and the
// fraction beyond it. It changes nothing, so that readers may ask at any time.
func (bk *books) due(n *line, at int64) (whole protocol.Credits, residue uint64) {
	return n.due(bk.policies[n.currency], at)
}

func (n *line) due(p Policy, at int64) (whole protocol.Credits, residue uint64) {
	if p.Kind != PolicyAllowance || n.account == Issuer || n.anchor == 0 || at <= n.anchor {
		return 0, n.residue
	}
	balance, residue := decay.Grow(n.balance, n.residue, n.income, p.Decay, time.Duration(at-n.anchor))
	return balance - n.balance, residue
}

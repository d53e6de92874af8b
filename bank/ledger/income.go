package ledger

import (
	"math/big"
	"time"

	"ramp/protocol"
)

// MaxIncome bounds what an account tends to, income / decay, so that incomes
// never make a sum overflow: 2^22 accounts of 2^40 micro-credits are half of it.
const MaxIncome protocol.Credits = 1 << 40

// MaxOverdraft bounds overdraft limits in a currency with an allowance: debts decay too,
// at the cost of the issuer, which can owe that of some thousand accounts at once.
const MaxOverdraft protocol.Credits = 1 << 50

// due is what a line has got or lost by its income since it last moved, and the
// fraction beyond it. It changes nothing: reading at any time, and as often as
// one likes, gives the same.
func (l *Ledger) due(n *line, at int64) (whole protocol.Credits, residue uint64) {
	return n.due(l.policies[n.currency], at)
}

func (n *line) due(p Policy, at int64) (whole protocol.Credits, residue uint64) {
	if p.Kind != PolicyAllowance || n.account == Issuer || n.anchor == 0 || at <= n.anchor {
		return 0, n.residue
	}
	balance, residue := grown(n.balance, n.residue, n.income, p.Decay, time.Duration(at-n.anchor))
	return balance - n.balance, residue
}

// accrue posts what is due on the lines whose balance is about to move, against
// the issuer, one entry each.
func (c *change) accrue(now time.Time, moves []move) {
	for _, m := range moves {
		if m.amount != 0 && c.l.policies[m.line.currency].Kind == PolicyAllowance {
			c.realise(now, m.line)
		}
	}
}

func (c *change) realise(now time.Time, n *line) {
	if n.account == Issuer {
		return
	}
	at := c.l.instant(now)
	whole, residue := c.l.due(n, at)
	n.anchor, n.residue = max(n.anchor, at), residue
	if whole == 0 {
		return
	}
	issuer := c.line(c.issuer(now), n.currency)
	c.enter(now, Entry{Kind: KindIncome}, nil, []move{{line: issuer, amount: -whole}, {line: n, amount: whole}})
}

// issuer is the account that credit comes from, opened with its first.
func (c *change) issuer(now time.Time) *account {
	a := c.l.accounts[Issuer]
	if a == nil {
		a = &account{id: Issuer, name: "issuer", opened: nanos(now)}
		c.l.accounts[Issuer] = a
	}
	return a
}

// SetAllowance gives an account an income per day in a currency with an
// allowance; the balance then tends to income / decay. Zero takes it away.
func (l *Ledger) SetAllowance(now time.Time, id protocol.AgentID, currency string, income protocol.Credits, ref string) (Entry, []protocol.Record, error) {
	a, err := l.find(id, currency)
	if err != nil {
		return Entry{}, nil, err
	}
	p := l.policies[currency]
	switch {
	case p.Kind != PolicyAllowance:
		return Entry{}, nil, refuse(protocol.CodeMode, "currency %s has policy %s: want %s", currency, p.Kind, PolicyAllowance)
	case income < 0 || tendsAbove(income, p.Decay, MaxIncome):
		return Entry{}, nil, refuse(protocol.CodeMalformed, "income of %s per day: want zero or more, and at most %s / day in the long run", income, MaxIncome)
	case len(ref) > MaxRef:
		return Entry{}, nil, refuse(protocol.CodeMalformed, "reference of %d bytes, at most %d", len(ref), MaxRef)
	}
	c := l.change()
	n := c.line(a, currency)
	c.realise(now, n)
	n.income = income
	e := c.set(now, Entry{Kind: KindAllowance, Key: n.key, Value: encodeNumber(uint64(income)), Ref: ref}, move{line: n})
	return e, c.recs, nil
}

// tendsAbove reports whether income / decay is above a bound.
func tendsAbove(income protocol.Credits, ppm int64, bound protocol.Credits) bool {
	left := new(big.Int).Mul(big.NewInt(int64(income)), big.NewInt(million))
	return left.Cmp(new(big.Int).Mul(big.NewInt(int64(bound)), big.NewInt(ppm))) > 0
}

// Allowance is an account's income per day.
func (l *Ledger) Allowance(id protocol.AgentID, currency string) protocol.Credits {
	a := l.accounts[id]
	if a == nil || a.line(currency) == nil {
		return 0
	}
	return a.line(currency).income
}

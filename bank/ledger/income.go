package ledger

import (
	"math/big"
	"time"

	"ramp/bank/decay"
	"ramp/protocol"
)

// MaxIncome bounds the balance that an account tends to, income / decay, so that incomes
// never overflow a sum: 2^22 accounts of 2^40 micro-credits are half of the range.
const MaxIncome protocol.Credits = 1 << 40

// MaxOverdraft bounds overdraft limits in a currency with an allowance: debts decay too,
// at the cost of the issuer, which can carry that of some thousand accounts at once.
const MaxOverdraft protocol.Credits = 1 << 50

// SetAllowance gives an account an income per day in a currency with an
// allowance; the balance then tends to income / decay. Zero takes it away.
func (l *Ledger) SetAllowance(now time.Time, id protocol.AgentID, currency string, income protocol.Credits, ref string) (Entry, []protocol.Record, error) {
	a, err := l.books.find(id, currency)
	if err != nil {
		return Entry{}, nil, err
	}
	p := l.books.policies[currency]
	switch {
	case p.Kind != PolicyAllowance:
		return Entry{}, nil, refuse(protocol.CodeMode, "currency %s has policy %s: want %s", currency, p.Kind, PolicyAllowance)
	case income < 0 || tendsAbove(income, p.Decay, MaxIncome):
		return Entry{}, nil, refuse(protocol.CodeMalformed, "income of %s per day: want zero or more, and at most %s / day in the long run", income, MaxIncome)
	}
	if err := checkRef(ref); err != nil {
		return Entry{}, nil, err
	}
	c := l.books.change()
	n := c.line(a, currency)
	c.realise(now, n)
	n.income = income
	e := c.set(now, Entry{Kind: KindAllowance, Key: n.key, Value: encodeNumber(uint64(income)), Ref: ref}, move{line: n})
	return e, c.recs, nil
}

// tendsAbove reports whether income / decay is above a bound.
func tendsAbove(income protocol.Credits, ppm int64, bound protocol.Credits) bool {
	left := new(big.Int).Mul(big.NewInt(int64(income)), big.NewInt(decay.Million))
	return left.Cmp(new(big.Int).Mul(big.NewInt(int64(bound)), big.NewInt(ppm))) > 0
}

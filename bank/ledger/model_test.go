package ledger_test

import (
	"math/big"
	"slices"
	"time"

	"ramp/protocol"
)

// model is the ledger as one would write it without a thought for speed: it
// remembers everything, counts with big numbers and searches lists.
type model struct {
	open      map[protocol.AgentID]bool
	balance   map[protocol.AgentID]*big.Int
	overdraft map[protocol.AgentID]*big.Int
	issued    *big.Int
	holds     []modelHold
	bundles   []*modelBundle
	graceEnds time.Time
}

type modelHold struct {
	number uint64
	from   protocol.AgentID
	amount protocol.Credits
	until  time.Time
}

type modelBundle struct {
	contract
	copies  []protocol.AgentID
	outcome protocol.Outcome
	reason  protocol.Code
	refunds map[int]protocol.Credits
	entry   uint64
}

func newModel() *model {
	return &model{
		open: map[protocol.AgentID]bool{}, balance: map[protocol.AgentID]*big.Int{},
		overdraft: map[protocol.AgentID]*big.Int{}, issued: new(big.Int),
	}
}

func bigOf(c protocol.Credits) *big.Int { return big.NewInt(int64(c)) }

func tooBig(n *big.Int) bool { return new(big.Int).Abs(n).Cmp(bigOf(protocol.MaxCredits)) > 0 }

func (m *model) held(id protocol.AgentID) *big.Int {
	sum := new(big.Int)
	for _, h := range m.holds {
		if h.from == id {
			sum.Add(sum, bigOf(h.amount))
		}
	}
	return sum
}

func (m *model) available(id protocol.AgentID) *big.Int {
	sum := new(big.Int).Add(m.balance[id], m.overdraft[id])
	return sum.Sub(sum, m.held(id))
}

// short says who cannot pay. Nothing can be paid by all, also below their limit.
func (m *model) short(id protocol.AgentID, amount protocol.Credits) bool {
	return amount > 0 && m.available(id).Cmp(bigOf(amount)) < 0
}

func (m *model) overflows(id protocol.AgentID, amount protocol.Credits) bool {
	return tooBig(new(big.Int).Add(m.balance[id], bigOf(amount)))
}

func (m *model) move(from, to protocol.AgentID, amount protocol.Credits) {
	m.balance[from].Sub(m.balance[from], bigOf(amount))
	m.balance[to].Add(m.balance[to], bigOf(amount))
}

func (m *model) credit(to protocol.AgentID, amount protocol.Credits) protocol.Code {
	issued := new(big.Int).Add(m.issued, bigOf(amount))
	switch {
	case !m.open[to]:
		return protocol.CodeAccount
	case amount <= 0:
		return protocol.CodeMalformed
	case m.overflows(to, amount) || tooBig(issued):
		return protocol.CodeOverflow
	}
	m.issued = issued
	m.balance[to].Add(m.balance[to], bigOf(amount))
	return ""
}

func (m *model) hold(now time.Time, number uint64, from protocol.AgentID, amount protocol.Credits, until time.Time) protocol.Code {
	switch {
	case !m.open[from]:
		return protocol.CodeAccount
	case amount <= 0:
		return protocol.CodeMalformed
	case !until.After(now):
		return protocol.CodeExpired
	case m.short(from, amount):
		return protocol.CodeFunds
	case tooBig(new(big.Int).Add(m.held(from), bigOf(amount))):
		return protocol.CodeOverflow
	}
	m.holds = append(m.holds, modelHold{number, from, amount, until})
	return ""
}

func (m *model) over(now, deadline time.Time) bool {
	return !now.Before(deadline) && !now.Before(m.graceEnds)
}

// end posts a hold (to whom, how much) or voids it (to nobody).
func (m *model) end(now time.Time, number uint64, to protocol.AgentID, amount protocol.Credits) protocol.Code {
	i := slices.IndexFunc(m.holds, func(h modelHold) bool { return h.number == number })
	if i < 0 {
		return protocol.CodeUnknown
	}
	h := m.holds[i]
	if m.over(now, h.until) {
		return protocol.CodeExpired
	}
	if to != "" {
		switch {
		case !m.open[to]:
			return protocol.CodeAccount
		case amount <= 0:
			return protocol.CodeMalformed
		case to != h.from && m.overflows(to, amount):
			return protocol.CodeOverflow
		case amount > h.amount:
			return protocol.CodeFunds
		}
		m.move(h.from, to, amount)
	}
	m.holds = slices.Delete(m.holds, i, i+1)
	return ""
}

func (b *modelBundle) sells(id protocol.AgentID) bool {
	return slices.ContainsFunc(b.Units, func(u protocol.BundleUnit) bool { return u.Seller == id })
}

func (b *modelBundle) decide(o protocol.Outcome, reason protocol.Code) {
	b.outcome, b.reason = o, reason
}

// ask is what copies and void requests have in common.
func (m *model) ask(now time.Time, b *modelBundle, allowed bool) (code protocol.Code, goOn bool) {
	switch {
	case !allowed:
		return protocol.CodeForbidden, false
	case b.outcome == protocol.OutcomeSettled || b.outcome == protocol.OutcomeVoid:
		return "", false
	case len(b.copies) == 0 && b.SettleBy.After(now.Add(time.Hour)):
		return protocol.CodeSettleBy, false
	case !now.Before(b.SettleBy):
		b.decide(protocol.OutcomeVoid, protocol.CodeSettleBy)
		return "", false
	}
	return "", true
}

func (m *model) copy(now time.Time, b *modelBundle, seller protocol.AgentID) protocol.Code {
	code, goOn := m.ask(now, b, b.sells(seller))
	if !goOn {
		return code
	}
	b.outcome = protocol.OutcomeGathering
	if !slices.Contains(b.copies, seller) {
		b.copies = append(b.copies, seller)
	}
	for _, u := range b.Units {
		if !slices.Contains(b.copies, u.Seller) {
			return ""
		}
	}
	m.settle(b)
	return ""
}

func (m *model) settle(b *modelBundle) {
	due := map[protocol.AgentID]protocol.Credits{}
	for _, u := range b.Units {
		due[u.Seller] += u.Cost
		if !m.open[u.Seller] {
			b.decide(protocol.OutcomeVoid, protocol.CodeAccount)
			return
		}
	}
	if !m.open[b.User] {
		b.decide(protocol.OutcomeVoid, protocol.CodeAccount)
		return
	}
	if m.short(b.User, b.Total) {
		b.decide(protocol.OutcomeVoid, protocol.CodeFunds)
		return
	}
	for id, amount := range due {
		if id != b.User && m.overflows(id, amount) {
			b.decide(protocol.OutcomeVoid, protocol.CodeOverflow)
			return
		}
	}
	for id, amount := range due {
		m.move(b.User, id, amount)
	}
	b.decide(protocol.OutcomeSettled, "")
}

func (m *model) void(now time.Time, b *modelBundle, by protocol.AgentID) protocol.Code {
	code, goOn := m.ask(now, b, by == b.User || b.sells(by))
	if goOn {
		b.decide(protocol.OutcomeVoid, protocol.CodeAbandoned)
	}
	return code
}

func (m *model) refund(now time.Time, b *modelBundle, unit int, amount protocol.Credits, by protocol.AgentID) protocol.Code {
	u := b.Units[unit]
	_, again := b.refunds[unit]
	switch {
	case !b.sells(by):
		return protocol.CodeForbidden
	case b.outcome == protocol.OutcomeUnknown && b.SettleBy.After(now.Add(time.Hour)):
		return protocol.CodeSettleBy
	case b.outcome != protocol.OutcomeSettled:
		return protocol.CodeUnknown
	case again:
		return ""
	case u.Seller != by:
		return protocol.CodeForbidden
	case amount < 0 || amount > u.Cost:
		return protocol.CodeMismatch
	case m.short(by, amount):
		return protocol.CodeFunds
	case by != b.User && m.overflows(b.User, amount):
		return protocol.CodeOverflow
	}
	m.move(by, b.User, amount)
	b.refunds[unit] = amount
	return ""
}

func (m *model) expire(now time.Time) {
	m.holds = slices.DeleteFunc(m.holds, func(h modelHold) bool { return m.over(now, h.until) })
	for _, b := range m.bundles {
		if b.outcome == protocol.OutcomeGathering && m.over(now, b.SettleBy) {
			b.decide(protocol.OutcomeVoid, protocol.CodeSettleBy)
		}
	}
}

// nextDeadline is the earliest of all open ends.
func (m *model) nextDeadline() time.Time {
	var first time.Time
	for _, h := range m.holds {
		first = protocol.Earlier(first, h.until)
	}
	for _, b := range m.bundles {
		if b.outcome == protocol.OutcomeGathering {
			first = protocol.Earlier(first, b.SettleBy)
		}
	}
	if !first.IsZero() && first.Before(m.graceEnds) {
		return m.graceEnds
	}
	return first
}

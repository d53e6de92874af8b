package node

import (
	"context"
	"math"
	"slices"
	"time"

	"ramp/agents/control"
	"ramp/agents/user/runway"
	"ramp/protocol"
	"ramp/protocol/message"
)

// maxPages bounds how many pages of an account's entries a runway is computed from.
const maxPages = 64

// runway reports how long the money of each currency lasts at its present rate.
func (u userAgent) runway(ctx context.Context, q control.RunwayCall) ([]control.RunwayLine, error) {
	over := time.Duration(q.Over)
	if over <= 0 {
		over = control.RunwayOver
	}
	accounts, err := u.accounts(ctx)
	now, list := time.Now().UTC(), []control.RunwayLine{}
	for _, a := range accounts {
		own, group, err := u.spentAt(ctx, a.bank, now.Add(-over), a.Accounts)
		if err != nil {
			return nil, err
		}
		for _, b := range a.Accounts {
			list = append(list, runwayLine(now, a.bank, b, runway.Of(now, over, b, own[b.Currency], group[b.Currency])))
		}
	}
	return list, err
}

// runwayLine is an estimate as the control socket reports it.
func runwayLine(now time.Time, bank protocol.AgentID, b message.Balance, e runway.Estimate) control.RunwayLine {
	l := control.RunwayLine{
		Bank: bank, Currency: b.Currency, Available: b.Spends(), Held: b.Held, Counts: countsOf(b), Group: b.Group, Income: b.Income, Decay: b.Decay,
		Spent: e.Spent, OverS: e.Over.Seconds(), Low: e.Low,
	}
	if math.IsInf(e.Lasts, 1) {
		return l
	}
	l.LastsS = &e.Lasts
	if e.Lasts < time.Duration(1<<62).Seconds() { // within two centuries
		l.Ends = now.Add(time.Duration(e.Lasts * float64(time.Second))).Truncate(time.Second)
	}
	return l
}

// countsOf is whose money an account's jobs cost. Older banks do not say who pays; then
// only the agent's own money can be counted.
func countsOf(b message.Balance) string {
	switch b.Pays {
	case message.PaysUserThenGroup:
		return control.CountsBoth
	case message.PaysGroup:
		return control.CountsGroup
	}
	return control.CountsOwn
}

// spentAt is what jobs have spent since an instant of the agent's money at a bank, and
// of its group's if that pays for its jobs.
func (u userAgent) spentAt(ctx context.Context, bank protocol.AgentID, since time.Time, balances []message.Balance) (own, group map[string]runway.Spent, err error) {
	q := message.StatementQuery{Account: u.self, From: since}
	if own, err = u.spent(ctx, bank, q); err != nil {
		return nil, nil, err
	}
	paid := func(b message.Balance) bool { return countsOf(b) != control.CountsOwn }
	if q.Group = slices.ContainsFunc(balances, paid); q.Group {
		group, err = u.spent(ctx, bank, q)
	}
	return own, group, err
}

// spent asks a bank for what an account, or its group's, has spent for jobs since an
// instant, by currency.
func (u userAgent) spent(ctx context.Context, bank protocol.AgentID, q message.StatementQuery) (map[string]runway.Spent, error) {
	all := map[string]runway.Spent{}
	q.Limit = message.MaxStatement
	for range maxPages {
		s, err := u.statement(ctx, bank, q)
		if err != nil {
			return nil, err
		}
		for _, l := range s.Lines {
			b := all[l.Currency]
			b.Amount += runway.Fell(l)
			all[l.Currency], q.After = b, l.Entry
		}
		if !s.More {
			break
		}
	}
	if len(all) == 0 {
		return all, nil
	}
	q.From, q.After = time.Time{}, 0
	s, err := u.statement(ctx, bank, q) // the first entries that there are
	for currency, b := range all {
		b.First = runway.First(s.Statement, currency)
		all[currency] = b
	}
	return all, err
}

package command

import (
	"context"
	"math"
	"slices"
	"time"

	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Bounds of a runway.
const (
	maxPages    = 64                 // of an account's entries, looked at
	runwayOver  = 7 * 24 * time.Hour // the time whose rate is the present one
	runwayLeast = 24 * time.Hour     // no shorter time tells a rate, unless it is asked for
	runwayWarn  = 3 * 24 * time.Hour // money that lasts no longer is worth a warning
	day         = 24 * time.Hour
)

// runwayCall asks how long the money lasts at the rate of the time before.
type runwayCall struct {
	Over span `json:"over"`
}

// runwayLine is that of one currency of one bank, in JSON; the names are fixed.
type runwayLine struct {
	Bank      protocol.AgentID `json:"bank"`
	Currency  string           `json:"currency"`
	Available protocol.Credits `json:"available"`
	Held      protocol.Credits `json:"held"`
	Spent     protocol.Credits `json:"spent"`            // for jobs, and held for them, less what jobs brought
	OverS     float64          `json:"over_s"`           // in so many seconds up to now
	Counts    string           `json:"counts"`           // whose money: own, own+group or group
	Group     string           `json:"group,omitempty"`  // which
	Income    protocol.Credits `json:"income,omitempty"` // per day
	Decay     protocol.Credits `json:"decay,omitempty"`  // part of the balance, per day
	LastsS    *float64         `json:"lasts_s"`          // null: for ever
	Ends      time.Time        `json:"ends,omitzero"`    // when that would be
	Low       bool             `json:"low"`
}

// Whose money a runway counts: that which the owner's jobs are paid of.
const (
	countsOwn   = "own"
	countsBoth  = "own+group"
	countsGroup = "group"
)

// burned is by how much what could be spent in a currency fell because of jobs, and
// when it first did.
type burned struct {
	spent protocol.Credits
	first time.Time // zero: never
}

// runway is how long the money of each currency lasts at its present rate.
func (u userAgent) runway(ctx context.Context, q runwayCall) ([]runwayLine, error) {
	over := time.Duration(q.Over)
	if over <= 0 {
		over = runwayOver
	}
	banks, err := u.banks(ctx)
	if err != nil {
		return nil, err
	}
	now, list := time.Now().UTC(), []runwayLine{}
	for _, bank := range banks {
		balances, err := u.balanceAt(ctx, bank)
		if err != nil {
			return nil, err
		}
		own, group, err := u.burnedAt(ctx, bank, now.Add(-over), balances)
		if err != nil {
			return nil, err
		}
		for _, b := range balances {
			list = append(list, lasts(now, over, bank, b, own[b.Currency], group[b.Currency]))
		}
	}
	return list, nil
}

// burnedAt is what went since an instant of the agent's money at a bank, and of its
// group's if that pays for its jobs.
func (u userAgent) burnedAt(ctx context.Context, bank protocol.AgentID, since time.Time, balances []message.Balance) (own, group map[string]burned, err error) {
	q := message.StatementQuery{Account: u.self, From: since}
	if own, err = u.burned(ctx, bank, q); err != nil {
		return nil, nil, err
	}
	paid := func(b message.Balance) bool { return countsOf(b) != countsOwn }
	if q.Group = slices.ContainsFunc(balances, paid); q.Group {
		group, err = u.burned(ctx, bank, q)
	}
	return own, group, err
}

// countsOf is whose money an account's jobs cost. Banks of before did not say; then
// one's own is all that can be counted.
func countsOf(b message.Balance) string {
	switch b.Pays {
	case message.PaysUserThenGroup:
		return countsBoth
	case message.PaysGroup:
		return countsGroup
	}
	return countsOwn
}

// lasts is the runway of one account, with what its group lets it spend. What is
// held counts as spent already: it is not available.
func lasts(now time.Time, over time.Duration, bank protocol.AgentID, b message.Balance, own, group burned) runwayLine {
	l := runwayLine{
		Bank: bank, Currency: b.Currency, Available: b.Spends(), Held: b.Held, Counts: countsOf(b), Group: b.Group, Income: b.Income, Decay: b.Decay,
	}
	of := own
	switch l.Counts {
	case countsBoth:
		of = burned{own.spent + group.spent, protocol.Earlier(own.first, group.first)}
	case countsGroup:
		of = group
	}
	over = measured(now, over, of.first)
	if l.Spent, l.OverS = of.spent, over.Seconds(); l.Spent <= 0 {
		return l
	}
	days := float64(l.Available) / (float64(l.Spent) / over.Hours() * 24)
	if b.Decay > 0 {
		days = decaying(b, float64(l.Spent)/over.Hours()*24)
	}
	if math.IsInf(days, 1) {
		return l
	}
	seconds := max(0, days) * day.Seconds()
	l.LastsS, l.Low = &seconds, seconds < runwayWarn.Seconds()
	if seconds < time.Duration(1<<62).Seconds() { // two centuries end nowhere
		l.Ends = now.Add(time.Duration(seconds * float64(time.Second))).Truncate(time.Second)
	}
	return l
}

// measured is the time that a rate is of: it begins with the first payment, if that
// is later, and is not so short that one purchase is a rate.
func measured(now time.Time, over time.Duration, first time.Time) time.Duration {
	if first.IsZero() {
		return over
	}
	return min(over, max(now.Sub(first), min(over, runwayLeast)))
}

// decaying is how many days an account with an income lasts from which so much goes
// a day: dx/dt = a − b·x − spent, until only what is held and the limit is left.
func decaying(b message.Balance, spent float64) float64 {
	if b.Available <= 0 {
		return 0
	}
	decay := float64(b.Decay) / float64(protocol.Credit)
	tends, floor := (float64(b.Income)-spent)/decay, float64(b.Held-b.Limit)
	if tends >= floor {
		return math.Inf(1)
	}
	return math.Log((float64(b.Balance)-tends)/(floor-tends)) / decay
}

// burned asks a bank for what an account, or its group's, has spent for jobs since
// an instant, by currency.
func (u userAgent) burned(ctx context.Context, bank protocol.AgentID, q message.StatementQuery) (map[string]burned, error) {
	all := map[string]burned{}
	q.Limit = message.MaxStatement
	for range maxPages {
		s, err := u.statement(ctx, bank, q)
		if err != nil {
			return nil, err
		}
		for _, l := range s.Lines {
			b := all[l.Currency]
			b.spent += fell(l)
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
		b.first = firstFall(s.Statement, currency)
		all[currency] = b
	}
	return all, err
}

// firstFall is when the first of an account's entries was that paid for a job, or held
// for one; zero: there is none. One that is not among a page of others is as old as they.
func firstFall(s message.Statement, currency string) time.Time {
	for _, l := range s.Lines {
		if l.Currency == currency && fell(l) > 0 {
			return l.Time
		}
	}
	if s.More && len(s.Lines) > 0 {
		return s.Lines[0].Time
	}
	return time.Time{}
}

// fell is by how much what can be spent fell by an entry that is about jobs.
func fell(l message.StatementLine) protocol.Credits {
	if !forJobs(l.What) {
		return 0
	}
	return l.Held - l.Amount
}

// forJobs reports whether an entry pays for jobs, holds money for them, or gives
// some of that back.
func forJobs(what string) bool {
	return slices.ContainsFunc([]ledger.Kind{
		ledger.KindSettle, ledger.KindRefund, ledger.KindReserve, ledger.KindComplete, ledger.KindDraw,
		ledger.KindHold, ledger.KindPost, ledger.KindVoidHold, ledger.KindExpire,
	}, func(k ledger.Kind) bool { return k.String() == what })
}

// Package runway computes how long an account's money lasts at the rate at which jobs
// have spent it lately. It asks nobody: balances and statements are given.
package runway

import (
	"math"
	"slices"
	"time"

	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/message"
)

const (
	day       = 24 * time.Hour
	leastTime = day     // the shortest time that gives a rate, unless the owner asks for a shorter
	warnTime  = 3 * day // money that lasts no longer is worth a warning
)

// Spent is by how much what can be spent in a currency fell because of jobs, and when it first did.
type Spent struct {
	Amount protocol.Credits
	First  time.Time // zero: never
}

// Estimate is how long an account lasts.
type Estimate struct {
	Spent protocol.Credits
	Over  time.Duration // in which it was spent
	Lasts float64       // seconds; infinite: the money does not run out
	Low   bool          // it lasts no longer than is worth a warning
}

// Of estimates the runway of an account, with what its group lets it spend, from what
// jobs have spent of its own and of the group's money in a time. Held money counts as
// spent already: it is not available.
func Of(now time.Time, over time.Duration, b message.Balance, spent, group Spent) Estimate {
	switch b.Pays {
	case message.PaysUserThenGroup:
		spent = Spent{spent.Amount + group.Amount, protocol.Earlier(spent.First, group.First)}
	case message.PaysGroup:
		spent = group
	}
	e := Estimate{Spent: spent.Amount, Over: measured(now, over, spent.First), Lasts: math.Inf(1)}
	if e.Spent <= 0 {
		return e
	}
	daily := float64(e.Spent) / e.Over.Hours() * 24
	days := float64(b.Spends()) / daily
	if b.Decay > 0 {
		days = decaying(b, daily)
	}
	e.Lasts = max(0, days) * day.Seconds()
	e.Low = e.Lasts < warnTime.Seconds()
	return e
}

// measured is the time over which a rate is taken. It begins with the first payment if
// that is later, and is long enough that one purchase does not make a rate.
func measured(now time.Time, over time.Duration, first time.Time) time.Duration {
	if first.IsZero() {
		return over
	}
	return min(over, max(now.Sub(first), min(over, leastTime)))
}

// decaying is how many days an account with an income lasts if so much is spent daily:
// dx/dt = a − b·x − spent, until only the held money and the limit are left.
func decaying(b message.Balance, daily float64) float64 {
	if b.Available <= 0 {
		return 0
	}
	decay := float64(b.Decay) / float64(protocol.Credit)
	tends, floor := (float64(b.Income)-daily)/decay, float64(b.Held-b.Limit)
	if tends >= floor {
		return math.Inf(1)
	}
	return math.Log((float64(b.Balance)-tends)/(floor-tends)) / decay
}

// First is when the first of an account's entries paid for a job, or held money for one; zero: none
// did. If the first page s has no such entry, but is not the last page, its first entry counts.
func First(s message.Statement, currency string) time.Time {
	for _, l := range s.Lines {
		if l.Currency == currency && Fell(l) > 0 {
			return l.Time
		}
	}
	if s.More && len(s.Lines) > 0 {
		return s.Lines[0].Time
	}
	return time.Time{}
}

// Fell is by how much what can be spent fell by an entry about jobs: one that pays for
// them, holds money for them, or gives some of that back.
func Fell(l message.StatementLine) protocol.Credits {
	if !slices.ContainsFunc([]ledger.Kind{
		ledger.KindSettle, ledger.KindRefund, ledger.KindReserve, ledger.KindComplete, ledger.KindDraw,
		ledger.KindHold, ledger.KindPost, ledger.KindVoidHold, ledger.KindExpire,
	}, func(k ledger.Kind) bool { return k.String() == l.What }) {
		return 0
	}
	return l.Held - l.Amount
}

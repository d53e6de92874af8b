package command

import (
	"context"
	"slices"
	"time"

	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Bounds of what is told of an agent's own money.
const (
	maxPages   = 64                 // of an account's entries, looked at for a runway
	runwayOver = 7 * 24 * time.Hour // the time whose rate is the present one
	runwayWarn = 3 * 24 * time.Hour // money that lasts no longer is worth a warning
)

// bankStatement is what one bank says of the agent's account.
type bankStatement struct {
	Bank protocol.AgentID `json:"bank"`
	message.Statement
}

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
	Spent     protocol.Credits `json:"spent"`         // for jobs, less what came back
	OverS     float64          `json:"over_s"`        // in so many seconds
	LastsS    *float64         `json:"lasts_s"`       // null: nothing is being spent
	Ends      time.Time        `json:"ends,omitzero"` // when that would be
	Low       bool             `json:"low"`
}

// banks are those that are known, and who asks them.
func (u userAgent) banks(ctx context.Context) (self protocol.AgentID, banks []protocol.AgentID, err error) {
	self, known, err := u.known(ctx, protocol.KindBank)
	for _, k := range known {
		banks = append(banks, k.ID)
	}
	if err == nil && len(banks) == 0 {
		err = fail(exitUnreachable, "'ramp doctor' looks closer", "no bank is known")
	}
	return self, banks, err
}

// statements asks every bank for the agent's own entries.
func (u userAgent) statements(ctx context.Context, q statementCall) ([]bankStatement, error) {
	self, banks, err := u.banks(ctx)
	if err != nil {
		return nil, err
	}
	list := []bankStatement{}
	for _, bank := range banks {
		s, err := u.statement(ctx, self, bank, q)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

func (u userAgent) statement(ctx context.Context, self, bank protocol.AgentID, q statementCall) (bankStatement, error) {
	answer, err := u.asks.ask(ctx, u.runner, protocol.Message{
		Performative: protocol.QueryRef, Sender: self, Receivers: []protocol.AgentID{bank}, Protocol: protocol.ProtocolRequest,
		Body: message.StatementQuery{Account: self, From: q.From, To: q.To, After: q.After, Limit: q.Limit},
	})
	if err != nil {
		return bankStatement{}, err
	}
	s, ok := answer.Body.(message.Statement)
	if !ok {
		return bankStatement{}, fail(exitRefused, "", "%s does not tell the agent's statement", bank.Name())
	}
	return bankStatement{bank, s}, nil
}

// runway is how long the money of each currency lasts at its present rate.
func (u userAgent) runway(ctx context.Context, q runwayCall) ([]runwayLine, error) {
	over := time.Duration(q.Over)
	if over <= 0 {
		over = runwayOver
	}
	self, banks, err := u.banks(ctx)
	if err != nil {
		return nil, err
	}
	now, list := time.Now().UTC(), []runwayLine{}
	for _, bank := range banks {
		spent, err := u.spent(ctx, self, bank, now.Add(-over))
		if err != nil {
			return nil, err
		}
		balances, err := u.balanceAt(ctx, self, bank)
		if err != nil {
			return nil, err
		}
		for _, b := range balances {
			list = append(list, lasts(now, over, bank, b, spent[b.Currency]))
		}
	}
	return list, nil
}

// lasts is the runway of one account, with what its group lets it spend. What is
// held counts as spent already: it is not available.
func lasts(now time.Time, over time.Duration, bank protocol.AgentID, b message.Balance, spent protocol.Credits) runwayLine {
	l := runwayLine{Bank: bank, Currency: b.Currency, Available: b.Spends(), Held: b.Held, Spent: spent + b.Held, OverS: over.Seconds()}
	if l.Spent <= 0 {
		return l
	}
	seconds := max(0, float64(l.Available)) / float64(l.Spent) * over.Seconds()
	l.LastsS, l.Low = &seconds, seconds < runwayWarn.Seconds()
	if seconds < time.Duration(1<<62).Seconds() { // two centuries end nowhere
		l.Ends = now.Add(time.Duration(seconds * float64(time.Second))).Truncate(time.Second)
	}
	return l
}

// spent is what an account has paid for jobs since an instant, by currency.
func (u userAgent) spent(ctx context.Context, self, bank protocol.AgentID, since time.Time) (map[string]protocol.Credits, error) {
	spent, after := map[string]protocol.Credits{}, uint64(0)
	for range maxPages {
		s, err := u.statement(ctx, self, bank, statementCall{From: since, After: after, Limit: message.MaxStatement})
		if err != nil {
			return nil, err
		}
		for _, l := range s.Lines {
			if forJobs(l.What) {
				spent[l.Currency] -= l.Amount
			}
			after = l.Entry
		}
		if !s.More {
			break
		}
	}
	return spent, nil
}

// forJobs reports whether an entry pays for jobs, or gives some of that back.
func forJobs(what string) bool {
	return slices.ContainsFunc([]ledger.Kind{ledger.KindSettle, ledger.KindRefund, ledger.KindComplete, ledger.KindDraw},
		func(k ledger.Kind) bool { return k.String() == what })
}

// balanceAt asks one bank for the agent's own accounts.
func (u userAgent) balanceAt(ctx context.Context, self, bank protocol.AgentID) ([]message.Balance, error) {
	answer, err := u.asks.ask(ctx, u.runner, protocol.Message{
		Performative: protocol.QueryRef, Sender: self, Receivers: []protocol.AgentID{bank},
		Protocol: protocol.ProtocolRequest, Body: message.BalanceQuery{},
	})
	if err != nil {
		return nil, err
	}
	b, _ := answer.Body.(message.Balances) // who has no account there has no money there
	return b.Accounts, nil
}

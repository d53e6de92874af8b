package codec

import (
	"ramp/protocol"
	"ramp/protocol/codec/wire"
	"ramp/protocol/message"
)

func balancesToWire(b message.Balances) *wire.Balances {
	w := &wire.Balances{Accounts: make([]*wire.Balance, len(b.Accounts))}
	for i, x := range b.Accounts {
		w.Accounts[i] = &wire.Balance{
			Account: string(x.Account), Name: words(x.Name), Currency: x.Currency, Balance: int64(x.Balance),
			Held: int64(x.Held), Limit: int64(x.Limit), Available: int64(x.Available),
			Group: words(x.Group), Spendable: int64(x.Spendable), Pays: words(x.Pays),
			Income: int64(x.Income), Decay: int64(x.Decay),
		}
	}
	return w
}

func (r *reader) balances(w *wire.Balances) message.Balances {
	return message.Balances{Accounts: list(r, "accounts", w.Accounts, protocol.MaxAccounts, r.balance)}
}

func (r *reader) balance(w *wire.Balance) message.Balance {
	return message.Balance{
		Account:   r.agent("account", w.Account),
		Name:      r.words("name", w.Name),
		Currency:  r.currency(w.Currency),
		Balance:   protocol.Credits(w.Balance), // may be below zero, within the limit
		Held:      r.amount("held", w.Held),
		Limit:     r.amount("limit", w.Limit),
		Available: protocol.Credits(w.Available),
		Group:     r.words("group", w.Group),
		Spendable: r.amount("spendable", w.Spendable),
		Pays:      r.words("pays", w.Pays),
		Income:    r.amount("income", w.Income),
		Decay:     r.amount("decay", w.Decay),
	}
}

func statementQueryToWire(q message.StatementQuery) *wire.StatementQuery {
	return &wire.StatementQuery{
		Account: string(q.Account), From: nanos(q.From), To: nanos(q.To), After: q.After, Limit: int64(q.Limit), Group: q.Group,
	}
}

func (r *reader) statementQuery(w *wire.StatementQuery) message.StatementQuery {
	return message.StatementQuery{
		Account: r.agent("account", w.Account),
		From:    r.instant("from", w.From),
		To:      r.instant("to", w.To),
		After:   w.After,
		Limit:   r.number("limit", w.Limit, 1, message.MaxStatement),
		Group:   w.Group,
	}
}

func statementToWire(s message.Statement) *wire.Statement {
	w := &wire.Statement{Account: string(s.Account), Lines: make([]*wire.StatementLine, len(s.Lines)), More: s.More}
	for i, x := range s.Lines {
		w.Lines[i] = &wire.StatementLine{
			Entry: x.Entry, Time: nanos(x.Time), What: words(x.What), Amount: int64(x.Amount), Currency: x.Currency,
			Balance: int64(x.Balance), Contract: string(x.Contract), Ref: words(x.Ref), Held: int64(x.Held),
		}
	}
	return w
}

func (r *reader) statement(w *wire.Statement) message.Statement {
	return message.Statement{
		Account: r.agent("account", w.Account),
		Lines:   list(r, "lines", w.Lines, message.MaxStatement, r.statementLine),
		More:    w.More,
	}
}

func (r *reader) statementLine(w *wire.StatementLine) message.StatementLine {
	x := message.StatementLine{
		Entry:    w.Entry,
		Time:     r.needed("time", w.Time),
		What:     r.words("what", w.What),
		Amount:   protocol.Credits(w.Amount),
		Currency: r.currency(w.Currency),
		Balance:  protocol.Credits(w.Balance),
		Ref:      r.words("ref", w.Ref),
		Held:     protocol.Credits(w.Held),
	}
	if w.Contract != "" {
		x.Contract = r.contract(w.Contract)
	}
	return x
}

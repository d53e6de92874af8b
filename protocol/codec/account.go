package codec

import (
	"ramp/protocol"
	"ramp/protocol/codec/wire"
	"ramp/protocol/message"
)

var accountBodies = []row{
	body(31, func(*coder, *message.BalanceQuery, *wire.BalanceQuery) {}, on(request, protocol.QueryRef)),

	body(32, func(c *coder, m *message.Balances, w *wire.Balances) {
		list(c, "accounts", &m.Accounts, &w.Accounts, protocol.MaxAccounts, func(c *coder, m *message.Balance, w *wire.Balance) {
			c.agent("account", &m.Account, &w.Account)
			c.words("name", &m.Name, &w.Name)
			c.currency(&m.Currency, &w.Currency)
			whole(c, &m.Balance, &w.Balance) // negative within the overdraft limit
			c.amount("held", &m.Held, &w.Held)
			c.amount("limit", &m.Limit, &w.Limit)
			whole(c, &m.Available, &w.Available)
			c.words("group", &m.Group, &w.Group)
			c.amount("spendable", &m.Spendable, &w.Spendable)
			c.words("pays", &m.Pays, &w.Pays)
			c.amount("income", &m.Income, &w.Income)
			c.amount("decay", &m.Decay, &w.Decay)
		})
	}, on(request, protocol.Inform)),

	body(33, func(c *coder, m *message.StatementQuery, w *wire.StatementQuery) {
		c.agent("account", &m.Account, &w.Account)
		c.instant("from", &m.From, &w.From)
		c.instant("to", &m.To, &w.To)
		same(c, &m.After, &w.After)
		same(c, &m.Before, &w.Before)
		number(c, "limit", &m.Limit, &w.Limit, 1, message.MaxStatement)
		same(c, &m.Group, &w.Group)
	}, on(request, protocol.QueryRef)),

	body(34, func(c *coder, m *message.Statement, w *wire.Statement) {
		c.agent("account", &m.Account, &w.Account)
		list(c, "lines", &m.Lines, &w.Lines, message.MaxStatement, func(c *coder, m *message.StatementLine, w *wire.StatementLine) {
			same(c, &m.Entry, &w.Entry)
			c.needed("time", &m.Time, &w.Time)
			c.words("what", &m.What, &w.What)
			whole(c, &m.Amount, &w.Amount)
			c.currency(&m.Currency, &w.Currency)
			whole(c, &m.Balance, &w.Balance)
			c.contractOrNone(&m.Contract, &w.Contract)
			c.words("ref", &m.Ref, &w.Ref)
			whole(c, &m.Held, &w.Held)
			c.words("other", (*string)(&m.Other), &w.Other)
		})
		same(c, &m.More, &w.More)
	}, on(request, protocol.Inform)),

	body(50, func(c *coder, m *message.ProofQuery, w *wire.ProofQuery) {
		c.contractOrNone(&m.Contract, &w.Contract)
		same(c, &m.From, &w.From)
	}, on(request, protocol.QueryRef)),

	body(51, func(c *coder, m *message.Proof, w *wire.Proof) {
		same(c, &m.Document, &w.Document)
		switch n := len(w.Document); {
		case n > message.MaxProof:
			c.fail(protocol.CodeLimit, "proof of %d bytes, want at most %d", n, message.MaxProof)
		case n == 0:
			c.malformed("a proof without a document")
		}
	}, on(request, protocol.Inform)),
}

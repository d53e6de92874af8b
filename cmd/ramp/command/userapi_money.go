package command

import (
	"context"

	"ramp/protocol"
	"ramp/protocol/message"
)

// bankStatement is what one bank says of the agent's account.
type bankStatement struct {
	Bank protocol.AgentID `json:"bank"`
	message.Statement
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
		s, err := u.statement(ctx, bank, message.StatementQuery{Account: self, From: q.From, To: q.To, After: q.After, Limit: q.Limit})
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// statement asks a bank; q.Account is the agent itself.
func (u userAgent) statement(ctx context.Context, bank protocol.AgentID, q message.StatementQuery) (bankStatement, error) {
	answer, err := u.asks.ask(ctx, u.runner, protocol.Message{
		Performative: protocol.QueryRef, Sender: q.Account, Receivers: []protocol.AgentID{bank}, Protocol: protocol.ProtocolRequest, Body: q,
	})
	if err != nil {
		return bankStatement{}, err
	}
	s, ok := answer.Body.(message.Statement)
	if !ok {
		return bankStatement{}, fail(exitRefused, "", "%s does not tell the agent's statement", bank.Name())
	}
	if s.Lines == nil {
		s.Lines = []message.StatementLine{} // in JSON an empty list, not null
	}
	return bankStatement{bank, s}, nil
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

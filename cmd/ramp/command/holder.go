package command

import (
	"context"

	"ramp/agents"
	"ramp/protocol"
	"ramp/protocol/message"
)

// bankStatement is what one bank says of the agent's account.
type bankStatement struct {
	Bank protocol.AgentID `json:"bank"`
	message.Statement
}

// holder asks banks about an agent's own accounts, in the name of a user or a seller.
type holder struct {
	self   protocol.AgentID
	runner *agents.Runner
	asks   *asks
	banks  func(ctx context.Context) ([]protocol.AgentID, error)
}

// balance asks every bank.
func (h holder) balance(ctx context.Context, _ struct{}) ([]message.Balance, error) {
	banks, err := h.banks(ctx)
	if err != nil {
		return nil, err
	}
	list := []message.Balance{}
	for _, bank := range banks {
		own, err := h.balanceAt(ctx, bank)
		if err != nil {
			return nil, err
		}
		list = append(list, own...)
	}
	return list, nil
}

// statements asks every bank for the agent's own entries.
func (h holder) statements(ctx context.Context, q statementCall) ([]bankStatement, error) {
	banks, err := h.banks(ctx)
	if err != nil {
		return nil, err
	}
	list := []bankStatement{}
	for _, bank := range banks {
		s, err := h.statement(ctx, bank, message.StatementQuery{Account: h.self, From: q.From, To: q.To, After: q.After, Limit: q.Limit})
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// statement asks a bank; q.Account is the agent itself.
func (h holder) statement(ctx context.Context, bank protocol.AgentID, q message.StatementQuery) (bankStatement, error) {
	answer, err := h.asks.ask(ctx, h.runner, protocol.Message{
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
func (h holder) balanceAt(ctx context.Context, bank protocol.AgentID) ([]message.Balance, error) {
	answer, err := h.asks.ask(ctx, h.runner, protocol.Message{
		Performative: protocol.QueryRef, Sender: h.self, Receivers: []protocol.AgentID{bank},
		Protocol: protocol.ProtocolRequest, Body: message.BalanceQuery{},
	})
	if err != nil {
		return nil, err
	}
	b, _ := answer.Body.(message.Balances) // who has no account there has no money there
	return b.Accounts, nil
}

package node

import (
	"cmp"
	"context"

	"ramp/agents"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/protocol"
	"ramp/protocol/message"
)

// ownAccounts asks banks about an agent's own accounts, in the name of a user or a seller.
type ownAccounts struct {
	self    protocol.AgentID
	runner  *agents.Runner
	pending *pending
	banks   func(ctx context.Context) ([]protocol.AgentID, error)
}

func (o ownAccounts) ask(ctx context.Context, bank protocol.AgentID, p protocol.Performative, body protocol.Body) (protocol.Message, error) {
	return o.pending.ask(ctx, o.runner, protocol.Message{Performative: p, Sender: o.self, Receivers: []protocol.AgentID{bank}, Protocol: protocol.ProtocolRequest, Body: body})
}

func (o ownAccounts) balance(ctx context.Context, _ struct{}) ([]message.Balance, error) {
	accounts, err := o.accounts(ctx)
	list := []message.Balance{}
	for _, a := range accounts {
		list = append(list, a.Accounts...)
	}
	return list, err
}

// ownAccount is the agent's account at a bank.
type ownAccount struct {
	bank protocol.AgentID
	message.Balances
}

// accounts asks all banks. Those without an account of the agent are left out.
func (o ownAccounts) accounts(ctx context.Context) (list []ownAccount, err error) {
	banks, err := o.banks(ctx)
	for _, bank := range banks {
		answer, err := o.ask(ctx, bank, protocol.QueryRef, message.BalanceQuery{})
		if err != nil {
			return nil, err
		}
		if b, ok := answer.Body.(message.Balances); ok {
			list = append(list, ownAccount{bank, b})
		}
	}
	return list, err
}

// statements asks every bank for the agent's own entries.
func (o ownAccounts) statements(ctx context.Context, q control.StatementCall) ([]control.BankStatement, error) {
	banks, err := o.banks(ctx)
	if err != nil {
		return nil, err
	}
	list := []control.BankStatement{}
	for _, bank := range banks {
		s, err := o.statement(ctx, bank, message.StatementQuery{Account: o.self, From: q.From, To: q.To, After: q.After, Before: q.Before, Limit: q.Limit})
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// statement asks a bank; q.Account is the agent itself.
func (o ownAccounts) statement(ctx context.Context, bank protocol.AgentID, q message.StatementQuery) (control.BankStatement, error) {
	if q.Limit = cmp.Or(q.Limit, message.MaxStatement); q.Limit < 1 || q.Limit > message.MaxStatement {
		return control.BankStatement{}, exit.Fail(exit.Usage, "", "limit %d: want 1..%d", q.Limit, message.MaxStatement)
	}
	answer, err := o.ask(ctx, bank, protocol.QueryRef, q)
	if err != nil {
		return control.BankStatement{}, err
	}
	s, ok := answer.Body.(message.Statement)
	if !ok {
		return control.BankStatement{}, exit.Fail(exit.Refused, "", "%s refused to send the statement", bank.Name())
	}
	if s.Lines == nil {
		s.Lines = []message.StatementLine{} // in JSON an empty list, not null
	}
	return control.BankStatement{Bank: bank, Statement: s}, nil
}

// proof asks a bank for its newest head, or for the proof of a contract.
func (o ownAccounts) proof(ctx context.Context, q control.ProofCall) (control.ProofAnswer, error) {
	if err := q.Bank.Validate(); err != nil {
		return control.ProofAnswer{}, exit.Fail(exit.Usage, "", "bank: %w", err)
	}
	answer, err := o.ask(ctx, q.Bank, protocol.QueryRef, message.ProofQuery{Contract: q.Contract, From: q.From})
	if err != nil {
		return control.ProofAnswer{}, err
	}
	switch b := answer.Body.(type) {
	case message.Proof:
		return control.ProofAnswer{Bank: q.Bank, Proof: b.Document}, nil
	case message.Refusal:
		return control.ProofAnswer{}, exit.Fail(exit.Refused, "", "%s refuses: %s", q.Bank.Name(), refusalNote(b))
	}
	return control.ProofAnswer{}, exit.Fail(exit.Failed, "", "%s sent an unexpected answer", q.Bank.Name())
}

func refusalNote(r message.Refusal) string {
	if len(r.Reasons) == 0 {
		return "it does not say why"
	}
	return r.Reasons[0].Words()
}

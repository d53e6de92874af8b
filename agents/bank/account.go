package bank

import (
	"time"

	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/message"
)

// balance answers who asks for its own accounts.
func (r *Role) balance(now time.Time, m protocol.Message) protocol.Output {
	a, ok := r.ledger.AccountAt(now, m.Sender)
	if !ok {
		return protocol.Output{Send: []protocol.Message{m.Reply(r.cfg.ID, protocol.Refuse, message.Refused(protocol.CodeAccount, "no such account"))}}
	}
	lines := Balances(a)
	if a.Standing == ledger.StandingFrozen { // its owner asks what may be spent
		for i := range lines {
			lines[i].Available, lines[i].Spendable = min(0, lines[i].Available), 0
		}
	}
	return protocol.Output{Send: []protocol.Message{m.Reply(r.cfg.ID, protocol.Inform, message.Balances{Accounts: lines})}}
}

// Balances are the lines of an account as they are told.
func Balances(a ledger.Account) []message.Balance {
	list := make([]message.Balance, 0, len(a.Lines))
	for _, l := range a.Lines {
		b := message.Balance{
			Account: a.ID, Name: a.Name, Currency: l.Currency, Balance: l.Balance, Held: l.Held,
			Limit: l.Overdraft, Available: l.Available, Group: l.Group, Spendable: l.Spendable,
			Income: l.Income, Decay: protocol.Credits(l.Decay), // parts per million are micro-credits of one
		}
		if l.Group != "" {
			b.Pays = l.Pays.String()
		}
		list = append(list, b)
	}
	return list
}

// statement passes the question to the store, which has the past. The entries of a
// group are shown to those whose jobs it pays.
func (r *Role) statement(m protocol.Message, q message.StatementQuery) protocol.Output {
	if q.Account != m.Sender {
		return r.no(m, protocol.CodeForbidden, "the account of somebody else")
	}
	if !q.Group {
		return r.askHistory(m, q)
	}
	g, pays := r.ledger.PayingGroup(m.Sender)
	if !pays {
		return r.no(m, protocol.CodeForbidden, "no group pays for the jobs of this account")
	}
	q.Account = g
	return r.askHistory(m, q)
}

// askHistory passes a question on to the store, with the address of who asks.
func (r *Role) askHistory(m protocol.Message, body protocol.Body) protocol.Output {
	m.ReplyWith = string(m.Sender) + " " + m.ReplyWith
	m.Sender, m.Receivers, m.Body = r.cfg.ID, []protocol.AgentID{protocol.LocalHistory}, body
	return protocol.Output{Send: []protocol.Message{m}}
}

// passOn brings the store's answer to who asked; its address is in the reply-with
// that askHistory made.
func (r *Role) passOn(m protocol.Message, how protocol.Performative, body protocol.Body) protocol.Output {
	if m.Sender != protocol.LocalHistory {
		return protocol.Output{}
	}
	to, tag := cutSpace(m.InReplyTo)
	if s, ok := body.(message.Statement); ok { // also of a group's account, which has no agent's ID
		s.Account = protocol.AgentID(to)
		body = s
	}
	return protocol.Output{Send: []protocol.Message{{
		Performative: how, Sender: r.cfg.ID, Receivers: []protocol.AgentID{protocol.AgentID(to)},
		Protocol: protocol.ProtocolRequest, Conversation: m.Conversation, InReplyTo: tag, Body: body,
	}}}
}

func cutSpace(s string) (before, after string) {
	for i := range len(s) {
		if s[i] == ' ' {
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

// The operator's acts. Each returns the entry it made; nothing is done until the
// Output is durable.

// OpenAccount opens an account for an agent, with an overdraft limit in every
// currency of the bank.
func (r *Role) OpenAccount(now time.Time, id protocol.AgentID, name string, limit protocol.Credits) (ledger.Entry, protocol.Output, error) {
	for _, c := range r.cfg.Currencies { // nothing is opened with a limit that is refused
		if err := r.ledger.MayOverdraw(c, limit); err != nil {
			return ledger.Entry{}, protocol.Output{}, err
		}
	}
	e, records, err := r.ledger.Open(now, id, name)
	if err != nil {
		return e, protocol.Output{}, err
	}
	out := protocol.Output{Save: records}
	for _, c := range r.cfg.Currencies {
		if limit == 0 {
			break
		}
		_, records, err := r.ledger.SetOverdraft(now, id, c, limit)
		if err != nil {
			return e, out, err
		}
		out.Save = append(out.Save, records...)
	}
	return e, out, nil
}

// Credit issues money to an account. Ref is the operator's reference.
func (r *Role) Credit(now time.Time, id protocol.AgentID, currency string, amount protocol.Credits, ref string) (ledger.Entry, protocol.Output, error) {
	e, records, err := r.ledger.Credit(now, id, currency, amount, ref)
	return e, protocol.Output{Save: records}, err
}

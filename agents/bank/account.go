package bank

import (
	"time"

	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// balance answers an agent that asks for its own accounts.
func (r *Role) balance(now time.Time, m protocol.Message) protocol.Output {
	a, ok := r.ledger.AccountAt(now, m.Sender)
	if !ok {
		return refused(r.cfg.ID, m, protocol.CodeAccount, "no such account")
	}
	return protocol.Output{Send: []protocol.Message{m.Reply(r.cfg.ID, protocol.Inform, message.Balances{Accounts: Balances(a)})}}
}

// Balances are the lines of an account as messages have them.
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

// voucher holds an amount for the bundle of a conversation, and signs that.
func (r *Role) voucher(now time.Time, m protocol.Message, q message.VoucherRequest) protocol.Output {
	h, records, err := r.ledger.Voucher(now, m.Sender, q.Currency, q.Conversation, q.Amount, q.Until)
	if err != nil {
		return refusal(r.cfg.ID, m, err)
	}
	n := contract.Voucher{
		Version: contract.NoteVersion, Bank: r.cfg.ID, User: m.Sender, Conversation: q.Conversation,
		Currency: h.Currency, Amount: h.Amount, Until: h.Until, Hold: h.Number,
	}
	body := message.Vouched{Signed: contract.VerifiedNote[contract.Voucher]{Note: n}}
	return protocol.Output{Save: records, Send: []protocol.Message{m.Reply(r.cfg.ID, protocol.Agree, body)}}
}

func (r *Role) quoted(m protocol.Message) func(q ledger.Quote, records []protocol.Record, err error) protocol.Output {
	return func(q ledger.Quote, records []protocol.Record, err error) protocol.Output {
		if err != nil {
			return protocol.Output{Save: records}.Join(refusal(r.cfg.ID, m, err))
		}
		n := contract.Quote{
			Version: contract.NoteVersion, Bank: r.cfg.ID, ID: q.ID, User: q.User, From: q.From, To: q.To,
			Gives: q.Gives, Gets: q.Gets, Until: q.Until, Entry: q.Entry,
		}
		body := message.Quoted{Signed: contract.VerifiedNote[contract.Quote]{Note: n}}
		return protocol.Output{Save: records, Send: []protocol.Message{m.Reply(r.cfg.ID, protocol.Agree, body)}}
	}
}

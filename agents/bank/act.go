package bank

import (
	"time"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// More acts of the operator; like OpenAccount and Credit, each returns the entry
// that it made, and nothing is done until the Output is durable. A refusal is a
// *ledger.Refusal, and changes nothing.

func act(e ledger.Entry, records []protocol.Record, err error) (ledger.Entry, protocol.Output, error) {
	return e, protocol.Output{Save: records}, err
}

// SetPolicy gives a currency its policy, before money moves in it, and tells the
// market at once: in which modes it is paid may be others now.
func (r *Role) SetPolicy(now time.Time, currency string, p ledger.Policy) (ledger.Entry, protocol.Output, error) {
	e, out, err := act(r.ledger.SetPolicy(now, currency, p))
	if err == nil {
		out = out.Join(r.beat(now))
	}
	return e, out, err
}

// SetLimit sets how far below zero an account may go; limit is zero or more.
// ID is an agent's, ledger.GroupID of a group, or ledger.House.
func (r *Role) SetLimit(now time.Time, id protocol.AgentID, currency string, limit protocol.Credits) (ledger.Entry, protocol.Output, error) {
	return act(r.ledger.SetOverdraft(now, id, currency, limit))
}

// SetStanding freezes an account, frees it, or closes it for ever.
func (r *Role) SetStanding(now time.Time, id protocol.AgentID, s ledger.Standing, ref string) (ledger.Entry, protocol.Output, error) {
	return act(r.ledger.SetStanding(now, id, s, ref))
}

// OpenGroup opens the account of a group; SetGroup then says who is in it.
func (r *Role) OpenGroup(now time.Time, name string) (ledger.Entry, protocol.Output, error) {
	return act(r.ledger.OpenGroup(now, name))
}

// SetGroup sets a group's shares, members and clusters, all at once.
func (r *Role) SetGroup(now time.Time, g ledger.Group, ref string) (ledger.Entry, protocol.Output, error) {
	return act(r.ledger.SetGroup(now, g, ref))
}

// SetAllowance gives an account an income per day.
func (r *Role) SetAllowance(now time.Time, id protocol.AgentID, currency string, income protocol.Credits, ref string) (ledger.Entry, protocol.Output, error) {
	return act(r.ledger.SetAllowance(now, id, currency, income, ref))
}

// SetRate sets what one credit of a currency buys of another; zero ends it.
func (r *Role) SetRate(now time.Time, from, to string, rate protocol.Credits, ref string) (ledger.Entry, protocol.Output, error) {
	return act(r.ledger.SetRate(now, from, to, rate, ref))
}

// Transfer moves money between two accounts; about names a disputed job.
func (r *Role) Transfer(now time.Time, from, to protocol.AgentID, currency string, amount protocol.Credits, about ledger.Disputed, ref string) (ledger.Entry, protocol.Output, error) {
	return act(r.ledger.Transfer(now, from, to, currency, amount, about, ref))
}

// Arbitrate decides what a held unit is paid: 0..held. It answers
// ledger.ErrAskStore if the store must be asked first: hand its answer to Recall.
func (r *Role) Arbitrate(now time.Time, id protocol.ContractID, unit int, paid protocol.Credits, ref string) (protocol.Receipt, protocol.Output, error) {
	var receipt protocol.Receipt
	var err error
	out := r.ends(id, unit, r.cfg.ID, func() protocol.Output {
		var records []protocol.Record
		receipt, records, err = r.ledger.Arbitrate(now, id, unit, paid, ref)
		return protocol.Output{Save: records}
	})
	return receipt, out, err
}

// Recall tells the bank what its store knows of a contract.
func (r *Role) Recall(id protocol.ContractID, found ledger.Lookup) error {
	return r.ledger.Recall(id, found)
}

// Invite makes an invitation, and Withdraw ends one.
func (r *Role) Invite(now time.Time, v ledger.Invitation, ref string) (ledger.Entry, protocol.Output, error) {
	return act(r.ledger.Invite(now, v, ref))
}

// Withdraw ends an invitation.
func (r *Role) Withdraw(now time.Time, token ledger.TokenHash, ref string) (ledger.Entry, protocol.Output, error) {
	return act(r.ledger.Withdraw(now, token, ref))
}

// Enrol lets an agent in that shows the token of an invitation. It is no act of
// the operator's hand, but rests on one, and is signed like one.
func (r *Role) Enrol(now time.Time, token ledger.TokenHash, id protocol.AgentID, name string) (ledger.Enrolment, protocol.Output, error) {
	e, records, err := r.ledger.Enrol(now, token, id, name)
	return e, protocol.Output{Save: records}, err
}

// SetRecovery begins or ends recovery after a restore from a backup, and tells the
// market at once: agents show a bank that recovers what it decided.
func (r *Role) SetRecovery(now time.Time, on bool, ref string) (ledger.Entry, protocol.Output, error) {
	e, out, err := act(r.ledger.SetRecovery(now, on, ref))
	if err == nil {
		out = out.Join(r.beat(now))
	}
	return e, out.Join(r.alarm()), err
}

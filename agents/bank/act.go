package bank

import (
	"slices"
	"time"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// The operator's acts. Each returns the entry that it made, and nothing is done until
// the Output is durable. A refusal is a *ledger.Refusal, and changes nothing.

func act(e ledger.Entry, records []protocol.Record, err error) (ledger.Entry, protocol.Output, error) {
	return e, protocol.Output{Save: records}, err
}

// OpenAccount opens an account for an agent, with an overdraft limit in every currency of the bank.
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
	return act(r.ledger.Credit(now, id, currency, amount, ref))
}

// Orders carries out the operator's orders that have a key once each, however often they
// are given. See ledger.Orders.
type Orders struct{ ledger *ledger.Ledger }

// Once carries out an act of the operator, once for each key: an order whose answer was lost is
// given again with its key and words, and Once returns the number and the time of its entry, and
// again. So it does with the key of a new command, if the same words were carried out for one that
// has ended before it confirmed its answer. Without a key it only acts.
func (o Orders) Once(now time.Time, key, words string, ended func(key string) bool, do func() (ledger.Entry, protocol.Output, error)) (e ledger.Entry, again bool, out protocol.Output, err error) {
	if key == "" {
		e, out, err = do()
		return e, false, out, err
	}
	left := o.ledger.Orders.Unconfirmed(words)
	if i := slices.IndexFunc(left, ended); i >= 0 && !slices.Contains(left, key) {
		e, out.Save, err = o.ledger.Orders.Adopt(left[i], key)
		return e, err == nil, out, err
	}
	e, again, records, err := o.ledger.Orders.Once(now, key, words, func() (ledger.Entry, []protocol.Record, error) {
		var done ledger.Entry
		done, out, err = do()
		return done, out.Save, err
	})
	out.Save = records
	return e, again, out, err
}

// Confirm forgets an order whose answer has arrived.
func (o Orders) Confirm(key string) protocol.Output {
	return protocol.Output{Save: o.ledger.Orders.Confirm(key)}
}

// SetPolicy gives a currency its policy, before money moves in it, and announces the
// bank at once: its modes may have changed.
func (r *Role) SetPolicy(now time.Time, currency string, p ledger.Policy) (ledger.Entry, protocol.Output, error) {
	e, out, err := act(r.ledger.SetPolicy(now, currency, p))
	if err == nil {
		out = out.Join(r.beacon.beat(now))
	}
	return e, out, err
}

// SetLimit sets how far below zero an account may go; limit is zero or more.
// ID is an agent's, ledger.GroupID of a group, or ledger.House.
func (r *Role) SetLimit(now time.Time, id protocol.AgentID, currency string, limit protocol.Credits) (ledger.Entry, protocol.Output, error) {
	return act(r.ledger.SetOverdraft(now, id, currency, limit))
}

// SetStanding freezes, unfreezes or closes an account. A closed one stays closed.
func (r *Role) SetStanding(now time.Time, id protocol.AgentID, s ledger.Standing, ref string) (ledger.Entry, protocol.Output, error) {
	return act(r.ledger.SetStanding(now, id, s, ref))
}

// OpenGroup opens the account of a group; SetGroup then sets its members.
func (r *Role) OpenGroup(now time.Time, name string) (ledger.Entry, protocol.Output, error) {
	return act(r.ledger.Groups.Open(now, name))
}

// SetGroup sets a group's shares, members and clusters, all at once.
func (r *Role) SetGroup(now time.Time, g ledger.Group, ref string) (ledger.Entry, protocol.Output, error) {
	return act(r.ledger.Groups.Set(now, g, ref))
}

// SetAllowance gives an account an income per day.
func (r *Role) SetAllowance(now time.Time, id protocol.AgentID, currency string, income protocol.Credits, ref string) (ledger.Entry, protocol.Output, error) {
	return act(r.ledger.SetAllowance(now, id, currency, income, ref))
}

// SetRate sets what one credit of a currency buys of another; zero ends it.
func (r *Role) SetRate(now time.Time, from, to string, rate protocol.Credits, ref string) (ledger.Entry, protocol.Output, error) {
	return act(r.ledger.Exchange.SetRate(now, from, to, rate, ref))
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
	out := r.endUnit(id, unit, r.cfg.ID, func() protocol.Output {
		var records []protocol.Record
		receipt, records, err = r.ledger.Arbitrate(now, id, unit, paid, ref)
		return protocol.Output{Save: records}
	})
	return receipt, out, err
}

// Recall hands the bank what its store knows of a contract.
func (r *Role) Recall(id protocol.ContractID, found ledger.Lookup) error {
	return r.ledger.Recall(id, found)
}

// Invite makes an invitation.
func (r *Role) Invite(now time.Time, v ledger.Invitation, ref string) (ledger.Entry, protocol.Output, error) {
	return act(r.ledger.Invitations.Invite(now, v, ref))
}

// Withdraw ends an invitation.
func (r *Role) Withdraw(now time.Time, token ledger.TokenHash, ref string) (ledger.Entry, protocol.Output, error) {
	return act(r.ledger.Invitations.Withdraw(now, token, ref))
}

// Enrol lets an agent in that shows the token of an invitation. It is no act of
// the operator's hand, but rests on one, and is signed like one.
func (r *Role) Enrol(now time.Time, token ledger.TokenHash, id protocol.AgentID, name string) (ledger.Enrolment, protocol.Output, error) {
	e, records, err := r.ledger.Invitations.Enrol(now, token, id, name)
	return e, protocol.Output{Save: records}, err
}

// SetRecovery begins or ends recovery after a restore from a backup, and announces the
// bank at once: agents show a bank that recovers what it decided.
func (r *Role) SetRecovery(now time.Time, on bool, ref string) (ledger.Entry, protocol.Output, error) {
	e, out, err := act(r.ledger.SetRecovery(now, on, ref))
	if err == nil {
		out = out.Join(r.beacon.beat(now))
	}
	return e, out.Join(r.alarm()), err
}

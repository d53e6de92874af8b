package user

import (
	"slices"
	"time"

	"ramp/agents/user/sweeper"
	"ramp/protocol"
	"ramp/protocol/message"
)

// sweepAgent carries out what sweeps want done.
type sweepAgent struct{ r *Role }

// Sellers are the sellers that are present, with all their cores.
func (a sweepAgent) Sellers(now time.Time) []sweeper.Seller {
	var list []sweeper.Seller
	for _, k := range a.r.directory.list(now, protocol.KindResource) {
		list = append(list, sweeper.Seller{ID: k.ID, Cores: k.Presence.Properties.Cores})
	}
	return list
}

// Buy orders a lease, or a quote for one. Leases are not metered, whatever the owner prefers: a metered
// unit ends with its first program.
func (a sweepAgent) Buy(now time.Time, order message.Buy) protocol.Output {
	if a.r.cfg.Mode == protocol.ModeMetered {
		order.Options.Mode = protocol.ModeOnReservation
	}
	return a.r.purchases.buy(now, order)
}

func (a sweepAgent) Going(id string) (waits string, going bool) {
	if p := a.r.purchases.by[id]; p != nil {
		return p.waits(), true
	}
	return "", false
}

func (a sweepAgent) Launch(now time.Time, run message.Run) protocol.Output {
	return a.r.runs.launch(now, run)
}

func (a sweepAgent) Run(id string) (message.Run, bool) {
	if x := a.r.runs.by[id]; x != nil {
		return x.view, true
	}
	return message.Run{}, false
}

func (a sweepAgent) Kill(now time.Time, id string) protocol.Output {
	return a.r.runs.control(now, message.RunControl{ID: id, Verb: message.VerbKill})
}

func (a sweepAgent) Discard(now time.Time, id string) protocol.Output {
	return a.r.runs.discard(now, id)
}

func (a sweepAgent) Release(_ time.Time, lease string, seller protocol.AgentID, contract protocol.ContractID) protocol.Output {
	return protocol.Output{Send: []protocol.Message{request(a.r.ID(), seller, lease, "release", message.LaunchOrder{Contract: contract, ID: lease, Verb: message.VerbRelease})}}
}

// sweepTraded passes the outcome of a trade on.
func (r *Role) sweepTraded(now time.Time, p *purchase) protocol.Output {
	t := sweeper.Traded{ID: p.row.ID, Why: p.row.Why, Currency: p.row.Currency, Mode: p.row.Mode}
	if p.buyer != nil {
		for _, b := range p.buyer.Offers() {
			it := b.Offer.Items[0]
			t.Offers = append(t.Offers, sweeper.Offer{Seller: b.Seller, Price: it.Price, Start: it.Slot.Start})
		}
	}
	return r.sweeps.Traded(now, t)
}

// sweepOver passes on the purchase of a lease that has just ended.
func (r *Role) sweepOver(now time.Time, p *purchase) protocol.Output {
	b := leaseOf(&p.row)
	if p.coord != nil && p.coord.Receipt() != nil {
		b.Entry = p.coord.Receipt().Entry
	}
	return r.sweeps.Bought(now, b)
}

// sweepBought passes on how the purchase of a lease stands.
func (r *Role) sweepBought(now time.Time, row *Row) protocol.Output {
	return r.sweeps.Bought(now, leaseOf(row))
}

func leaseOf(row *Row) sweeper.Bought {
	b := sweeper.Bought{ID: row.ID, Why: row.Why, Poor: row.Void == protocol.CodeFunds}
	if row.Settled && len(row.Units) == 1 {
		u := row.Units[0]
		b.Settled, b.Contract, b.Total, b.Refunded = true, row.Contract, row.Total, row.RefundTotal
		b.Slot = protocol.Slot{Start: u.Start, End: u.End, Cores: u.Cores}
		b.After, b.Ended = row.Mode != "" && row.Mode != protocol.ModeOnReservation, !open(u)
	}
	return b
}

// Sweeps are the agent's sweeps.
func (r *Role) Sweeps() *sweeper.Sweeps { return r.sweeps }

// discard has the site of a run that is over remove its files, and forgets the run then.
func (r *runs) discard(now time.Time, id string) protocol.Output {
	x := r.by[id]
	if x == nil {
		return protocol.Output{}
	}
	x.view.Discarding = true
	x.hurry(now)
	return protocol.Output{Save: []protocol.Record{x.save()}, WakeAt: now}
}

// discarding asks the site of a run that is over to remove its files, until it has or cannot any more.
func (r *runs) discarding(now time.Time, x *run) protocol.Output {
	u := x.view.Units[0]
	if now.After(u.Slot.End.Add(unanswered)) {
		return r.forget(x)
	}
	out := protocol.Output{Send: []protocol.Message{x.order(0, message.LaunchOrder{Verb: message.VerbDiscard})}}
	x.pace[0].wait(now)
	out.WakeAt = x.due(now)
	return out
}

// discarded takes the answer of a site that was asked to remove a run's files.
func (r *runs) discarded(x *run, m protocol.Message) protocol.Output {
	switch body := m.Body.(type) {
	case message.LaunchStatus:
		if body.Stage.Over() && body.Keep.IsZero() { // what a site remembers with files has an end
			return r.forget(x)
		}
	case message.Refusal:
		gone := func(why protocol.Reason) bool {
			return why.Code == protocol.CodeUnknown || why.Code == protocol.CodeForbidden
		}
		if m.Performative != protocol.Failure && slices.ContainsFunc(body.Reasons, gone) {
			return r.forget(x)
		}
	}
	return protocol.Output{}
}

func (r *runs) forget(x *run) protocol.Output {
	delete(r.by, x.view.ID)
	return protocol.Output{Save: []protocol.Record{{Table: TableRuns, Key: x.view.ID}}}
}

package resource

import (
	"slices"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Receive takes a message from another agent, the batch system or the files. It hands
// the message to the part that owns what the message is about:
//
//	market    what the batch system shows, and what is free
//	sellers   auctions
//	launches  programs in sold slots
//	promises  reservations, contracts and their settlement
func (r *Role) Receive(now time.Time, m protocol.Message) protocol.Output {
	return r.receipts.Receive(now, m, r.receive)
}

func (r *Role) receive(now time.Time, m protocol.Message) protocol.Output {
	if out, ok := r.fed.receive(now, m); ok {
		return out
	}
	if !expected(m) {
		return r.unexpected(m)
	}
	switch body := m.Body.(type) {
	case message.QueueChanged:
		return r.queueChanged(now, m, body)
	case message.QueueDown:
		r.market.down = &body // nothing is sold until it can be reached
		return protocol.Output{}
	case message.Presence:
		r.banks.hear(now, m, body)
		r.fed.meet(m.Sender, body)
		return r.promises.Heard(now, m.Sender, !body.Recovering.IsZero())
	case message.CallForProposals:
		return r.call(now, m, body)
	case message.Acceptance:
		return r.accept(now, m, body)
	case message.LaunchOrder:
		return r.order(now, m, body)
	case message.Launch, message.JobRefused, message.Prepared, message.Collected:
		out, _ := r.launches.Receive(now, m)
		return out.Join(r.fed.follow(now))
	case message.JobChanged:
		return r.jobChanged(now, m, body)
	case message.SlotUsed:
		return r.slotUsed(now, m, body)
	case message.SoldList:
		return r.commit(now, m).Join(r.appear(now))
	case message.Decision:
		return r.commit(now, m).Join(r.launches.Decided(now, body.Contract))
	}
	return r.commit(now, m)
}

// expected reports whether the performative fits the body, and the sender may send it.
func expected(m protocol.Message) bool {
	p, remote := m.Performative, !m.Sender.Local()
	switch m.Body.(type) {
	case message.Reserved, message.Released, message.QueueChanged, message.QueueDown, message.SlotUsed, message.JobChanged, message.JobRefused:
		return m.Sender == protocol.LocalQueue
	case message.Prepared, message.Collected:
		return m.Sender == protocol.LocalFiles
	case message.Presence:
		return true
	case message.CallForProposals:
		return p == protocol.CFP
	case message.Acceptance:
		return p == protocol.AcceptProposal
	case message.SoldList, message.BundleCopy:
		return p == protocol.Inform && remote
	case message.Confirmation:
		return p == protocol.Confirm && remote
	case message.Cancellation:
		return p == protocol.Cancel && remote
	case message.UnitCancellation, message.Launch, message.LaunchOrder:
		return p == protocol.Request && remote
	case message.Decision:
		return (p == protocol.Agree || p == protocol.Refuse || p == protocol.Inform) && remote
	case message.Refusal:
		return p == protocol.Refuse && remote
	}
	return false
}

// queueChanged takes the state of the batch system: it is what can be sold, shows
// which promises hold, and teaches how long jobs wait and run.
func (r *Role) queueChanged(now time.Time, m protocol.Message, q message.QueueChanged) protocol.Output {
	q, claims := r.fed.foreign(now, r.self, q, r.launches)
	m.Body = q
	r.market.renew(now, q)
	r.sellers.Retune(r.seller())
	r.learner.observe(q)
	out := claims.Join(r.commit(now, m)).Join(r.review(now))
	out.Save = append(out.Save, r.learner.save(now)...)
	return out
}

// slotUsed takes the batch system's report on a slot. If programs were launched in
// the slot, their usage counts instead; a running one is measured first.
func (r *Role) slotUsed(now time.Time, m protocol.Message, u message.SlotUsed) protocol.Output {
	status, ok := r.launches.Used(now, u.ID)
	if !ok {
		return r.commit(now, m)
	}
	if query, runs := r.launches.Measure(u.ID); runs && !status.State.Over() {
		return query
	}
	return r.used(now, m, u.ID)
}

// jobChanged takes the status of a program. If it ends its unit, for instance because its
// buyer killed it, payment by usage is due, and the cores are free again.
func (r *Role) jobChanged(now time.Time, m protocol.Message, body message.JobChanged) protocol.Output {
	out, _ := r.launches.Receive(now, m)
	out = out.Join(r.fed.follow(now))
	if r.fed == nil && body.Status.State.Over() && strings.HasPrefix(body.ID, claimPrefix) { // its cores are free
		out = out.Join(r.poll(now))
	}
	reservation, ends := r.launches.Ends(body.ID)
	if !ends {
		return out
	}
	return out.Join(r.used(now, m, reservation))
}

// order takes a buyer's order about a program. One that releases its unit ends it, as the
// end of the last program does.
func (r *Role) order(now time.Time, m protocol.Message, body message.LaunchOrder) protocol.Output {
	out, _ := r.launches.Receive(now, m)
	out = out.Join(r.fed.follow(now))
	reservation, released := r.launches.Released(m.Sender, body)
	if !released {
		return out
	}
	m.Performative, m.Sender = protocol.Inform, protocol.LocalQueue
	return out.Join(r.used(now, m, reservation))
}

// used settles the usage of a slot's programs, and stops them if their contract ended.
func (r *Role) used(now time.Time, m protocol.Message, reservation string) protocol.Output {
	status, ok := r.launches.Used(now, reservation)
	if !ok {
		return protocol.Output{}
	}
	m.Body = message.SlotUsed{ID: reservation, At: now, Status: status}
	return r.commit(now, m).Join(r.launches.Stop(now, reservation))
}

// commit hands a message to the commit side.
func (r *Role) commit(now time.Time, m protocol.Message) protocol.Output {
	out, ok := r.promises.Receive(now, m)
	if !ok {
		return r.unexpected(m)
	}
	return r.markOverbooked(out)
}

// thread is one agent's part of one conversation.
type thread struct {
	sender       protocol.AgentID
	conversation string
}

// unexpected takes a message that no part handles. A rejection ends its auction. A
// request is answered with not-understood once in a thread, so that two agents never
// answer each other without end; everything else is dropped.
func (r *Role) unexpected(m protocol.Message) protocol.Output {
	if m.Performative == protocol.RejectProposal {
		r.sellers.Forget(m.Sender, m.Conversation)
		return protocol.Output{}
	}
	t := thread{m.Sender, m.Conversation}
	if m.Sender.Local() || !wantsAnswer(m.Performative) || slices.Contains(r.strange.items, t) {
		return protocol.Output{}
	}
	r.strange.add(t)
	return protocol.Output{Send: []protocol.Message{
		m.Reply(r.self, protocol.NotUnderstood, message.Refused(protocol.CodeMalformed, "a resource agent does not expect this message here"))}}
}

func wantsAnswer(p protocol.Performative) bool {
	return slices.Contains([]protocol.Performative{protocol.CFP, protocol.AcceptProposal, protocol.Request, protocol.QueryRef, protocol.Confirm, protocol.Propose}, p)
}

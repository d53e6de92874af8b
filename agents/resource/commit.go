package resource

import (
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// thread is one agent's part of one conversation.
type thread struct {
	sender       protocol.AgentID
	conversation string
}

// commit brings a message to the commit side, if its performative says what its
// body means; anything else is not understood.
func (r *Role) commit(now time.Time, m protocol.Message) protocol.Output {
	if !meant(m) {
		return r.other(m)
	}
	out, ok := r.promises.Receive(now, m)
	if !ok {
		return r.other(m)
	}
	return r.over(out)
}

// slotUsed takes what the batch system says of a slot. Where programs were
// launched in it, they know better: what they did is what was delivered. One that
// runs is measured first.
func (r *Role) slotUsed(now time.Time, m protocol.Message, u message.SlotUsed) protocol.Output {
	status, ok := r.launches.Used(now, u.ID)
	if !ok {
		return r.commit(now, m)
	}
	if ask, runs := r.launches.Measure(u.ID); runs && !status.State.Over() {
		return ask
	}
	return r.usedBy(now, m, u.ID, status)
}

// measured takes how a program stands that is paid for what it uses: its contract
// may be over now. One that its buyer has killed is reported at once: what is due is
// paid, and its cores are free again.
func (r *Role) measured(now time.Time, m protocol.Message) protocol.Output {
	body, ok := m.Body.(message.JobChanged)
	if !ok || m.Sender != protocol.LocalQueue {
		return protocol.Output{}
	}
	reservation, metered := r.launches.Metered(body.ID)
	status, ok := r.launches.Used(now, reservation)
	if !metered || !ok {
		return protocol.Output{}
	}
	return r.usedBy(now, m, reservation, status)
}

// usedBy takes what the programs in a slot have used, and ends what runs there if
// that ends its contract.
func (r *Role) usedBy(now time.Time, m protocol.Message, reservation string, status protocol.JobStatus) protocol.Output {
	m.Body = message.SlotUsed{ID: reservation, At: now, Status: status}
	return r.commit(now, m).Join(r.launches.Stop(now, reservation))
}

// meant reports whether a message says what such a body can say, and comes from
// where it can come.
func meant(m protocol.Message) bool {
	p := m.Performative
	switch m.Body.(type) {
	case message.Reserved, message.Released, message.QueueChanged, message.SlotUsed:
		return m.Sender == protocol.LocalQueue
	case message.SoldList, message.BundleCopy:
		return p == protocol.Inform && !m.Sender.Local()
	case message.Confirmation:
		return p == protocol.Confirm && !m.Sender.Local()
	case message.Cancellation:
		return p == protocol.Cancel && !m.Sender.Local()
	case message.UnitCancellation:
		return p == protocol.Request && !m.Sender.Local()
	case message.Decision:
		return (p == protocol.Agree || p == protocol.Refuse || p == protocol.Inform) && !m.Sender.Local()
	case message.Refusal:
		return p == protocol.Refuse && !m.Sender.Local()
	}
	return false
}

// other takes what is neither for the auction nor for the commit. A rejection
// ends its auction. What asks for an answer gets not-understood, once a thread;
// the rest is dropped, so that two agents never answer each other for ever.
func (r *Role) other(m protocol.Message) protocol.Output {
	if m.Performative == protocol.RejectProposal {
		r.sellers.Forget(m.Sender, m.Conversation)
		return protocol.Output{}
	}
	if m.Sender.Local() || !asks(m.Performative) {
		return protocol.Output{}
	}
	t := thread{m.Sender, m.Conversation}
	if r.strange.contains(t) {
		return protocol.Output{}
	}
	r.strange.add(t)
	return protocol.Output{Send: []protocol.Message{
		m.Reply(r.self, protocol.NotUnderstood, message.Refused(protocol.CodeMalformed, "a resource agent does not take this here"))}}
}

// asks reports whether a performative wants an answer.
func asks(p protocol.Performative) bool {
	switch p {
	case protocol.CFP, protocol.AcceptProposal, protocol.Request, protocol.QueryRef, protocol.Confirm, protocol.Propose:
		return true
	}
	return false
}

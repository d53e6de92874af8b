package reserve

import (
	"slices"
	"time"

	"ramp/protocol"
)

// turn gathers the effects of one event: messages to send, records to save, and
// the deals that it changed. Each changed deal is saved once, at the end.
type turn struct {
	self    protocol.AgentID
	now     time.Time
	out     protocol.Output
	seen    []*deal            // deals whose alarm may have changed
	changed []*deal            // deals to save
	debtors []protocol.AgentID // buyers whose debt to save
	all     bool               // the turn visits every deal
	woken   bool               // the alarm has gone off, so none is set
}

func (t *turn) send(m ...protocol.Message) { t.out.Send = append(t.out.Send, m...) }
func (t *turn) save(r protocol.Record)     { t.out.Save = append(t.out.Save, r) }

// see recomputes the alarm of d at the end of the turn.
func (t *turn) see(d *deal) {
	if !t.all && !d.seen {
		d.seen = true
		t.seen = append(t.seen, d)
	}
}

// touch saves d at the end of the turn.
func (t *turn) touch(d *deal) {
	t.see(d)
	if !slices.Contains(t.changed, d) {
		t.changed = append(t.changed, d)
	}
}

func (t *turn) message(to protocol.AgentID, perf protocol.Performative, token, conversation string, body protocol.Body) protocol.Message {
	return protocol.Message{
		Performative: perf, Sender: t.self, Receivers: []protocol.AgentID{to},
		Protocol: token, Conversation: conversation, Body: body,
	}
}

// queue sends a request to the batch system.
func (t *turn) queue(body protocol.Body) {
	t.send(t.message(protocol.LocalQueue, protocol.Request, protocol.ProtocolQueue, "", body))
}

// ask sends a request or query to a bank or a user; tag marks the answer.
func (t *turn) ask(to protocol.AgentID, perf protocol.Performative, conversation, tag string, body protocol.Body) {
	m := t.message(to, perf, protocol.ProtocolRequest, conversation, body)
	m.ReplyWith = tag
	t.send(m)
}

func (t *turn) reply(m protocol.Message, perf protocol.Performative, body protocol.Body) {
	t.send(m.Reply(t.self, perf, body))
}

// backOff sets the claim's next attempt: from RetryFirst, doubling, to RetryMost.
func (t *turn) backOff(c *claim) {
	t.see(c.deal)
	c.retryAt = t.now.Add(backOff(c.retries))
	c.retries++
}

func backOff(retries int) time.Duration {
	return min(protocol.RetryMost, protocol.RetryFirst<<min(retries, maxDoublings))
}

const maxDoublings = 6 // RetryFirst doubled this often exceeds RetryMost

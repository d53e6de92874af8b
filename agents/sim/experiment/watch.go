package experiment

import (
	"slices"
	"time"

	"ramp/agents/sim"
	"ramp/protocol"
	"ramp/protocol/message"
)

// bid is an offer for one unit, as a buyer received it.
type bid struct {
	conversation string
	round        int
	unit         int
	seller       string
	at           time.Duration // since the market's start
	standing     protocol.Credits
	price        protocol.Credits
}

// callKey names a round of a conversation.
type callKey struct {
	conversation string
	round        int
}

// watch owns the bids and answers observed in a world.
type watch struct {
	world    *sim.World
	calls    map[callKey]call
	bids     []bid
	answers  map[string][]time.Duration // response times, by conversation
	answered map[callKey]int            // answers received, of any kind
	proposed map[callKey]int            // proposals among them
	quiet    bool                       // do not keep bids
}

type call struct {
	at        time.Duration
	standings []protocol.Credits
}

// sent observes a packet that leaves.
func (w *watch) sent(p sim.Packet, now time.Duration) {
	body, ok := p.Message.Body.(message.CallForProposals)
	if !ok {
		return
	}
	key := callKey{p.Message.Conversation, body.Round}
	if _, known := w.calls[key]; known {
		return
	}
	w.calls[key] = call{now, each(body.Ceilings, func(l message.Ceiling) protocol.Credits { return l.Price })}
}

// Delivered observes answers.
func (w *watch) Delivered(_, from *sim.Host, m protocol.Message) {
	switch body := m.Body.(type) {
	case message.Proposal:
		key := callKey{m.Conversation, body.Round}
		w.answer(key)
		w.proposed[key]++
		for _, o := range body.Offers {
			w.offered(key, from, o)
		}
	case message.Refusal:
		if body.Round > 0 {
			w.answer(callKey{m.Conversation, body.Round})
		}
	}
}

func (w *watch) answer(key callKey) {
	if c, ok := w.calls[key]; ok {
		w.answered[key]++
		w.answers[key.conversation] = append(w.answers[key.conversation], w.world.Elapsed()-c.at)
	}
}

func (w *watch) offered(key callKey, from *sim.Host, o protocol.Offer) {
	if w.quiet || len(o.Items) != 1 {
		return
	}
	b := bid{
		conversation: key.conversation, round: key.round, unit: o.Items[0].Unit, seller: from.Name,
		at: w.world.Elapsed(), price: o.Items[0].Price,
	}
	if c := w.calls[key]; b.unit < len(c.standings) {
		b.standing = c.standings[b.unit]
	}
	w.bids = append(w.bids, b)
}

// of returns the bids of a conversation, in order of arrival.
func (w *watch) of(conversation string) []bid {
	return slices.DeleteFunc(slices.Clone(w.bids), func(b bid) bool { return b.conversation != conversation })
}

// Durable does nothing.
func (w *watch) Durable(*sim.Host, []protocol.Record) {}

// Refused does nothing: all agents here use the codec.
func (w *watch) Refused(*sim.Host, protocol.AgentID, error) {}

// Sent does nothing: the stage's hook observes packets one by one.
func (w *watch) Sent(*sim.Host, protocol.Message) {}

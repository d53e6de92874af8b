// Package resource is the resource agent: what a site bids, and what it
// promises (002 §6.2).
//
// A Role answers calls for proposals from what the batch system foresees and the
// site's price band, votes on accepted offers by reserving in the batch system,
// countersigns contracts, and keeps what it has sold. It decides without I/O:
// the batch system is a correspondent that it sends to and hears from, and
// whatever it promises is in its Output's Save before it is in its Send.
//
// Until the batch system has told its state, every call is refused as
// unavailable: nothing is offered blindly.
package resource

import (
	"errors"
	"time"

	"ramp/agents/resource/calendar"
	"ramp/agents/resource/launch"
	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// ErrNotReady is returned until the batch system has told its state, which
// takes it a moment after the start. Asking again helps.
var ErrNotReady = errors.New("the batch system has not told its state yet")

// Role is a resource agent.
type Role struct {
	cfg      Config
	self     protocol.AgentID
	market   market
	sellers  *auction.Sellers
	promises *reserve.Participant
	launches *launch.Site
	quotes   ring[message.QuoteLine]
	strange  ring[thread] // threads that were answered not-understood
	drained  *drained     // by the site's owner
	hindered pause        // by its machine
	leaving  bool
	banks    banks
	learner  learner
	kept     kept
	beatAt   time.Time
	counter  uint64 // of presences
	counted  uint64 // saved: counter may rise to it
	pollAt   time.Time
}

// Bounds of a resource agent.
const (
	MaxQuotes  = 4096 // lines kept for `offers`; the oldest go first
	maxStrange = 1024 // threads remembered as not understood
	// PollPeriod is how often the batch system is asked for its state, besides
	// what it tells by itself: journal and batch system are compared then.
	PollPeriod = time.Minute
)

// New restores a resource agent from its tables. Its first Output goes on with
// what was promised, asks the batch system for its state, and tells the market
// that the agent is there. Errors: a wrong Config, or tables that cannot be read.
func New(cfg Config, tables protocol.Tables, now time.Time) (*Role, protocol.Output, error) {
	if err := cfg.Validate(); err != nil {
		return nil, protocol.Output{}, err
	}
	cfg = cfg.filled()
	r := &Role{
		cfg: cfg, self: cfg.Credential.ID, sellers: auction.NewSellers(cfg.seller()),
		quotes: newRing[message.QuoteLine](MaxQuotes), strange: newRing[thread](maxStrange),
		market: market{calendar: calendar.New(cfg.Properties.Cores, now)},
		banks:  banks{terms: cfg.Terms, heard: map[protocol.AgentID]bankHeard{}}, learner: newLearner(cfg.Learnt),
		kept: newKept(cfg.BrokenPerMille),
	}
	if err := r.readTables(tables); err != nil {
		return nil, protocol.Output{}, err
	}
	if cfg.Sharpen {
		r.market.sharp = newSharp(cfg.Properties.Cores, r.learner.learnt, now)
	}
	r.counter = max(r.counter, uint64(now.UnixMicro())) // above those of a journal that was lost
	promises := cfg.participant()
	promises.Book = &r.market
	var out protocol.Output
	var err error
	r.promises, out, err = reserve.NewParticipant(promises, tables, now)
	if err != nil {
		return nil, protocol.Output{}, err
	}
	var runs protocol.Output
	if r.launches, runs, err = launch.New(cfg.launches(), r.promises, tables, now); err != nil {
		return nil, protocol.Output{}, err
	}
	return r, r.over(out).Join(runs).Join(r.judge(now)).Join(r.poll(now)).Join(r.appear(now)), nil
}

// readTables reads what is the agent's own beside its promises.
func (r *Role) readTables(tables protocol.Tables) error {
	if err := tables.Each(TablePresence, r.readCounter); err != nil {
		return err
	}
	if err := tables.Each(TableForecast, r.learner.read); err != nil {
		return err
	}
	if err := tables.Each(TableKept, r.kept.read); err != nil {
		return err
	}
	return tables.Each(TableDrained, r.readDrained)
}

// ID is the agent's own.
func (r *Role) ID() protocol.AgentID { return r.self }

// Receive takes a message from another agent or from the batch system.
func (r *Role) Receive(now time.Time, m protocol.Message) protocol.Output {
	switch body := m.Body.(type) {
	case message.QueueChanged:
		if m.Sender == protocol.LocalQueue {
			r.market.renew(now, body)
			r.sellers.Retune(r.seller())
			r.learner.look(body)
			out := r.commit(now, m).Join(r.judge(now))
			out.Save = append(out.Save, r.learner.save(now)...)
			return out
		}
	case message.QueueDown:
		if m.Sender == protocol.LocalQueue {
			r.market.fail(body)
			return protocol.Output{}
		}
	case message.SlotUsed:
		if m.Sender == protocol.LocalQueue {
			return r.slotUsed(now, m, body)
		}
	case message.Presence:
		r.banks.hear(now, m, body)
		return r.promises.Heard(now, m.Sender, !body.Recovering.IsZero())
	case message.CallForProposals:
		if m.Performative == protocol.CFP {
			return r.call(now, m, body)
		}
	case message.SoldList:
		return r.commit(now, m).Join(r.appear(now))
	case message.Acceptance:
		if m.Performative == protocol.AcceptProposal {
			return r.accept(now, m, body)
		}
	}
	if out, ok := r.launches.Receive(now, m); ok {
		return out.Join(r.measured(now, m))
	}
	return r.commit(now, m)
}

// call answers a call for proposals and keeps why.
func (r *Role) call(now time.Time, m protocol.Message, call message.CallForProposals) protocol.Output {
	if p, ok := r.paused(now); ok {
		return r.refuse(m, message.Refusal{Round: call.Round, Reasons: []protocol.Reason{{Code: p.code, Unit: protocol.AllUnits, Note: p.why}}})
	}
	a, ok := r.sellers.Call(now, m, call, r.market.current())
	if !ok {
		return protocol.Output{} // of a round that is over: replayed, or overtaken
	}
	body := r.learner.tell(now, a.Body, a.Lines)
	for _, line := range a.Lines {
		r.quotes.add(line)
	}
	return protocol.Output{Send: []protocol.Message{m.Reply(r.self, a.Performative, body)}}
}

// seller is what auctions are told: the site's word, and what the batch system lets
// jobs do.
func (r *Role) seller() auction.SellerConfig {
	c := r.cfg.seller()
	c.Longest = r.market.longest
	return c
}

// accept asks for a vote on an offer. While nothing is sold it is still answered
// for what is held already.
func (r *Role) accept(now time.Time, m protocol.Message, a message.Acceptance) protocol.Output {
	var offered *reserve.Offered
	_, closed := r.paused(now)
	if o, document, ok := r.sellers.Offer(now, m.Sender, m.Conversation, a.Offer.ID); ok && !closed {
		offered = &reserve.Offered{Offer: o, Document: document, Tariffs: r.sellers.Tariffs(m.Sender, m.Conversation, o)}
	}
	out := r.promises.Accept(now, m, a, offered)
	out.Save = append(out.Save, r.dare()...)
	return r.over(out)
}

func (r *Role) refuse(m protocol.Message, body message.Refusal) protocol.Output {
	return protocol.Output{Send: []protocol.Message{m.Reply(r.self, protocol.Refuse, body)}}
}

// Wake does what is due: holds that end, banks and the batch system to be asked,
// the next presence.
func (r *Role) Wake(now time.Time) protocol.Output {
	out := r.over(r.promises.Wake(now)).Join(r.launches.Wake(now))
	if !now.Before(r.pollAt) {
		r.market.forget(now)
		out = out.Join(r.poll(now))
	}
	if !now.Before(r.beatAt) && !r.beatAt.IsZero() {
		out = out.Join(r.beat(now))
	}
	out.WakeAt = protocol.Earlier(protocol.Earlier(out.WakeAt, r.pollAt), r.beatAt)
	return out
}

// poll asks the batch system for its state.
func (r *Role) poll(now time.Time) protocol.Output {
	r.pollAt = now.Add(PollPeriod)
	return protocol.Output{WakeAt: r.pollAt, Send: []protocol.Message{{
		Performative: protocol.QueryRef, Sender: r.self, Receivers: []protocol.AgentID{protocol.LocalQueue},
		Protocol: protocol.ProtocolQueue, Body: message.QueueQuery{},
	}}}
}

// Promised counts the units that are held, in doubt, or sold and not over.
func (r *Role) Promised(now time.Time) int { return r.promises.Promised(now) }

// Unsure reports whether a reservation is kept because banks have not told yet
// whether it was sold.
func (r *Role) Unsure(reservation string) bool { return r.promises.Unsure(reservation) }

// Reservations are all units that the journal has, in order of start.
func (r *Role) Reservations() []message.ReservationLine { return r.promises.Reservations() }

// Offers are the lines of the last offers and refusals, oldest first, at most
// MaxQuotes.
func (r *Role) Offers() []message.QuoteLine { return r.quotes.all() }

// Launches are the programs that run, or ran, in what was sold.
func (r *Role) Launches() *launch.Site { return r.launches }

// Check explains what the agent would offer for a document, round by round, to
// a buyer who deals on its terms, if another seller always met its price. rounds
// is 1..protocol.MaxRounds. Errors: a document that cannot be read, ErrNotReady.
func (r *Role) Check(now time.Time, document []byte, rounds int) ([]message.QuoteLine, error) {
	if !r.market.known {
		return nil, ErrNotReady
	}
	call := message.CallForProposals{Document: document, Terms: r.cfg.Terms, Modes: r.cfg.Modes}
	lines, err := auction.Check(r.seller(), now, call, min(rounds, protocol.MaxRounds), r.market.current())
	r.learner.explain(now, lines)
	return lines, err
}

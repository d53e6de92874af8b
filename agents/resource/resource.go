// Package resource is the resource agent: it decides what a site bids and promises (002 §6.2).
//
// A Role answers calls for proposals from the batch system's forecast and the site's
// price band, votes on accepted offers by reserving in the batch system, countersigns
// contracts, and keeps what it has sold. It decides without I/O: the batch system is a
// correspondent, and every promise is in an Output's Save before it is in a Send.
//
// Until the batch system has reported its state, the Role refuses every call as
// unavailable: it offers nothing blindly. Receive is the entrance for all messages.
package resource

import (
	"errors"
	"time"

	"ramp/agents/receipts"
	"ramp/agents/resource/calendar"
	"ramp/agents/resource/launch"
	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// ErrNotReady means that the batch system has not reported its state yet, which takes
// a moment after the start. Try again.
var ErrNotReady = errors.New("the batch system has not reported its state yet")

// Role is a resource agent.
type Role struct {
	cfg      Config
	self     protocol.AgentID
	market   market
	sellers  *auction.Sellers
	promises *reserve.Participant
	launches *launch.Site
	fed      *federated // nil: it is in no federation
	receipts receipts.Keeper
	quotes   ring[message.QuoteLine]
	strange  ring[thread] // threads answered with not-understood
	drained  *drained     // by the site's owner; nil: it sells
	hindered pause        // by its machine
	leaving  bool
	banks    banks
	learner  learner
	record   record
	beatAt   time.Time
	counter  uint64 // of presences
	counted  uint64 // saved: the counter may rise to it
	pollAt   time.Time
}

// Bounds of a resource agent.
const (
	MaxQuotes  = 4096 // lines kept for `offers`; the oldest go first
	maxStrange = 1024 // threads remembered as not understood
	// PollPeriod is how often the Role asks the batch system for its state, besides the
	// reports that it sends by itself. Journal and batch system are compared then.
	PollPeriod = time.Minute
)

// New restores a resource agent from its tables. Its first Output continues with its
// promises, asks the batch system for its state, and announces the agent to the
// market. Errors: a wrong Config, or tables that cannot be read.
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
		record: record{bound: cfg.BrokenPerMille, promises: map[string]promise{}}, receipts: receipts.New(cfg.Credential.ID, cfg.Trust, true),
	}
	if err := r.readTables(tables); err != nil {
		return nil, protocol.Output{}, err
	}
	if cfg.Overbook {
		r.market.optimistic = newOptimistic(cfg.Properties.Cores, r.learner.learnt, now)
	}
	r.counter = max(r.counter, uint64(now.UnixMicro())) // above those of a lost journal
	promises := cfg.participant()
	promises.Book = &r.market
	var out protocol.Output
	var err error
	r.promises, out, err = reserve.NewParticipant(promises, tables, now)
	if err != nil {
		return nil, protocol.Output{}, err
	}
	var runs protocol.Output
	if r.fed, err = newFederated(cfg.Federation, r.self, tables); err != nil {
		return nil, protocol.Output{}, err
	}
	r.market.fed = r.fed
	if r.launches, runs, err = launch.New(cfg.launches(), units{r.promises, r.fed}, tables, now); err != nil {
		return nil, protocol.Output{}, err
	}
	jobs, err := r.fed.begin(now, r.launches, tables)
	if err != nil {
		return nil, protocol.Output{}, err
	}
	out = r.markOverbooked(out).Join(runs).Join(jobs).Join(r.review(now)).Join(r.poll(now)).Join(r.appear(now))
	if !cfg.Offline {
		out = out.Join(r.receipts.Begin(now))
	}
	return r, out, nil
}

// readTables reads the agent's tables, except those of its promises and launches.
func (r *Role) readTables(tables protocol.Tables) error {
	if err := tables.Each(TablePresence, r.readCounter); err != nil {
		return err
	}
	if err := tables.Each(TableForecast, r.learner.read); err != nil {
		return err
	}
	if err := tables.Each(TablePromises, r.record.read); err != nil {
		return err
	}
	return tables.Each(TableDrained, r.readDrained)
}

// Receipts keeps the proofs of the agent's receipts.
func (r *Role) Receipts() *receipts.Keeper { return &r.receipts }

// ID is the agent's own.
func (r *Role) ID() protocol.AgentID { return r.self }

// call answers a call for proposals, and keeps the reasons for Offers.
func (r *Role) call(now time.Time, m protocol.Message, call message.CallForProposals) protocol.Output {
	if p, ok := r.paused(now); ok {
		body := message.Refusal{Round: call.Round, Reasons: []protocol.Reason{{Code: p.code, Unit: protocol.AllUnits, Note: p.why}}}
		return protocol.Output{Send: []protocol.Message{m.Reply(r.self, protocol.Refuse, body)}}
	}
	a, ok := r.sellers.Call(now, m, call, r.market.current())
	if !ok {
		return protocol.Output{} // replayed or overtaken: its round is over
	}
	body := r.learner.addOdds(now, a.Body, a.Lines)
	for _, line := range a.Lines {
		r.quotes.add(line)
	}
	return protocol.Output{Send: []protocol.Message{m.Reply(r.self, a.Performative, body)}}
}

// seller is the configuration of auctions, within the batch system's limit for jobs.
func (r *Role) seller() auction.SellerConfig {
	c := r.cfg.seller()
	c.Longest = r.market.longest
	return c
}

// accept asks for a vote on an offer. While sales pause, the commit side still answers
// for slots that are held already.
func (r *Role) accept(now time.Time, m protocol.Message, a message.Acceptance) protocol.Output {
	var offered *reserve.Offered
	_, closed := r.paused(now)
	if o, document, ok := r.sellers.Offer(now, m.Sender, m.Conversation, a.Offer.ID); ok && !closed {
		offered = &reserve.Offered{Offer: o, Document: document, Tariffs: r.sellers.Tariffs(m.Sender, m.Conversation, o)}
	}
	out := r.promises.Accept(now, m, a, offered)
	out.Save = append(out.Save, r.recordOverbooked()...)
	return r.markOverbooked(out)
}

// Wake does what is due: it ends holds, queries banks and the batch system, and sends
// the next presence.
func (r *Role) Wake(now time.Time) protocol.Output {
	out := r.markOverbooked(r.promises.Wake(now)).Join(r.launches.Wake(now)).Join(r.fed.wake(now)).Join(r.fed.follow(now))
	if !now.Before(r.pollAt) {
		r.market.forget(now)
		out = out.Join(r.poll(now))
	}
	if !now.Before(r.beatAt) && !r.beatAt.IsZero() {
		out = out.Join(r.beat(now))
	}
	out.WakeAt = protocol.Earlier(protocol.Earlier(out.WakeAt, r.pollAt), r.beatAt)
	return r.receipts.Wake(now, out)
}

// poll asks the batch system for its state.
func (r *Role) poll(now time.Time) protocol.Output {
	r.pollAt = now.Add(PollPeriod)
	return protocol.Output{WakeAt: r.pollAt, Send: []protocol.Message{{
		Performative: protocol.QueryRef, Sender: r.self, Receivers: []protocol.AgentID{protocol.LocalQueue},
		Protocol: protocol.ProtocolQueue, Body: message.QueueQuery{},
	}}}
}

// Unsure reports whether a reservation is kept because banks have not yet reported
// whether it was sold.
func (r *Role) Unsure(reservation string) bool { return r.promises.Unsure(reservation) }

// Reservations returns all units in the journal, in order of start.
func (r *Role) Reservations() []message.ReservationLine { return r.promises.Reservations() }

// Offers returns the lines of the last offers and refusals, oldest first, at most MaxQuotes.
func (r *Role) Offers() []message.QuoteLine { return r.quotes.all() }

// Launches returns the programs in sold slots.
func (r *Role) Launches() *launch.Site { return r.launches }

// Check explains what the agent would offer for a document, round by round, to
// a buyer who deals on its terms, if another seller always matched its price. rounds
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

// Sizes reports how much the agent keeps in memory, with the bounds.
func (r *Role) Sizes() []protocol.Size {
	list := append(r.sellers.Sizes(), r.promises.Sizes()...)
	list = append(append(list, r.receipts.Sizes()...), r.launches.Sizes()...)
	return append(list,
		protocol.Size{Of: "lines of offers", N: len(r.quotes.items), Most: MaxQuotes},
		protocol.Size{Of: "threads not understood", N: len(r.strange.items), Most: maxStrange},
		protocol.Size{Of: "slots in the calendar", N: r.market.calendar.Len(), Most: calendar.MaxSlots},
		protocol.Size{Of: "promises recorded", N: len(r.record.promises), Most: MaxEnded + calendar.MaxSlots},
	)
}

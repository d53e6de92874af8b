package reserve

import (
	"encoding/json"
	"fmt"
	"time"

	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/clearing"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// CoordinatorState is where a purchase stands. The numbers are stored.
type CoordinatorState int

// The states of a Coordinator.
const (
	Voting     CoordinatorState = 1 // sellers are asked to hold
	Confirming CoordinatorState = 2 // the signed bundle is out, copies are missing
	Deciding   CoordinatorState = 3 // every seller countersigned; the bank decides
	Settled    CoordinatorState = 4
	Void       CoordinatorState = 5
	Failed     CoordinatorState = 6 // no set of votes; nothing was signed
)

func (s CoordinatorState) String() string {
	return [...]string{"none", "voting", "confirming", "deciding", "settled", "void", "failed"}[s]
}

// TableBundles has one record per signed bundle of this user, by conversation.
const TableBundles = "bundles"

// CoordinatorConfig is one purchase after its auction.
type CoordinatorConfig struct {
	Self         protocol.AgentID
	Conversation string
	Terms        protocol.Terms // the bank and currency it is paid with
	Mode         protocol.Mode
	RFQ          string // hex SHA-256 of the document as sent
	// Tariff is what a unit of a metered bundle costs at the price of an item.
	Tariff func(it protocol.Item) protocol.Tariff
	Hold   time.Duration
	Settle time.Duration
	// Resolve finds the best set with the fixed offers in it and the excluded
	// ones out of it.
	Resolve func(now time.Time, fixed []clearing.Bid, excluded map[auction.Key]bool) (clearing.Solution, bool)
	// Sign signs a bundle with the user's key, deterministically.
	Sign func(b protocol.Bundle, now time.Time) (contract.Verified, error)
}

// Coordinator is the user's side of vote, commit and settlement of one bundle.
type Coordinator struct {
	cfg      CoordinatorConfig
	state    CoordinatorState
	ballots  []*ballot // in order of first unit
	excluded map[auction.Key]bool
	refusals []protocol.Reason

	bundle  contract.Verified
	sellers []protocol.AgentID
	sales   map[protocol.AgentID]contract.Sale
	receipt *contract.VerifiedReceipt
	copied  bool // every copy is durable
	voiding bool // the bank is asked to void, until it has decided
	retryAt time.Time
	retries int
	waits   string // why the bank has not decided yet

	votedAt, settledAt time.Time
	copiesBy           time.Time // until when a settled purchase waits for copies
}

// ballot is one offer that a seller was asked to hold.
type ballot struct {
	bid      clearing.Bid
	vote     *message.Vote
	deadline time.Time
}

// NewCoordinator asks for the votes of the chosen offers.
func NewCoordinator(now time.Time, cfg CoordinatorConfig, chosen []clearing.Bid) (*Coordinator, protocol.Output) {
	c := &Coordinator{
		cfg: cfg, state: Voting, excluded: map[auction.Key]bool{},
		sales: map[protocol.AgentID]contract.Sale{},
	}
	out := c.elect(now, chosen)
	return c, out.Join(c.alarm())
}

// State is where the purchase stands.
func (c *Coordinator) State() CoordinatorState { return c.state }

// Over reports whether it is decided, one way or the other.
func (c *Coordinator) Over() bool { return c.state >= Settled }

// Bundle is the signed bundle; it is zero before Confirming.
func (c *Coordinator) Bundle() contract.Verified { return c.bundle }

// Receipt is the bank's decision, once there is one.
func (c *Coordinator) Receipt() *contract.VerifiedReceipt { return c.receipt }

// Sales are the countersigned copies by seller, in order of first unit.
func (c *Coordinator) Sales() []contract.Sale {
	var list []contract.Sale
	for _, id := range c.sellers {
		if s, ok := c.sales[id]; ok {
			list = append(list, s)
		}
	}
	return list
}

// Refusals are the reasons of refused votes and confirmations.
func (c *Coordinator) Refusals() []protocol.Reason { return c.refusals }

// Votes are how many sellers' offers agreed, of how many asked for.
func (c *Coordinator) Votes() (agreed, asked int) {
	for _, b := range c.ballots {
		if b.vote != nil {
			agreed++
		}
	}
	return agreed, len(c.ballots)
}

// Chosen are the offers that are asked for or agreed now.
func (c *Coordinator) Chosen() []clearing.Bid {
	list := make([]clearing.Bid, len(c.ballots))
	for i, b := range c.ballots {
		list[i] = b.bid
	}
	return list
}

// Voted and Decided are when all votes were there and when the decision was.
func (c *Coordinator) Voted() time.Time   { return c.votedAt }
func (c *Coordinator) Decided() time.Time { return c.settledAt }

// Until is when the running step ends at the latest: the last vote is due, or the
// bank's deadline has come. Then the answer may still be on its way.
func (c *Coordinator) Until() time.Time {
	if c.state != Voting {
		return c.bundle.Bundle.SettleBy
	}
	var last time.Time
	for _, b := range c.ballots {
		if b.vote == nil && b.deadline.After(last) {
			last = b.deadline
		}
	}
	return last
}

// Receive takes a seller's or the bank's message of this conversation.
func (c *Coordinator) Receive(now time.Time, m protocol.Message) protocol.Output {
	if c.state == Confirming || c.state == Deciding {
		c.heed(m)
	}
	switch body := m.Body.(type) {
	case message.Vote:
		return c.voted(now, m, body).Join(c.alarm())
	case message.Refusal:
		return c.refused(now, m, body.Reasons).Join(c.alarm())
	case message.Undeliverable:
		return c.undelivered(now, m, body.To).Join(c.alarm())
	case message.Countersigned:
		return c.countersigned(now, m.Sender, body.Sale).Join(c.alarm())
	case message.Decision:
		return c.decided(now, body).Join(c.alarm())
	}
	return protocol.Output{}
}

// undelivered gives up the vote of a seller that cannot be reached. A signed
// bundle is not given up: the seller may hold it already, and is asked again
// until settle-by.
func (c *Coordinator) undelivered(now time.Time, m protocol.Message, to protocol.AgentID) protocol.Output {
	if c.state != Voting {
		return protocol.Output{}
	}
	m.Sender, m.InReplyTo = to, m.ReplyWith
	return c.refused(now, m, []protocol.Reason{{Code: protocol.CodeSilent, Unit: protocol.AllUnits, Note: "cannot be reached"}})
}

// Wake carries out what is due: votes that did not come, copies and decisions to
// ask for again.
func (c *Coordinator) Wake(now time.Time) protocol.Output {
	switch {
	case c.state == Voting:
		return c.expireVotes(now).Join(c.alarm())
	case (c.state == Confirming || c.state == Deciding) && !now.Before(c.retryAt):
		return c.retry(now).Join(c.alarm())
	}
	return c.alarm()
}

// alarm is when this Coordinator wants to be woken next.
func (c *Coordinator) alarm() protocol.Output {
	var at time.Time
	switch c.state {
	case Voting:
		for _, b := range c.ballots {
			if b.vote == nil {
				at = protocol.Earlier(at, b.deadline)
			}
		}
	case Confirming, Deciding:
		at = c.retryAt
	}
	return protocol.Output{WakeAt: at}
}

// message makes a message of this conversation.
func (c *Coordinator) message(to protocol.AgentID, p protocol.Performative, token string, body protocol.Body) protocol.Message {
	return protocol.Message{
		Performative: p, Sender: c.cfg.Self, Receivers: []protocol.AgentID{to},
		Protocol: token, Conversation: c.cfg.Conversation, Body: body,
	}
}

// savedBundle is what a user must remember of a bundle it has signed.
type savedBundle struct {
	State    CoordinatorState `json:"state"`
	Bundle   []byte           `json:"bundle"`    // the user's SignedData
	SignedAt time.Time        `json:"signed_at"` // when its certificate was good
	Sales    [][]byte         `json:"sales,omitempty"`
	Receipt  []byte           `json:"receipt,omitempty"`
}

// save is the durable state of a signed bundle.
func (c *Coordinator) save() protocol.Record {
	s := savedBundle{State: c.state, Bundle: c.bundle.DER, SignedAt: c.votedAt}
	for _, sale := range c.Sales() {
		s.Sales = append(s.Sales, sale.DER)
	}
	if c.receipt != nil {
		s.Receipt = c.receipt.DER
	}
	value, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("reserve: bundle of %s cannot be encoded: %v", c.cfg.Conversation, err))
	}
	return protocol.Record{Table: TableBundles, Key: c.cfg.Conversation, Value: value}
}

// Saved is a signed bundle as the journal has it.
type Saved struct {
	State    CoordinatorState
	Bundle   []byte
	SignedAt time.Time
	Sales    [][]byte // countersigned copies, as far as they came
	Receipt  []byte   // the bank's, once decided
}

// ReadSaved decodes a record of TableBundles.
func ReadSaved(value []byte) (Saved, error) {
	var s savedBundle
	if err := json.Unmarshal(value, &s); err != nil {
		return Saved{}, fmt.Errorf("record of a signed bundle: %w", err)
	}
	if s.State < Confirming || s.State > Void {
		return Saved{}, fmt.Errorf("record of a signed bundle: state %d, want %d..%d", s.State, Confirming, Void)
	}
	return Saved(s), nil
}

// Reopened is what a Saved says, verified as of SignedAt.
type Reopened struct {
	Bundle  contract.Verified
	Sales   []contract.Sale
	Receipt *contract.VerifiedReceipt // nil: none was saved
}

// Resume goes on with a bundle that was signed before a restart: it asks again
// for whatever is missing.
func Resume(now time.Time, cfg CoordinatorConfig, s Saved, r Reopened) (*Coordinator, protocol.Output) {
	c := &Coordinator{
		cfg: cfg, state: s.State, bundle: r.Bundle, votedAt: s.SignedAt,
		sellers: r.Bundle.Sellers(), sales: map[protocol.AgentID]contract.Sale{},
	}
	for _, sale := range r.Sales {
		c.sales[sale.Seller.ID] = sale
	}
	c.copied = c.complete()
	switch {
	case c.Over():
		return c, protocol.Output{}
	case r.Receipt != nil:
		c.awaitCopies(now, r.Receipt)
	}
	return c, c.retry(now).Join(c.alarm())
}

package reserve

import (
	"fmt"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// CoordinatorState is the state of a purchase. The numbers are stored.
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

// Chooser finds another set of bids when a seller refuses its vote or is slow. Each
// kind of auction has one.
type Chooser interface {
	// Choose returns the best set with all fixed bids and no others that without
	// excludes, or false if no such set exists.
	Choose(now time.Time, fixed []protocol.Bid, without func(protocol.Bid) bool) ([]protocol.Bid, bool)
}

// CoordinatorConfig describes one purchase after its auction.
type CoordinatorConfig struct {
	Self         protocol.AgentID
	Conversation string
	Terms        protocol.Terms // bank and currency of the payment
	Mode         protocol.Mode
	RFQ          string // hex SHA-256 of the document as sent
	// Tariff returns the tariff of a metered unit at the price of an item.
	Tariff  func(it protocol.Item) protocol.Tariff
	Hold    time.Duration
	Settle  time.Duration
	Chooser Chooser // nil in a Coordinator that was resumed: voting is over
	// Doubted reports whether a seller has kept silent in earlier purchases. Its
	// runners-up are asked at once. nil: none has.
	Doubted func(protocol.AgentID) bool
	// Sign signs a bundle with the user's key, deterministically.
	Sign func(b protocol.Bundle, now time.Time) (contract.Verified, error)
}

// message makes a message of this conversation.
func (cfg *CoordinatorConfig) message(to protocol.AgentID, p protocol.Performative, token string, body protocol.Body) protocol.Message {
	return protocol.Message{
		Performative: p, Sender: cfg.Self, Receivers: []protocol.AgentID{to},
		Protocol: token, Conversation: cfg.Conversation, Body: body,
	}
}

// Coordinator is the user's side of vote, commit and settlement of one bundle.
type Coordinator struct {
	cfg        *CoordinatorConfig
	state      CoordinatorState
	votes      *election
	settlement *settlement // of the signed bundle; empty while voting
	refusals   []protocol.Reason

	votedAt, settledAt time.Time
}

// NewCoordinator asks for the votes of the chosen bids.
func NewCoordinator(now time.Time, cfg CoordinatorConfig, chosen []protocol.Bid) (*Coordinator, protocol.Output) {
	c := &Coordinator{cfg: &cfg, state: Voting, votes: newElection(&cfg), settlement: &settlement{}}
	c.votes.slates = nil
	out := c.votes.put(now, chosen)
	return c, out.Join(c.proceed(now))
}

// Resume continues with a bundle that was signed before a restart, and asks for
// everything that is missing.
func Resume(now time.Time, cfg CoordinatorConfig, s Saved, r Reopened) (*Coordinator, protocol.Output) {
	c := &Coordinator{cfg: &cfg, state: s.State, votedAt: s.SignedAt, votes: newElection(&cfg), settlement: newSettlement(&cfg, r.Bundle)}
	for _, sale := range r.Sales {
		c.settlement.sales[sale.Seller.ID] = sale
	}
	c.settlement.copied = c.settlement.complete()
	switch {
	case c.Over():
		return c, protocol.Output{}
	case r.Receipt != nil:
		c.awaitCopies(now, r.Receipt)
	}
	return c, c.retry(now).Join(c.proceed(now))
}

// State returns the state of the purchase.
func (c *Coordinator) State() CoordinatorState { return c.state }

// Over reports whether the purchase is decided, one way or the other.
func (c *Coordinator) Over() bool { return c.state >= Settled }

// Bundle is the signed bundle; it is zero before Confirming.
func (c *Coordinator) Bundle() contract.Verified { return c.settlement.bundle }

// Receipt is the bank's decision, or nil before it.
func (c *Coordinator) Receipt() *contract.VerifiedReceipt { return c.settlement.receipt }

// Sales returns the countersigned copies, in order of first unit.
func (c *Coordinator) Sales() []contract.Sale { return c.settlement.copies() }

// Refusals are the reasons of refused votes and confirmations.
func (c *Coordinator) Refusals() []protocol.Reason { return c.refusals }

// Unvouched reports whether a bid was lost for want of the bank's voucher.
func (c *Coordinator) Unvouched() bool { return c.votes.vouching.refused != nil }

// ClocksDiffer reports whether the bank called the time of a voucher past, or too far ahead, though by
// the buyer's clock it was neither.
func (c *Coordinator) ClocksDiffer() bool { return c.votes.vouching.differ }

// Votes counts the bids with a vote, and those in the running vote.
func (c *Coordinator) Votes() (agreed, asked int) { return c.votes.count() }

// Chosen returns the bids of the running vote.
func (c *Coordinator) Chosen() []protocol.Bid {
	return bidsOf(c.votes.slates[0].ballots, func(*ballot) bool { return true })
}

// TakeSilences returns the sellers that did not do their part in time, each once.
func (c *Coordinator) TakeSilences() []Silence {
	list := c.votes.silences
	c.votes.silences = nil
	return list
}

// Voted and Decided return when the last vote and the decision arrived.
func (c *Coordinator) Voted() time.Time   { return c.votedAt }
func (c *Coordinator) Decided() time.Time { return c.settledAt }

// Until returns when the running step ends at the latest: the last vote is due, or
// the bank's deadline passes. Then the answer may still be on its way.
func (c *Coordinator) Until() time.Time {
	if c.state != Voting {
		return c.Bundle().Bundle.SettleBy
	}
	_, last := c.votes.deadlines()
	return last
}

// Waits returns the bank's reason for not deciding yet, or that it cannot be
// reached; "" if there is no known reason. The Coordinator keeps asking.
func (c *Coordinator) Waits() string {
	if c.Over() {
		return ""
	}
	return c.settlement.waits
}

// Sizes returns how much a Coordinator remembers of one purchase, with the bounds.
func (c *Coordinator) Sizes() []protocol.Size {
	return []protocol.Size{
		{Of: "offers voted on", N: len(c.votes.all()), Most: maxSlates * protocol.MaxUnits},
		{Of: "offers that were lost", N: len(c.votes.excluded), Most: maxElections + (maxSlates+1)*protocol.MaxUnits},
		{Of: "votes that are owed", N: len(c.votes.owed), Most: maxElections + (maxSlates+1)*protocol.MaxUnits},
		{Of: "sets voted on", N: len(c.votes.slates), Most: maxSlates},
		{Of: "reasons of refusals", N: len(c.refusals), Most: maxRefusals},
		{Of: "copies", N: len(c.settlement.sales), Most: protocol.MaxUnits},
	}
}

func (c *Coordinator) confirming() bool { return c.state == Confirming || c.state == Deciding }

// Receive takes a seller's or the bank's message of this conversation.
func (c *Coordinator) Receive(now time.Time, m protocol.Message) protocol.Output {
	if c.confirming() {
		c.settlement.heed(now, m)
	}
	var out protocol.Output
	switch body := m.Body.(type) {
	case message.Vote:
		out = c.voted(now, m, body)
	case message.Vouched:
		out = c.vouched(now, m, body.Signed)
	case message.Refusal:
		out = c.refused(now, m, body.Reasons)
	case message.Undeliverable:
		out = c.undelivered(now, m, body.To)
	case message.Countersigned:
		out = c.countersigned(now, m.Sender, body.Sale)
	case message.Decision:
		out = c.decided(now, body)
	default:
		return protocol.Output{}
	}
	return out.Join(c.proceed(now))
}

// Wake gives up votes that are late, asks runners-up of those that are slow, and repeats questions about copies and the
// decision.
func (c *Coordinator) Wake(now time.Time) protocol.Output {
	var out protocol.Output
	switch {
	case c.state == Voting:
		out = c.vouchersDue(now).Join(c.loseLate(now))
	case c.confirming() && !now.Before(c.settlement.retryAt):
		out = c.retry(now)
	}
	return out.Join(c.proceed(now))
}

// loseLate gives up votes that are late.
func (c *Coordinator) loseLate(now time.Time) (out protocol.Output) {
	for b := c.votes.late(now); c.state == Voting && b != nil; b = c.votes.late(now) {
		out = out.Join(c.lose(now, b, silent("did not vote in time")))
	}
	return out
}

func silent(why string) []protocol.Reason {
	return []protocol.Reason{{Code: protocol.CodeSilent, Unit: protocol.AllUnits, Note: why}}
}

// proceed asks runners-up if votes are slow, and asks for the next wake-up.
func (c *Coordinator) proceed(now time.Time) protocol.Output {
	switch c.state {
	case Voting:
		out := c.votes.hurry(now)
		if c.votes.elected() != nil { // every runner-up had agreed before
			return out.Join(c.becomeConfirming(now)).Join(c.proceed(now))
		}
		first, _ := c.votes.deadlines()
		return out.Join(protocol.Output{WakeAt: protocol.Earlier(first, c.votes.vouching.retryAt)})
	case Confirming, Deciding:
		return protocol.Output{WakeAt: c.settlement.retryAt}
	}
	return protocol.Output{}
}

// voted takes a seller's yes. It cancels votes that are late or for offers that
// are not in the set any more.
func (c *Coordinator) voted(now time.Time, m protocol.Message, v message.Vote) protocol.Output {
	b := c.votes.find(protocol.BidKey{Seller: m.Sender, Offer: v.Offer})
	cancel := protocol.Output{Send: []protocol.Message{c.votes.cancel(m.Sender, &v)}}
	c.votes.answered(protocol.BidKey{Seller: m.Sender, Offer: v.Offer}, false)
	if offer, _, ok := askedAbout(m.InReplyTo); b == nil && ok { // an answer, but for another offer
		b = c.votes.find(protocol.BidKey{Seller: m.Sender, Offer: offer})
	}
	switch {
	case b != nil && b.vote != nil && b.vote.Offer == v.Offer, c.settlement.names(m.Sender, v):
		return protocol.Output{} // a repeated vote
	case c.state != Voting || b == nil || b.vote != nil:
		return cancel
	}
	if err := checkVote(now, b.bid.Offer, v); err != nil {
		return cancel.Join(c.lose(now, b, []protocol.Reason{{Code: protocol.CodeMismatch, Unit: protocol.AllUnits, Note: err.Error()}}))
	}
	b.vote = &v
	return protocol.Output{}
}

// undelivered gives up the vote of a seller that cannot be reached. It does not give up a signed
// bundle: the seller may already have it, and the Coordinator asks until settle-by.
func (c *Coordinator) undelivered(now time.Time, m protocol.Message, to protocol.AgentID) protocol.Output {
	if c.state != Voting {
		return protocol.Output{}
	}
	m.Sender, m.InReplyTo = to, m.ReplyWith
	return c.refused(now, m, silent("cannot be reached"))
}

// refused takes a seller's no to its vote, or to the signed bundle.
func (c *Coordinator) refused(now time.Time, m protocol.Message, reasons []protocol.Reason) protocol.Output {
	if c.state == Confirming {
		return c.refusedConfirm(m, reasons)
	}
	if m.Sender == c.cfg.Terms.Bank && m.InReplyTo == voucherTag && c.state == Voting {
		return c.unvouched(now, reasons)
	}
	offer, again, ok := askedAbout(m.InReplyTo)
	if !ok || c.state != Voting {
		return protocol.Output{} // an answer to a question that no longer matters
	}
	key := protocol.BidKey{Seller: m.Sender, Offer: offer}
	wantsVoucher := slices.ContainsFunc(reasons, func(r protocol.Reason) bool { return r.Code == protocol.CodeVoucher })
	c.votes.answered(key, !wantsVoucher || again)
	if b := c.votes.find(key); b != nil && b.vote == nil {
		if wantsVoucher && b.vouched && !again {
			return protocol.Output{} // repeated: it has been asked with one since
		}
		if wantsVoucher {
			if out, ok := c.votes.vouch(now, b); ok {
				return out
			}
			if why := c.votes.vouching.refused; why != nil {
				reasons = why
			}
		}
		return c.lose(now, b, reasons)
	}
	return protocol.Output{}
}

// refusedConfirm asks the bank to void, because a named seller will never countersign. A seller
// that cannot read the bundle, for example because of its version, answers not-understood.
func (c *Coordinator) refusedConfirm(m protocol.Message, reasons []protocol.Reason) protocol.Output {
	s := c.settlement
	if m.Performative == protocol.RejectProposal || m.InReplyTo != confirmTag || !slices.Contains(s.sellers, m.Sender) || s.receipt != nil {
		return protocol.Output{} // not from a named seller, or the bank has decided
	}
	c.note(reasons)
	return s.giveUp()
}

// maxRefusals bounds the reasons that a purchase remembers; it drops later ones.
const maxRefusals = 2 * protocol.MaxReasons

func (c *Coordinator) note(reasons []protocol.Reason) {
	c.refusals = append(c.refusals, reasons[:min(len(reasons), maxRefusals-len(c.refusals))]...)
}

// lose goes on without a seller.
func (c *Coordinator) lose(now time.Time, lost *ballot, reasons []protocol.Reason) protocol.Output {
	c.note(reasons)
	if len(reasons) > 0 && reasons[0].Code == protocol.CodeSilent {
		c.votes.silences = append(c.votes.silences, Silence{Seller: lost.bid.Seller, Until: now})
	}
	out, ok := c.votes.lose(now, lost)
	if !ok {
		return c.becomeFailed(now)
	}
	return out
}

// becomeConfirming signs the bundle, saves it, and sends it to every seller, who may prepare
// while it is saved.
func (c *Coordinator) becomeConfirming(now time.Time) protocol.Output {
	if c.state != Voting {
		panic(fmt.Sprintf("reserve: %s cannot confirm", c.state))
	}
	var signed contract.Verified
	freed := c.votes.retain(c.votes.elected())
	bundle, err := c.votes.bundle(now)
	if err == nil {
		signed, err = c.cfg.Sign(bundle, now)
	}
	if err != nil {
		c.note([]protocol.Reason{{Code: protocol.CodeExpired, Unit: protocol.AllUnits, Note: err.Error()}})
		return freed.Join(c.becomeFailed(now))
	}
	c.state = Confirming
	c.votedAt = now
	c.settlement = newSettlement(c.cfg, signed)
	c.settlement.scheduleRetry(now)
	out := c.save()
	out.Hint, out.Send = c.settlement.prepare(), c.settlement.confirmMissing()
	return out.Join(freed)
}

func (c *Coordinator) save() protocol.Output {
	return protocol.Output{Save: []protocol.Record{c.settlement.record(c.state, c.votedAt)}}
}

// countersigned takes a seller's copy. With the last one the bank decides, or has already. The
// Coordinator does not save copies at once: the seller can repeat them, the decision will soon save
// them, and a flush of the disk now would delay the bank's.
func (c *Coordinator) countersigned(now time.Time, from protocol.AgentID, sale contract.Sale) protocol.Output {
	s := c.settlement
	if c.state != Confirming || sale.Verified.ID != s.bundle.ID || sale.Seller.ID != from {
		return protocol.Output{} // late, repeated, or of another contract
	}
	s.sales[from] = sale
	switch {
	case !s.complete():
		return protocol.Output{}
	case s.receipt != nil:
		return c.becomeDecided(now, s.receipt)
	}
	c.state = Deciding
	s.scheduleRetry(now)
	return protocol.Output{}
}

// decided takes the bank's decision from anybody. If the bank does not know the
// contract after settle-by, the Coordinator asks it to void.
func (c *Coordinator) decided(now time.Time, d message.Decision) protocol.Output {
	s := c.settlement
	switch {
	case !c.confirming() || d.Contract != s.bundle.ID || s.receipt != nil:
		return protocol.Output{}
	case d.Receipt == nil && d.Outcome == protocol.OutcomeUnknown && !now.Before(s.bundle.Bundle.SettleBy):
		return s.askVoid()
	case d.Receipt == nil || !s.ours(d.Receipt):
		return protocol.Output{}
	case d.Receipt.Outcome == protocol.OutcomeSettled && !s.complete():
		c.awaitCopies(now, d.Receipt)
		return c.save()
	}
	return c.becomeDecided(now, d.Receipt)
}

// awaitCopies keeps a settled purchase open for copies that the receipt has overtaken.
func (c *Coordinator) awaitCopies(now time.Time, r *contract.VerifiedReceipt) {
	c.settledAt = now
	c.settlement.awaitCopies(now, r)
}

func (c *Coordinator) becomeDecided(now time.Time, r *contract.VerifiedReceipt) protocol.Output {
	switch r.Receipt.Outcome {
	case protocol.OutcomeSettled:
		c.state = Settled
	case protocol.OutcomeVoid:
		c.state = Void
		c.unsigned(now, r.Receipt.Reason)
	default:
		return protocol.Output{} // no decision
	}
	if c.settlement.receipt == nil {
		c.settlement.receipt, c.settledAt = r, now
	}
	return c.save()
}

// unsigned counts sellers as silent that voted and did not countersign. After a restart,
// or when the bundle was given up, their copies may just not have arrived.
func (c *Coordinator) unsigned(now time.Time, why protocol.Code) {
	if why != protocol.CodeSettleBy || c.settlement.gaveUp || c.cfg.Chooser == nil {
		return
	}
	for _, id := range c.settlement.sellers {
		if _, signed := c.settlement.sales[id]; !signed {
			c.votes.silences = append(c.votes.silences, Silence{id, now, c.settlement.heard})
		}
	}
}

// retry repeats the open question: for void, for copies, or for the decision. A seller that does
// not give its copy in time has sold nevertheless, as the receipt proves.
func (c *Coordinator) retry(now time.Time) protocol.Output {
	s := c.settlement
	s.scheduleRetry(now)
	switch {
	case s.receipt != nil && !now.Before(s.copiesBy):
		return c.becomeDecided(now, s.receipt)
	case s.receipt != nil:
		s.retryAt = protocol.Earlier(s.retryAt, s.copiesBy)
		return protocol.Output{Send: s.confirmMissing()}
	case s.voiding:
		return s.askVoid()
	}
	var out protocol.Output
	if c.state == Deciding && !s.copied { // the decision takes long: make the copies durable
		s.copied = true
		out = c.save()
	}
	out.Send = s.ask(now, c.state == Deciding)
	return out
}

// Abandon gives up a purchase that is still voting, and cancels its votes.
func (c *Coordinator) Abandon(now time.Time) protocol.Output {
	if c.state != Voting {
		return protocol.Output{}
	}
	return c.becomeFailed(now)
}

// Annul asks the bank to void an undecided bundle, at the owner's request.
func (c *Coordinator) Annul() protocol.Output {
	if !c.confirming() || c.settlement.receipt != nil {
		return protocol.Output{}
	}
	return c.settlement.giveUp()
}

func (c *Coordinator) becomeFailed(now time.Time) protocol.Output {
	if c.state != Voting {
		panic(fmt.Sprintf("reserve: %s cannot fail", c.state))
	}
	c.state = Failed
	c.settledAt = now
	return c.votes.retain(&slate{})
}

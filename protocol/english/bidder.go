package english

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// TableTaken has a site's part of the jobs that it has taken and that are not sold yet,
// by home and job.
const TableTaken = "federation-taken"

// queryFirst and queryMost bound the pauses between questions of a site that has taken a
// job and was not informed yet whether it is sold.
const (
	queryFirst = time.Second
	queryMost  = 30 * time.Second
)

// BidderConfig is a site's part of its federation's rules.
type BidderConfig struct {
	Self  protocol.AgentID
	Rules string // SHA-256 of the rules file
	Scale Scale
}

// Site is what a bidder needs to know about its own site.
type Site interface {
	// Capacity is what the site has for jobs at the moment.
	Capacity() Capacity
	// Transfer is how long it takes to bring input here.
	Transfer(where protocol.AgentID, bytes int64) time.Duration
}

// BidderState is the state of a bidder. The values are stored.
type BidderState string

// The states.
const (
	BidderBidding BidderState = "bidding" // not durable
	BidderTaken   BidderState = "taken"   // durable before the home hears of it
	BidderSold    BidderState = "sold"    // the job is this site's: the caller saves and runs it
)

// Bidder is a site's side of the auctions of one job.
type Bidder struct {
	cfg  *BidderConfig
	site Site
	home protocol.AgentID
	id   string
	part part

	open  message.AuctionOpen // the last one heard
	last  message.JobBid      // as sent
	bid   bool                // it stands
	seq   int64
	shut  bool // the home has closed the auction
	askAt time.Time
	asks  int
}

// part is the record of a job that a site has taken; the JSON names are stored.
type part struct {
	Owner protocol.AgentID `json:"owner"`
	Terms message.JobTerms `json:"terms"`
	State BidderState      `json:"state"`
	Award message.JobAward `json:"award"`
}

// NewBidder makes a bidder for a job that its home auctions.
func NewBidder(cfg *BidderConfig, site Site, home protocol.AgentID, id string) *Bidder {
	return &Bidder{cfg: cfg, site: site, home: home, id: id, part: part{State: BidderBidding}}
}

// ReadBidder restores a job that the site has taken. Ask continues it.
func ReadBidder(cfg *BidderConfig, site Site, home protocol.AgentID, id string, value []byte) (*Bidder, error) {
	b := NewBidder(cfg, site, home, id)
	if err := json.Unmarshal(value, &b.part); err != nil {
		return nil, fmt.Errorf("journal: table %s: %s: %w", TableTaken, id, err)
	}
	if b.part.State != BidderTaken {
		return nil, fmt.Errorf("journal: table %s: %s: state %q", TableTaken, id, b.part.State)
	}
	return b, nil
}

// State is the bidder's.
func (b *Bidder) State() BidderState { return b.part.State }

// patientAsks is how often a site asks for the decision about a job that it has taken before it
// bids for others again: after 15 s. A home that awards and never decides holds up nobody.
const patientAsks = 4

// Awaits reports whether the site has taken the job and soon knows whether it is sold.
func (b *Bidder) Awaits() bool { return b.part.State == BidderTaken && b.asks <= patientAsks }

// Award is the award that the site has taken or bought.
func (b *Bidder) Award() int { return b.part.Award.Award }

// Owner is the job's owner, Terms are its terms.
func (b *Bidder) Owner() protocol.AgentID { return cmp.Or(b.part.Owner, b.open.Owner) }

// Terms are the terms of the job.
func (b *Bidder) Terms() message.JobTerms { return b.part.Terms }

// forgetAfter is how long a silent auction is remembered. As long as
// it goes on, its home shows it every showMost.
const forgetAfter = 2 * showMost

// Idle reports whether the bidder can be forgotten: the auction is over.
func (b *Bidder) Idle(now time.Time) bool {
	return b.part.State == BidderBidding && (b.shut || now.After(b.open.Ends.Add(forgetAfter)))
}

// Receive takes a message from the job's home.
func (b *Bidder) Receive(now time.Time, m protocol.Message) protocol.Output {
	if m.Sender != b.home {
		return protocol.Output{}
	}
	switch x := m.Body.(type) {
	case message.AuctionOpen:
		return b.hear(now, x)
	case message.Standing:
		b.shut = b.shut || x.Closed && x.Number >= b.open.Number
	case message.JobAward:
		return b.award(now, m.Performative, x)
	}
	return protocol.Output{}
}

// hear takes an invitation. One of an earlier auction is overtaken.
func (b *Bidder) hear(now time.Time, x message.AuctionOpen) protocol.Output {
	if x.Rules != b.cfg.Rules || x.Number < b.open.Number || b.part.State != BidderBidding || x.Terms.Validate() != nil {
		return protocol.Output{}
	}
	b.open, b.shut = x, false
	b.bid = false // also if it is shown again: the home has no bid then
	return b.Revise(now, b.site.Capacity())
}

// Revise bids, bids anew or withdraws if the site's capacity, now c, has changed what it can bid.
func (b *Bidder) Revise(now time.Time, c Capacity) protocol.Output {
	if b.part.State != BidderBidding || b.open.Number == 0 || b.shut {
		return protocol.Output{}
	}
	next, ok := b.quote(c)
	switch {
	case ok && b.bid && next.Free == b.last.Free && next.Transfer == b.last.Transfer && slices.Equal(next.Victims, b.last.Victims), !ok && !b.bid:
		return protocol.Output{}
	}
	b.seq = max(b.seq+1, now.UnixMicro()) // above those of before a restart
	next.Number, next.Seq = b.open.Number, b.seq
	b.last, b.bid = next, ok
	if !ok {
		return b.send(protocol.Refuse, message.JobBid{Number: next.Number, Seq: next.Seq})
	}
	return b.send(protocol.Propose, next)
}

// quote is the bid that the site can make with c, if it may stand.
func (b *Bidder) quote(c Capacity) (message.JobBid, bool) {
	t := b.open.Terms
	q, ok := Quote(t, c, b.site.Transfer(t.Where, t.Bytes))
	scale := b.cfg.Scale
	scale.Minimum = max(scale.Minimum, b.open.Minimum)
	return q, ok && check(scale, t, q)
}

// award takes a word of the home about an award.
func (b *Bidder) award(now time.Time, p protocol.Performative, x message.JobAward) protocol.Output {
	current := x.Award == b.part.Award.Award
	switch {
	case p == protocol.AcceptProposal && b.part.State == BidderBidding:
		return b.take(now, x)
	case p == protocol.AcceptProposal && current && b.part.State == BidderTaken:
		return b.send(protocol.Agree, b.part.Award)
	case p == protocol.AcceptProposal && !current && b.part.State == BidderTaken:
		x.Why = "another award of the job was taken"
		return b.send(protocol.Refuse, x)
	case p == protocol.Confirm && current && b.part.State == BidderTaken:
		b.part.State = BidderSold
		return b.forget()
	case p == protocol.Cancel && current && b.part.State == BidderTaken:
		b.part.State, b.bid = BidderBidding, false
		return b.forget().Join(b.Revise(now, b.site.Capacity()))
	}
	return protocol.Output{}
}

// take agrees to an award of the bid that stands, if the site could still make it.
// Otherwise the next best site gets the job.
func (b *Bidder) take(now time.Time, x message.JobAward) protocol.Output {
	q, ok := b.quote(b.site.Capacity())
	if !b.bid || x.Seq != b.last.Seq || x.Number != b.last.Number || !ok || b.cfg.Scale.Value(b.open.Terms.Level, q) < b.cfg.Scale.Value(b.open.Terms.Level, b.last) {
		x.Why = "the bid does not stand any more"
		return b.send(protocol.Refuse, x).Join(b.Revise(now, b.site.Capacity()))
	}
	b.part = part{Owner: b.open.Owner, Terms: b.open.Terms, State: BidderTaken, Award: x}
	b.bid, b.asks, b.askAt = false, 0, now.Add(queryFirst)
	return b.save().Join(b.send(protocol.Agree, x)).Join(wake(b.askAt))
}

// Ask asks the home whether a taken job is sold, again with growing pauses until it
// knows. Only then does the site begin it.
func (b *Bidder) Ask(now time.Time) protocol.Output {
	switch {
	case b.part.State != BidderTaken:
		return protocol.Output{}
	case now.Before(b.askAt):
		return wake(b.askAt)
	}
	b.askAt = now.Add(min(queryMost, queryFirst<<min(b.asks, 10)))
	b.asks++
	return b.send(protocol.QueryRef, b.part.Award).Join(wake(b.askAt))
}

func (b *Bidder) send(p protocol.Performative, body protocol.Body) protocol.Output {
	return mail(b.cfg.Self, b.id, p, body, b.home)
}

// Key is the key of a job's record at a site.
func Key(home protocol.AgentID, job string) string { return string(home) + "|" + job }

func (b *Bidder) save() protocol.Output {
	value, err := json.Marshal(b.part)
	if err != nil {
		panic(fmt.Sprintf("english: job %s cannot be encoded: %v", b.id, err)) // it has only our own types
	}
	return protocol.Output{Save: []protocol.Record{{Table: TableTaken, Key: Key(b.home, b.id), Value: value}}}
}

func (b *Bidder) forget() protocol.Output {
	return protocol.Output{Save: []protocol.Record{{Table: TableTaken, Key: Key(b.home, b.id)}}}
}

// String is for people and transcripts.
func (b *Bidder) String() string {
	if b.part.State != BidderBidding {
		return fmt.Sprintf("%s award=%d", b.part.State, b.part.Award.Award)
	}
	if !b.bid {
		return "no bid"
	}
	return fmt.Sprintf("bids %d+%d", b.last.Free, Modules(b.last)-b.last.Free)
}

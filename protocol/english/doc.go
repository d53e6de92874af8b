// Package english auctions jobs among the sites of a federation (003): the goods are
// jobs, and sites pay with free modules and with modules of less urgent jobs.
//
// An Auctioneer is the home's side of one job, a Bidder another site's (or the home's
// own) side of it. Callers pass both of them the time and the messages; they never read a clock, a
// socket or a random source. Nothing is reserved while sites bid, so a winner may refuse.
//
// The Auctioneer's record of an award is the decision:
//
//	queued --room--> auction --end, a bid stands--> awarded(k) --agree--> sold(k) --> over
//	auction --end, no bid--> auction
//	awarded(k) --refuse, silence--> awarded(k+1) the next best | auction
//	sold(k) --returned, never begun--> auction
//
// A Bidder begins a job only when it is sold:
//
//	bidding --award(k)--> taken(k) --confirm(k)--> sold(k)
//	taken(k) --cancel(k)--> bidding
//
// Awards are durable on both sides, bids on neither. The home saves award k as withdrawn
// before it makes award k+1, so that at most one site ever learns that it has the job.
package english

import (
	"cmp"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Scale is what a bid is worth; all sites of a federation use the same. Numbers are in thousandths.
type Scale struct {
	Alpha   int64 // value of a module
	Gamma   int64 // of a second of transfer, subtracted
	Minimum int64 // least value of a bid
}

// MaxFactor bounds Alpha, Gamma and Minimum, so that no value overflows.
const MaxFactor = 1_000_000

// maxTransfer bounds the time that counts: beyond it, no number of modules outweighs it.
const maxTransfer = 1000 * time.Hour

// Value is the worth of a bid for a job in thousandths (003, specs §5):
//
//	α·free + α·Σ modules·(1 − level/job's level) − γ·transfer
//
// Each victim's part is rounded down.
func (s Scale) Value(level int, b message.JobBid) int64 {
	v := s.Alpha * int64(b.Free)
	for _, x := range b.Victims {
		v += s.Alpha * int64(x.Modules) * int64(level-x.Level) / int64(level)
	}
	return v - s.Gamma*min(b.Transfer, maxTransfer).Milliseconds()/1000
}

// Modules is how many modules a bid has in total.
func Modules(b message.JobBid) int {
	n := b.Free
	for _, x := range b.Victims {
		n += x.Modules
	}
	return n
}

// Capacity is what a site has for jobs at the moment.
type Capacity struct {
	Free    int                // modules on which nothing runs
	Running []message.Victims  // jobs that may be suspended, in any order
	Queued  int                // the highest level of a job that waits here; 0: none waits
	Coming  []message.JobTerms // jobs that will need modules soon, the most urgent one first
}

// Quote is the bid that a site can make for a job. It reports false if the site has
// too few modules, or a job of the same level or above waits here. Victims are of the
// lowest levels. Jobs of the same level or above that are coming have the modules that they need.
func Quote(t message.JobTerms, c Capacity, transfer time.Duration) (message.JobBid, bool) {
	coming := c.Coming
	for c.Coming = nil; len(coming) > 0 && coming[0].Level >= t.Level; coming = coming[1:] {
		c = c.promise(coming[0])
	}
	if c.Queued >= t.Level || t.Level > message.MaxLevels {
		return message.JobBid{}, false
	}
	b := message.JobBid{Free: min(max(c.Free, 0), t.Most), Transfer: transfer}
	var lower [message.MaxLevels + 1]int
	for _, r := range c.Running {
		if r.Level >= 1 && r.Level < t.Level {
			lower[r.Level] += r.Modules
		}
	}
	for level := 1; level < t.Level; level++ {
		if n := min(lower[level], t.Most-Modules(b)); n > 0 {
			b.Victims = append(b.Victims, message.Victims{Level: level, Modules: n})
		}
	}
	return b, Modules(b) >= t.Least
}

// promise is what a site has beside a job that is coming: that one gets what the site would bid for
// it now. If this does not suffice, the job waits.
func (c Capacity) promise(t message.JobTerms) Capacity {
	q, ok := Quote(t, c, 0)
	if !ok {
		c.Queued = max(c.Queued, t.Level)
		return c
	}
	c.Free -= q.Free
	c.Running = slices.Clone(c.Running)
	for _, v := range q.Victims {
		for i := range c.Running {
			if r := &c.Running[i]; r.Level == v.Level {
				n := min(r.Modules, v.Modules)
				r.Modules, v.Modules = r.Modules-n, v.Modules-n
			}
		}
	}
	return c
}

// check reports whether a bid may stand in an auction.
func check(s Scale, t message.JobTerms, b message.JobBid) bool {
	if b.Free < 0 || b.Free > t.Most || b.Transfer < 0 {
		return false
	}
	last := 0
	for _, v := range b.Victims {
		if v.Level <= last || v.Level >= t.Level || v.Modules < 1 || v.Modules > t.Most {
			return false
		}
		last = v.Level
	}
	n := Modules(b)
	return n >= t.Least && n <= t.Most && s.Value(t.Level, b) >= s.Minimum
}

// better reports whether x beats y: by value; if equal the earlier bid, then the smaller
// agent ID, so that every observer of the same bids names the same winner.
func better(x, y message.AuctionBid) bool {
	return cmp.Or(cmp.Compare(y.Bid, x.Bid), x.At.Compare(y.At), cmp.Compare(x.Site, y.Site)) < 0
}

// mail is a message of the auction of a job.
func mail(self protocol.AgentID, job string, p protocol.Performative, body protocol.Body, to ...protocol.AgentID) protocol.Output {
	if len(to) == 0 {
		return protocol.Output{}
	}
	return protocol.Output{Send: []protocol.Message{{
		Performative: p, Sender: self, Receivers: to, Protocol: protocol.ProtocolEnglish, Conversation: job, Body: body,
	}}}
}

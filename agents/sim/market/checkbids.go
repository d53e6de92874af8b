package market

import (
	"time"

	"ramp/agents/sim"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Which bids of honest sites are counted.
//
// A bid is an offer of one unit in a propose that reached an honest user, by that
// user's clock, while its auction went on, and that the rules let count: in the
// first round a price not above what was asked; later one below everything that
// had arrived for the unit before, from whomever. It is counted if the user ended
// its round with a price for the unit that is not above it, and if the auction's
// end found the site among the bidders: it was accepted or rejected, as only
// those are whose offers stand. Auctions that their owner or a crash cut short
// end without saying who bid, and are left out; so is the best-offer round, in
// which everything stands.

// auctionKey is one auction of an honest user.
type auctionKey struct {
	user         protocol.AgentID
	conversation string
}

// bidding is what came and went in one auction.
type bidding struct {
	begun    time.Duration
	ceilings []protocol.Credits // that were asked for
	best     int                // number of the best-offer round; 0: none
	heard    []heardBid
	told     map[protocol.AgentID]bool // accepted or rejected
}

// heardBid is an offer of one unit, when it arrived.
type heardBid struct {
	seller protocol.AgentID
	at     time.Time // by the user's clock
	unit   int
	price  protocol.Credits
	usable bool // by its own times
}

// ended is an auction that is over, to be judged when its rejections have left.
type ended struct {
	host     *sim.Host
	auction  *bidding
	purchase message.Purchase
}

// bidsBook is all auctions that go on, and how many honest bids were counted.
type bidsBook struct {
	going      map[auctionKey]*bidding
	ended      []ended
	due, heard int
	missed     string // the first that was not counted
}

func newBidsBook() bidsBook { return bidsBook{going: map[auctionKey]*bidding{}} }

// Said takes what a host says.
func (c *Checks) Said(from *sim.Host, m protocol.Message) {
	if c.m == nil || !c.isUser(from.ID()) {
		return
	}
	key := auctionKey{from.ID(), m.Conversation}
	b := c.bids.going[key]
	switch body := m.Body.(type) {
	case message.CallForProposals:
		if b == nil {
			b = &bidding{begun: c.m.World.Elapsed(), told: map[protocol.AgentID]bool{}}
			c.bids.going[key] = b
		}
		b.called(body)
	case message.Progress:
		if b != nil && body.Done {
			c.bids.ended = append(c.bids.ended, ended{from, b, body.Purchase})
			delete(c.bids.going, key)
		}
	default:
		c.toldBidders(key, b, m)
	}
}

func (b *bidding) called(call message.CallForProposals) {
	if call.Best {
		b.best = call.Round
	}
	if b.ceilings != nil {
		return
	}
	b.ceilings = []protocol.Credits{}
	if call.Round == 1 {
		for _, l := range call.Ceilings {
			b.ceilings = append(b.ceilings, l.Price)
		}
	}
}

// toldBidders keeps who is told that it is chosen or not. Rejections follow the
// word to the owner that the purchase is over.
func (c *Checks) toldBidders(key auctionKey, b *bidding, m protocol.Message) {
	if m.Performative != protocol.RejectProposal && m.Performative != protocol.AcceptProposal {
		return
	}
	if n := len(c.bids.ended); b == nil && n > 0 && c.bids.ended[n-1].purchase.ID == key.conversation {
		b = c.bids.ended[n-1].auction
	}
	if b == nil {
		return
	}
	for _, id := range m.Receivers {
		b.told[id] = true
	}
}

// bidArrives takes a propose that an honest user is about to receive.
func (c *Checks) bidArrives(to, from *sim.Host, conversation string, p message.Proposal) {
	b := c.bids.going[auctionKey{to.ID(), conversation}]
	if b == nil {
		return
	}
	now := to.Now()
	for _, o := range p.Offers {
		if len(o.Items) != 1 {
			continue
		}
		it := o.Items[0]
		b.heard = append(b.heard, heardBid{from.ID(), now, it.Unit, it.Price, o.ValidUntil.After(now) && !it.Slot.Start.Before(now)})
	}
}

// judgeBids judges the auctions that are over.
func (c *Checks) judgeBids() {
	for _, e := range c.bids.ended {
		crashed := !e.host.Up() || e.host.Uptime() < c.m.World.Elapsed()-e.auction.begun
		if cut := e.purchase.AuctionMS == 0 || e.purchase.State == user.StateInterrupted; !crashed && !cut {
			c.judge(e)
		}
	}
	c.bids.ended = nil
}

// judge plays an auction again from what arrived.
func (c *Checks) judge(e ended) {
	least := map[int]protocol.Credits{}
	for unit, ceiling := range e.auction.ceilings {
		least[unit] = ceiling
	}
	ends := roundEnds(e.purchase)
	for _, h := range e.auction.heard {
		round, sure := roundOf(ends, h.at)
		standing, asked := least[h.unit]
		late := round == len(ends) || round+1 == e.auction.best
		due := h.usable && (h.price < standing || round == 0 && h.price <= e.auction.ceiling(h.unit))
		if asked && sure && !late && due && c.isSite(h.seller) {
			c.bidDue(e, h, e.purchase.Rounds[round])
		}
		if asked {
			least[h.unit] = min(standing, h.price)
		}
	}
}

func (b *bidding) ceiling(unit int) protocol.Credits {
	if unit < 0 || unit >= len(b.ceilings) {
		return 0
	}
	return b.ceilings[unit]
}

// bidDue counts a bid that must have been counted.
func (c *Checks) bidDue(e ended, h heardBid, r message.Round) {
	c.counts[BidsCounted]++
	c.bids.due++
	if best := r.Best[h.unit]; e.auction.told[h.seller] && best != nil && *best <= h.price {
		c.bids.heard++
		return
	}
	if c.bids.missed == "" {
		c.bids.missed = e.purchase.ID + ": " + h.seller.Name() + " at " + h.at.Format(time.TimeOnly)
	}
}

// roundEnds are the instants at which the rounds of an auction ended.
func roundEnds(p message.Purchase) []time.Time {
	var list []time.Time
	at := p.Created
	for _, r := range p.Rounds {
		at = at.Add(time.Duration(r.MS*1000) * time.Microsecond)
		list = append(list, at)
	}
	return list
}

// blur is how near to the end of a round nobody can tell from outside on which
// side of it a bid arrived: rounds are told in microseconds.
const blur = 200 * time.Microsecond

// roundOf is the round in which t lies, from 0; len(ends) if it is after the last.
func roundOf(ends []time.Time, t time.Time) (round int, sure bool) {
	for _, end := range ends {
		if d := end.Sub(t); d < blur && d > -blur {
			return round, false
		}
		if t.Before(end) {
			return round, true
		}
		round++
	}
	return round, true
}

// minCounted is how many honest bids in a hundred must be counted.
const minCounted = 99

func (c *Checks) finishBids() {
	c.judgeBids()
	c.check(BidsCounted, c.bids.heard*100 >= c.bids.due*minCounted, "%d of %d honest bids were counted; the first that was not: %s", c.bids.heard, c.bids.due, c.bids.missed)
}

package market

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"ramp/agents/resource/pricing"
	"ramp/agents/sim"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

// A valid bid is an offer of one unit in a propose that reached an honest user while its
// auction ran, by that user's clock. In the first round its price must not exceed the
// ceiling; later it must be below every earlier bid for the unit, from anybody.
//
// A bid was counted if the user's round ended with a price for the unit no higher than
// it, and the site was among the bidders at the end: only they are accepted or rejected.
// Auctions cut short by their owner or a crash do not name their bidders and are left
// out. So are the best-offer round, in which every offer is valid, and auctions of units
// that must begin together, in which only offers at one start count. A bid that arrives after the
// user's clock was set back is left out: rounds are measured by that clock, so its round is unknown.

// ListPrice names the invariant that no honest site asks more than its start price, however
// high the buyer's ceiling, unless it has the rule of 002.
const ListPrice = "H-list-price"

// auctionKey is one auction of an honest user.
type auctionKey struct {
	user         protocol.AgentID
	conversation string
}

// bidding is a record of the messages of one auction.
type bidding struct {
	begun    time.Duration
	clock    time.Time // the user's, then
	ceilings []protocol.Credits
	best     int // number of the best-offer round; 0: none
	bids     []arrivedBid
	answered map[protocol.AgentID]bool // accepted or rejected
}

// arrivedBid is an offer of one unit, when it arrived.
type arrivedBid struct {
	seller protocol.AgentID
	at     time.Time // by the user's clock
	unit   int
	price  protocol.Credits
	usable bool // not expired, its slot not begun, and the clock not set back since the auction began
}

// ended is an auction that is over, checked once its rejections have left.
type ended struct {
	host     *sim.Host
	auction  *bidding
	purchase message.Purchase
}

// bidChecks owns the running auctions of honest users, and how many of the valid bids of
// honest sites were counted.
type bidChecks struct {
	audit          *audit
	going          map[auctionKey]*bidding
	ended          []ended
	valid, counted int
	missed         string // the first that was not counted
}

// said follows the messages that a user sends in its auctions.
func (c *bidChecks) said(from *sim.Host, m protocol.Message) {
	if c.audit.m == nil || !c.audit.isUser(from.ID()) {
		return
	}
	key := auctionKey{from.ID(), m.Conversation}
	b := c.going[key]
	switch body := m.Body.(type) {
	case message.CallForProposals:
		if b == nil {
			b = &bidding{begun: c.audit.m.World.Elapsed(), clock: from.Now(), answered: map[protocol.AgentID]bool{}}
			c.going[key] = b
		}
		b.called(body)
	case message.Progress:
		if b == nil || !body.Done {
			return
		}
		delete(c.going, key)
		if !protocol.IsQuote(key.conversation) { // nobody wins or loses a quote
			c.ended = append(c.ended, ended{from, b, body.Purchase})
		}
	default:
		c.answered(key, b, m)
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
	if call.Round == 1 && call.Start.IsZero() {
		for _, l := range call.Ceilings {
			b.ceilings = append(b.ceilings, l.Price)
		}
	}
}

// answered records who was accepted or rejected. Rejections are sent after the owner has
// learnt that the purchase is over.
func (c *bidChecks) answered(key auctionKey, b *bidding, m protocol.Message) {
	if m.Performative != protocol.RejectProposal && m.Performative != protocol.AcceptProposal {
		return
	}
	if n := len(c.ended); b == nil && n > 0 && c.ended[n-1].purchase.ID == key.conversation {
		b = c.ended[n-1].auction
	}
	if b == nil {
		return
	}
	for _, id := range m.Receivers {
		b.answered[id] = true
	}
}

// arrives records a propose that an honest user is about to receive.
func (c *bidChecks) arrives(to, from *sim.Host, conversation string, p message.Proposal) {
	b := c.going[auctionKey{to.ID(), conversation}]
	if b == nil {
		return
	}
	now, site := to.Now(), c.audit.m.site(from)
	back := now.Sub(b.clock) < c.audit.m.World.Elapsed()-b.begun-protocol.ClockSkew
	for _, o := range p.Offers {
		if len(o.Items) != 1 {
			continue
		}
		it := o.Items[0]
		if site != nil && site.Config.Price.Rule != pricing.Ramp {
			c.audit.check(ListPrice, it.Price <= site.Config.Price.Start, "%s asks %s, above its start price %s", from.Name, it.Price, site.Config.Price.Start)
		}
		b.bids = append(b.bids, arrivedBid{from.ID(), now, it.Unit, it.Price, o.ValidUntil.After(now) && !it.Slot.Start.Before(now) && !back})
	}
}

// checkEnded checks the auctions that are over.
func (c *bidChecks) checkEnded() {
	for _, e := range c.ended {
		crashed := !e.host.Up() || e.host.Uptime() < c.audit.m.World.Elapsed()-e.auction.begun
		if cut := e.purchase.AuctionMS == 0 || e.purchase.State == user.StateInterrupted; !crashed && !cut {
			c.replay(e)
		}
	}
	c.ended = nil
}

// replay runs an auction again from the bids that arrived.
func (c *bidChecks) replay(e ended) {
	least := maps.Collect(slices.All(e.auction.ceilings))
	ends := roundEnds(e.purchase)
	for _, h := range e.auction.bids {
		round, sure := roundOf(ends, h.at)
		standing, asked := least[h.unit]
		late := round == len(ends) || round+1 == e.auction.best
		due := h.usable && (h.price < standing || round == 0 && h.price <= e.auction.ceiling(h.unit))
		if asked && sure && !late && due && c.audit.isSite(h.seller) {
			c.count(e, h, e.purchase.Rounds[round])
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

// count records whether a valid bid was counted.
func (c *bidChecks) count(e ended, h arrivedBid, r message.Round) {
	c.audit.counts[BidsCounted]++
	c.valid++
	if best := r.Best[h.unit]; e.auction.answered[h.seller] && best != nil && *best <= h.price {
		c.counted++
		return
	}
	c.missed = cmp.Or(c.missed, e.purchase.ID+": "+h.seller.Name()+" at "+h.at.Format(time.TimeOnly))
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

// blur is how near to a round's end a bid's round is unknown, since rounds are reported in
// microseconds.
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

// minCounted is the percentage of valid honest bids that must be counted.
const minCounted = 99

func (c *bidChecks) finish() {
	c.checkEnded()
	c.audit.check(BidsCounted, c.counted*100 >= c.valid*minCounted, "%d of %d honest bids were counted; the first that was not: %s", c.counted, c.valid, c.missed)
}

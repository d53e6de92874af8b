package codec

import (
	"math"

	"ramp/protocol"
	"ramp/protocol/codec/wire"
	"ramp/protocol/message"
)

var auctionBodies = []row{
	body(17, func(c *coder, m *message.CallForProposals, w *wire.CallForProposals) {
		c.cfpHead(m, w)
		list(c, "ceilings", &m.Ceilings, &w.Ceilings, protocol.MaxUnits, (*coder).ceiling)
		list(c, "ceilings of bundles", &m.Bundles, &w.Bundles, protocol.MaxOffers, func(c *coder, m *message.BundleCeiling, w *wire.BundleCeiling) {
			values(c, "units", &m.Units, &w.Units, protocol.MaxUnits, (*coder).unit)
			c.amount("ceiling of a bundle", &m.Cost, &w.Cost)
		})
		list(c, "terms", &m.Terms, &w.Terms, protocol.MaxTerms, (*coder).term)
		c.modes(&m.Modes, &w.Modes)
		if m.Launch != nil || w.Launch != nil {
			c.intent(part(&m.Launch), part(&w.Launch))
		}
	}, on(auction, protocol.CFP)),

	body(18, func(c *coder, m *message.Proposal, w *wire.Proposal) {
		items := 0
		for _, o := range w.Offers {
			items += len(o.Items)
		}
		for _, o := range m.Offers {
			items += len(o.Items)
		}
		if items > protocol.MaxItems {
			c.fail(protocol.CodeLimit, "%d items in all offers, want at most %d", items, protocol.MaxItems)
		}
		c.round(&m.Round, &w.Round)
		list(c, "offers", &m.Offers, &w.Offers, protocol.MaxOffers, (*coder).offer)
		list(c, "spans", &m.Capacity, &w.Capacity, protocol.MaxSpans, (*coder).span)
		list(c, "reasons", &m.Refusals, &w.Refusals, protocol.MaxReasons, (*coder).reason)
	}, on(auction, protocol.Propose)),

	body(19, func(c *coder, m *message.Refusal, w *wire.Refusal) {
		c.round(&m.Round, &w.Round)
		list(c, "reasons", &m.Reasons, &w.Reasons, protocol.MaxReasons, (*coder).reason)
	},
		on(auction, protocol.Refuse, protocol.Failure, protocol.NotUnderstood, protocol.RejectProposal),
		on(commit, protocol.Refuse, protocol.Failure, protocol.NotUnderstood, protocol.RejectProposal),
		on(request, protocol.Refuse, protocol.Failure, protocol.NotUnderstood),
		on(index, protocol.Refuse, protocol.Failure, protocol.NotUnderstood),
		on(english, protocol.Refuse, protocol.Failure, protocol.NotUnderstood)),
}

// cfpHead copies the fields that are not lists or structs.
func (c *coder) cfpHead(m *message.CallForProposals, w *wire.CallForProposals) {
	if n := max(len(m.Document), len(w.Document)); n > protocol.MaxDocument {
		c.fail(protocol.CodeLimit, "document of %d bytes, want at most %d", n, protocol.MaxDocument)
	} else if n > 0 { // nil and empty are the same
		same(c, &m.Document, &w.Document)
	}
	c.round(&m.Round, &w.Round)
	number(c, "objective", &m.Objective, &w.Objective, 0, int64(protocol.ObjectiveCostTime)) // later rounds may leave it out
	same(c, &m.Best, &w.Best)
	c.instant("start", &m.Start, &w.Start)
	number(c, "budget", &m.Budget, &w.Budget, 0, math.MaxInt32)
	number(c, "among", &m.Among, &w.Among, 0, math.MaxInt32)
}

// intent copies what the buyer wants to launch. Roles decide whether they allow it.
func (c *coder) intent(m *message.Intent, w *wire.Intent) {
	c.name("application", &m.App, &w.App, protocol.MaxName)
	number(c, "bytes of the inputs", &m.Input, &w.Input, 0, protocol.MaxStaged*protocol.MaxFileSize)
}

func (c *coder) ceiling(m *message.Ceiling, w *wire.Ceiling) {
	c.unit(&m.Unit, &w.Unit)
	c.amount("ceiling", &m.Price, &w.Price)
	same(c, &m.Tied, &w.Tied)
}

// span copies a span, which unlike a slot may have zero cores: then no capacity is left.
func (c *coder) span(m *protocol.Span, w *wire.Slot) {
	c.needed("start", &m.Start, &w.Start)
	c.needed("end", &m.End, &w.End)
	c.cores(&m.Cores, &w.Cores)
	if w.End <= w.Start {
		c.malformed("a span that does not end after its start")
	}
}

func (c *coder) reason(m *protocol.Reason, w *wire.Reason) {
	c.reasonHead(m, w)
	list(c, "hints", &m.Hints, &w.Hints, protocol.MaxHints, (*coder).hint)
}

// reasonHead copies a reason without its hints.
func (c *coder) reasonHead(m *protocol.Reason, w *wire.Reason) {
	c.reasonCode(&m.Code, &w.Code)
	number(c, "unit", &m.Unit, &w.Unit, protocol.AllUnits, protocol.MaxUnits-1)
	c.words("term", &m.Term, &w.Term)
	c.words("want", &m.Want, &w.Want)
	c.words("have", &m.Have, &w.Have)
	c.amount("asks", &m.Asks, &w.Asks)
	c.instant("start", &m.Start, &w.Start)
	number(c, "free", &m.Free, &w.Free, 0, math.MaxInt32)
	c.words("note", &m.Note, &w.Note)
}

// hint copies a counter-offer. Its tariff is zero or valid.
func (c *coder) hint(m *protocol.Hint, w *wire.Hint) {
	c.needed("start of a hint", &m.Start, &w.Start)
	number(c, "cores of a hint", &m.Cores, &w.Cores, 1, protocol.MaxCores)
	c.price("price of a hint", &m.Price, &w.Price)
	t := &m.Tariff
	whole(c, &t.TimeLimit, &w.TimeLimit)
	same(c, &t.P.Lo, &w.PLo)
	same(c, &t.P.Hi, &w.PHi)
	c.amount("Pmax of a hint", &t.P.Top, &w.PTop)
	same(c, &t.Q.Lo, &w.QLo)
	same(c, &t.Q.Hi, &w.QHi)
	c.amount("Qmax of a hint", &t.Q.Top, &w.QTop)
	c.amount("prepayment of a hint", &t.Prepay, &w.Prepay)
	c.amount("least payment of a hint", &t.Least, &w.Least)
	if *t == (protocol.Tariff{}) {
		return
	}
	if err := t.Validate(); err != nil {
		c.malformed("tariff of a hint: %w", err)
	}
}

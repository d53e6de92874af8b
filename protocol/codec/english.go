package codec

import (
	"math"
	"time"

	"ramp/protocol"
	"ramp/protocol/codec/wire"
	"ramp/protocol/message"
)

const english = protocol.ProtocolEnglish

// englishBodies are what the sites of a federation and its users send each other about a job.
var englishBodies = []row{
	body(70, func(c *coder, m *message.JobOffer, w *wire.JobOffer) {
		jobTerms(c, &m.Terms, part(&w.Terms))
		c.name("level", &m.Level, &w.Level, protocol.MaxName)
	}, on(english, protocol.Request)),

	body(71, func(c *coder, m *message.AuctionOpen, w *wire.AuctionOpen) {
		c.id("rules", &m.Rules, &w.Rules, protocol.MaxName)
		c.agent("owner", &m.Owner, &w.Owner)
		jobTerms(c, &m.Terms, part(&w.Terms))
		times(c, "number", &m.Number, &w.Number)
		whole(c, &m.Minimum, &w.Minimum)
		c.needed("end", &m.Ends, &w.Ends)
	}, on(english, protocol.Inform)),

	body(72, func(c *coder, m *message.JobBid, w *wire.JobBid) {
		times(c, "number", &m.Number, &w.Number)
		whole(c, &m.Seq, &w.Seq)
		number(c, "free modules", &m.Free, &w.Free, 0, message.MaxModules)
		list(c, "victims", &m.Victims, &w.Victims, message.MaxVictims, victimsOf)
		length(c, "transfer", &m.Transfer, &w.Transfer)
	}, on(english, protocol.Propose, protocol.Refuse)),

	body(73, func(c *coder, m *message.Standing, w *wire.Standing) {
		times(c, "number", &m.Number, &w.Number)
		maybeAgent(c, "leader", &m.Leader, &w.Leader)
		whole(c, &m.Value, &w.Value)
		same(c, &m.Closed, &w.Closed)
	}, on(english, protocol.Inform)),

	body(74, func(c *coder, m *message.JobAward, w *wire.JobAward) {
		times(c, "award", &m.Award, &w.Award)
		times(c, "number", &m.Number, &w.Number)
		whole(c, &m.Seq, &w.Seq)
		c.words("why", &m.Why, &w.Why)
	}, on(english, protocol.AcceptProposal, protocol.Agree, protocol.Refuse, protocol.Confirm, protocol.Cancel, protocol.QueryRef)),

	body(75, func(c *coder, m *message.JobProgress, w *wire.JobProgress) { jobProgress(c, m, w) },
		on(english, protocol.Agree, protocol.Inform)),

	body(76, func(c *coder, m *message.JobOrder, w *wire.JobOrder) {
		if text(c, &m.Verb, &w.Verb); !m.Verb.Known() {
			c.malformed("unknown verb %.32q", w.Verb)
		}
	}, on(english, protocol.Request)),

	body(77, func(c *coder, m *message.JobHistory, w *wire.JobHistory) {
		jobTerms(c, &m.Terms, part(&w.Terms))
		jobProgress(c, &m.Progress, part(&w.Progress))
		list(c, "auctions", &m.Auctions, &w.Auctions, message.MaxAuctions, auctionLine)
	}, on(english, protocol.Inform)),
}

func jobTerms(c *coder, m *message.JobTerms, w *wire.JobTerms) {
	number(c, "level", &m.Level, &w.Level, 1, message.MaxLevels)
	number(c, "least modules", &m.Least, &w.Least, 1, message.MaxModules)
	number(c, "most modules", &m.Most, &w.Most, 1, message.MaxModules)
	length(c, "wall time", &m.Wall, &w.Wall)
	whole(c, &m.Bytes, &w.Bytes)
	c.agent("where", &m.Where, &w.Where)
	if err := m.Validate(); err != nil {
		c.malformed("%w", err)
	}
}

func victimsOf(c *coder, m *message.Victims, w *wire.Victims) {
	number(c, "level", &m.Level, &w.Level, 1, message.MaxLevels)
	number(c, "modules", &m.Modules, &w.Modules, 1, message.MaxModules)
}

func jobProgress(c *coder, m *message.JobProgress, w *wire.JobProgress) {
	if text(c, &m.State, &w.State); !m.State.Known() {
		c.malformed("unknown state %.32q", w.State)
	}
	times(c, "award", &m.Award, &w.Award)
	maybeAgent(c, "site", &m.Site, &w.Site)
	number(c, "modules", &m.Got, &w.Got, 0, message.MaxModules)
	times(c, "preempted", &m.Preempted, &w.Preempted)
	length(c, "ran", &m.Ran, &w.Ran)
	length(c, "suspended", &m.Suspended, &w.Suspended)
	number(c, "exit", &m.Exit, &w.Exit, 0, protocol.MaxExit)
	c.words("why", &m.Why, &w.Why)
}

func auctionLine(c *coder, m *message.AuctionLine, w *wire.AuctionLine) {
	times(c, "number", &m.Number, &w.Number)
	length(c, "length", &m.Length, &w.Length)
	length(c, "mean", &m.Mean, &w.Mean)
	whole(c, &m.Minimum, &w.Minimum)
	list(c, "bids", &m.Bids, &w.Bids, message.MaxSites, func(c *coder, m *message.AuctionBid, w *wire.AuctionBid) {
		c.agent("site", &m.Site, &w.Site)
		whole(c, &m.Seq, &w.Seq)
		c.needed("time", &m.At, &w.At)
		whole(c, &m.Bid, &w.Bid)
		number(c, "free modules", &m.Free, &w.Free, 0, message.MaxModules)
		list(c, "victims", &m.Victims, &w.Victims, message.MaxVictims, victimsOf)
		length(c, "transfer", &m.Transfer, &w.Transfer)
	})
	maybeAgent(c, "winner", &m.Winner, &w.Winner)
	values(c, "refused", &m.Refused, &w.Refused, message.MaxSites, func(c *coder, m *protocol.AgentID, w *string) { c.agent("site", m, w) })
}

// times copies a number of things that happened.
func times(c *coder, field string, m *int, w *int64) { number(c, field, m, w, 0, math.MaxInt32) }

// length copies a duration that is not negative.
func length(c *coder, field string, m *time.Duration, w *int64) {
	number(c, field, m, w, 0, math.MaxInt64)
}

// maybeAgent copies an agent's ID that may be empty.
func maybeAgent(c *coder, field string, m *protocol.AgentID, w *string) {
	if *m != "" || *w != "" {
		c.agent(field, m, w)
	}
}

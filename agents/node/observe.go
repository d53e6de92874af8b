package node

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/message"
)

// observe counts, logs and traces a message that arrived or left.
func (n *Node) observe(at time.Time, in bool, m protocol.Message) {
	n.monitor.See(at, in, m)
	n.logDecision(in, m)
	n.News.observe(at, in, m)
	if n.journal != nil {
		n.trace(at, in, m)
	}
}

// traces reports whether a message belongs in the journal's trace. Sellers do not trace
// auctions: they hear hundreds per second.
func (n *Node) traces(m protocol.Message) bool {
	switch {
	case m.Conversation == "", m.Protocol == protocol.ProtocolPresence, m.Sender.Local(),
		len(m.Receivers) == 1 && m.Receivers[0].Local() && m.Receivers[0] != protocol.Everyone:
		return false
	case m.Protocol == protocol.ProtocolAuction && protocol.IsQuote(m.Conversation):
		return false // of a quote, which has nothing but an auction; others may choose such an ID too
	}
	return n.Cfg.Resource == nil || m.Protocol != protocol.ProtocolAuction
}

// trace adds a message of a conversation with other agents to the journal.
func (n *Node) trace(at time.Time, in bool, m protocol.Message) {
	if !n.traces(m) {
		return
	}
	b, err := codec.EncodeTrace(m)
	if err != nil {
		n.Log.Error("cannot trace a message", "conversation", m.Conversation, "err", err)
		return
	}
	dir := "out"
	if in {
		dir = "in"
	}
	n.journal.Trace(at, dir, m.Conversation, b)
}

// logDecision logs a decision of this agent, or of the bank about it, in one line with its
// reason. Auctions have many such messages, so they are logged for debugging only.
func (n *Node) logDecision(in bool, m protocol.Message) {
	level, what := decisionOf(in, m)
	if what == "" || !n.Log.Enabled(context.Background(), level) {
		return
	}
	n.Log.Log(context.Background(), level, what, append(aboutDecision(m), "conversation", m.Conversation, "with", otherSide(in, m))...)
}

// otherSide names the agents at the other end of a message.
func otherSide(in bool, m protocol.Message) string {
	if in {
		return string(m.Sender)
	}
	list := make([]string, len(m.Receivers))
	for i, r := range m.Receivers {
		list[i] = string(r)
	}
	return strings.Join(list, " ")
}

// decisionOf returns the level and text with which a message is logged; no text: it is not.
func decisionOf(in bool, m protocol.Message) (level slog.Level, what string) {
	switch body := m.Body.(type) {
	case message.Proposal:
		if !in {
			return slog.LevelDebug, "offer"
		}
	case message.Refusal:
		switch {
		case in || m.Performative != protocol.Refuse:
		case m.Protocol == protocol.ProtocolAuction:
			return slog.LevelDebug, "refuse"
		default:
			return slog.LevelInfo, "refuse"
		}
	case message.Vote:
		if !in {
			return slog.LevelInfo, "hold"
		}
	case message.Countersigned:
		if !in {
			return slog.LevelInfo, "countersign"
		}
	case message.Decision:
		if body.Outcome == protocol.OutcomeSettled || body.Outcome == protocol.OutcomeVoid {
			return decisionLevel(in, m), string(body.Outcome)
		}
	case message.Reserve:
		if !in && body.Again {
			return slog.LevelWarn, "the batch system has lost a reservation and is asked for it again"
		}
	case message.Progress:
		if body.Done {
			return slog.LevelInfo, "purchase " + body.Purchase.State
		}
	case message.LaunchStatus: // buyers may complain about these jobs
		switch {
		case in || m.InReplyTo != "":
		case body.Stage == message.StageFailed:
			return slog.LevelInfo, "a job did not begin"
		case body.Stage == message.StageDone && body.Job.State == protocol.JobLost:
			return slog.LevelWarn, "a job was lost"
		}
	}
	return 0, ""
}

func aboutDecision(m protocol.Message) []any {
	switch body := m.Body.(type) {
	case message.Proposal:
		return []any{"round", body.Round, "offers", len(body.Offers)}
	case message.Refusal:
		return append([]any{"round", body.Round}, reasonWords(body.Reasons)...)
	case message.Vote:
		return []any{"offer", body.Offer, "until", body.HoldUntil}
	case message.Countersigned:
		return []any{"contract", body.Sale.Verified.ID}
	case message.Decision:
		return []any{"contract", body.Contract, "reason", body.Reason}
	case message.Reserve:
		return []any{"reservation", body.ID, "start", body.Slot.Start, "end", body.Slot.End, "cores", body.Slot.Cores}
	case message.LaunchStatus:
		return []any{"contract", body.Contract, "unit", body.Unit, "launch", body.ID, "why", cmp.Or(body.Why, body.Job.Note)}
	case message.Progress:
		p := body.Purchase
		return []any{"reason", p.Why, "total", p.Total, "currency", p.Currency}
	}
	return nil
}

// decisionLevel is low for a bank's repeated answers: a user asks about all its unused
// purchases whenever it starts, and how each has ended.
func decisionLevel(in bool, m protocol.Message) slog.Level {
	if m.Performative == protocol.Inform && (m.InReplyTo == "ended" || !in && m.InReplyTo != "") {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

func reasonWords(reasons []protocol.Reason) []any {
	if len(reasons) == 0 {
		return nil
	}
	r := reasons[0]
	about := []any{"reason", r.Code}
	if r.Note != "" {
		about = append(about, "note", r.Note)
	}
	if r.Term != "" {
		about = append(about, "term", r.Term, "want", r.Want, "have", r.Have)
	}
	return about
}

package command

import (
	"context"
	"log/slog"
	"strings"

	"ramp/protocol"
	"ramp/protocol/message"
)

// decide logs a decision of this agent, or of the bank about it, with its reason:
// one line each. What is said in auctions is many lines, so it is for debugging.
func (n *node) decide(in bool, m protocol.Message) {
	level, what, about := decisionOf(in, m)
	if what == "" || !n.log.Enabled(context.Background(), level) {
		return
	}
	n.log.Log(context.Background(), level, what, append(about, "conversation", m.Conversation, "with", otherSide(in, m))...)
}

// otherSide is who is at the other end of a message.
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

// decisionOf is the line for a message; none: "".
func decisionOf(in bool, m protocol.Message) (level slog.Level, what string, about []any) {
	switch body := m.Body.(type) {
	case message.Proposal:
		if !in {
			return slog.LevelDebug, "offer", []any{"round", body.Round, "offers", len(body.Offers)}
		}
	case message.Refusal:
		if !in && m.Performative == protocol.Refuse {
			return refusalLevel(m), "refuse", append([]any{"round", body.Round}, reasonWords(body.Reasons)...)
		}
	case message.Vote:
		if !in {
			return slog.LevelInfo, "hold", []any{"offer", body.Offer, "until", body.HoldUntil}
		}
	case message.Countersigned:
		if !in {
			return slog.LevelInfo, "countersign", []any{"contract", body.Sale.Verified.ID}
		}
	case message.Decision:
		return decisionLevel(in, m), decisionWords(body), []any{"contract", body.Contract, "reason", body.Reason}
	case message.Progress:
		if body.Done {
			p := body.Purchase
			return slog.LevelInfo, "purchase " + p.State, []any{"reason", p.Why, "total", p.Total, "currency", p.Currency}
		}
	}
	return 0, "", nil
}

// decisionLevel is low for what a bank is asked again: each start of a user asks about
// all that it has bought and not had yet.
func decisionLevel(in bool, m protocol.Message) slog.Level {
	if !in && m.Performative == protocol.Inform && m.InReplyTo != "" {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// refusalLevel is low for what is said in auctions.
func refusalLevel(m protocol.Message) slog.Level {
	if m.Protocol == protocol.ProtocolAuction {
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

func decisionWords(d message.Decision) string {
	switch d.Outcome {
	case protocol.OutcomeSettled, protocol.OutcomeVoid:
		return string(d.Outcome)
	}
	return ""
}

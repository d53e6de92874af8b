package codec

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"ramp/protocol"
	"ramp/protocol/codec/wire"
	"ramp/protocol/message"
)

// Fields of an envelope that are bodies, now or later.
const (
	firstBody = 16
	lastBody  = 63
)

// toWire turns m into its wire type. It checks only that it can: the rules are
// the reader's.
func toWire(m protocol.Message) (*wire.Envelope, error) {
	e := &wire.Envelope{
		Performative: string(m.Performative),
		Protocol:     m.Protocol,
		Conversation: m.Conversation,
		ReplyWith:    m.ReplyWith,
		InReplyTo:    m.InReplyTo,
		ReplyBy:      nanos(m.ReplyBy),
		Receivers:    make([]string, len(m.Receivers)),
	}
	for i, a := range m.Receivers {
		if a.Local() && a != protocol.Everyone {
			return nil, fmt.Errorf("%s to %s: %w", subject(m), a, ErrLocal)
		}
		e.Receivers[i] = string(a)
	}
	if m.Body == nil {
		return e, nil
	}
	if strings.HasPrefix(m.Body.Kind(), "local-") {
		return nil, fmt.Errorf("%s: %w", subject(m), ErrLocal)
	}
	if !setBody(e, m.Body) {
		return nil, fmt.Errorf("%s: a body of type %T cannot be sent", subject(m), m.Body)
	}
	return e, nil
}

// message reads an envelope. After a fault it holds what was read before.
func (r *reader) message(e *wire.Envelope) protocol.Message {
	m := r.head(e)
	m.Receivers = list(r, "receivers", e.Receivers, protocol.MaxReceivers, r.receiver)
	if len(m.Receivers) == 0 {
		r.malformed("no receiver")
	}
	if e.Body == nil && hasUnknownBody(e.ProtoReflect().GetUnknown()) {
		r.malformed("a body of an unknown kind")
	}
	if r.err != nil {
		return m
	}
	m.Body = r.body(e)
	r.checkAllowed(m)
	return m
}

// head reads what comes before the receivers.
func (r *reader) head(e *wire.Envelope) (m protocol.Message) {
	m.Protocol = e.Protocol // of a closed set, as allowed says
	m.Performative = protocol.Performative(e.Performative)
	m.Conversation = r.name("conversation", e.Conversation, protocol.MaxConversation)
	if m.Conversation == "" && m.Protocol != protocol.ProtocolPresence {
		r.malformed("conversation: none")
	}
	m.ReplyWith = r.name("reply-with", e.ReplyWith, protocol.MaxName)
	m.InReplyTo = r.name("in-reply-to", e.InReplyTo, protocol.MaxName)
	m.ReplyBy = r.instant("reply-by", e.ReplyBy)
	return m
}

func (r *reader) checkAllowed(m protocol.Message) {
	if r.err == nil && !allowed(m.Body, m.Performative, m.Protocol) {
		r.malformed("not allowed with performative %.32q and protocol %.32q", m.Performative, m.Protocol)
	}
}

func (r *reader) receiver(s string) protocol.AgentID {
	if s == string(protocol.Everyone) {
		return protocol.Everyone
	}
	return r.agent("receiver", s)
}

// hasUnknownBody reports whether fields that the decoder did not know hold a
// body.
func hasUnknownBody(b []byte) bool {
	for len(b) > 0 {
		num, _, n := protowire.ConsumeField(b)
		if n < 0 || num >= firstBody && num <= lastBody {
			return true
		}
		b = b[n:]
	}
	return false
}

// setBody reports whether body is of a type that can be sent.
func setBody(e *wire.Envelope, body protocol.Body) bool {
	switch b := body.(type) {
	case message.Presence:
		e.Body = &wire.Envelope_Presence{Presence: presenceToWire(b)}
	case message.CallForProposals:
		e.Body = &wire.Envelope_Cfp{Cfp: cfpToWire(b)}
	case message.Proposal:
		e.Body = &wire.Envelope_Proposal{Proposal: proposalToWire(b)}
	case message.Refusal:
		e.Body = &wire.Envelope_Refusal{Refusal: refusalToWire(b)}
	case message.Acceptance:
		e.Body = &wire.Envelope_Acceptance{Acceptance: acceptanceToWire(b)}
	case message.Vote:
		e.Body = &wire.Envelope_Vote{Vote: voteToWire(b)}
	case message.Confirmation:
		e.Body = &wire.Envelope_Confirmation{Confirmation: &wire.Confirmation{Bundle: b.Bundle.DER}}
	case message.Countersigned:
		e.Body = &wire.Envelope_Countersigned{Countersigned: &wire.Countersigned{Sale: b.Sale.DER}}
	case message.Cancellation:
		e.Body = &wire.Envelope_Cancellation{Cancellation: &wire.Cancellation{Reservations: b.Reservations}}
	case message.Settlement:
		e.Body = &wire.Envelope_Settlement{Settlement: &wire.Settlement{Sale: b.Sale.DER}}
	case message.Annulment:
		e.Body = &wire.Envelope_Annulment{Annulment: &wire.Annulment{Bundle: b.Bundle.DER}}
	case message.OutcomeQuery:
		e.Body = &wire.Envelope_OutcomeQuery{OutcomeQuery: &wire.OutcomeQuery{Contract: string(b.Contract)}}
	case message.Decision:
		e.Body = &wire.Envelope_Decision{Decision: decisionToWire(b)}
	case message.UnitCancellation:
		e.Body = &wire.Envelope_UnitCancellation{UnitCancellation: &wire.UnitCancellation{Cancel: b.Signed.DER}}
	case message.RefundRequest:
		e.Body = &wire.Envelope_RefundRequest{RefundRequest: &wire.RefundRequest{Refund: b.Signed.DER, Bundle: b.Bundle.DER}}
	default:
		return setAccountBody(e, body)
	}
	return true
}

func setAccountBody(e *wire.Envelope, body protocol.Body) bool {
	switch b := body.(type) {
	case message.BalanceQuery:
		e.Body = &wire.Envelope_BalanceQuery{BalanceQuery: &wire.BalanceQuery{}}
	case message.Balances:
		e.Body = &wire.Envelope_Balances{Balances: balancesToWire(b)}
	case message.StatementQuery:
		e.Body = &wire.Envelope_StatementQuery{StatementQuery: statementQueryToWire(b)}
	case message.Statement:
		e.Body = &wire.Envelope_Statement{Statement: statementToWire(b)}
	case message.ProofQuery:
		e.Body = &wire.Envelope_ProofQuery{ProofQuery: &wire.ProofQuery{Contract: string(b.Contract), From: b.From}}
	case message.Proof:
		e.Body = &wire.Envelope_Proof{Proof: &wire.Proof{Document: b.Document}}
	default:
		return setBankBody(e, body)
	}
	return true
}

// body reads the body, or nil if there is none.
func (r *reader) body(e *wire.Envelope) protocol.Body {
	switch b := e.Body.(type) {
	case *wire.Envelope_Presence:
		return r.presence(b.Presence)
	case *wire.Envelope_Cfp:
		return r.cfp(b.Cfp)
	case *wire.Envelope_Proposal:
		return r.proposal(b.Proposal)
	case *wire.Envelope_Refusal:
		return r.refusal(b.Refusal)
	case *wire.Envelope_Acceptance:
		return r.acceptance(b.Acceptance)
	case *wire.Envelope_Vote:
		return r.vote(b.Vote)
	case *wire.Envelope_Confirmation:
		return message.Confirmation{Bundle: document(r, "bundle", b.Confirmation.GetBundle(), r.signed.bundle)}
	case *wire.Envelope_Countersigned:
		return message.Countersigned{Sale: document(r, "sale", b.Countersigned.GetSale(), r.signed.sale)}
	case *wire.Envelope_Cancellation:
		return r.cancellation(b.Cancellation)
	case *wire.Envelope_Settlement:
		return message.Settlement{Sale: document(r, "sale", b.Settlement.GetSale(), r.signed.sale)}
	case *wire.Envelope_Annulment:
		return message.Annulment{Bundle: document(r, "bundle", b.Annulment.GetBundle(), r.signed.bundle)}
	case *wire.Envelope_OutcomeQuery:
		return message.OutcomeQuery{Contract: r.contract(b.OutcomeQuery.GetContract())}
	case *wire.Envelope_Decision:
		return r.decision(b.Decision)
	case *wire.Envelope_UnitCancellation:
		return message.UnitCancellation{Signed: document(r, "cancellation", b.UnitCancellation.GetCancel(), r.signed.cancel)}
	case *wire.Envelope_RefundRequest:
		return r.refundRequest(b.RefundRequest)
	case *wire.Envelope_BalanceQuery:
		return message.BalanceQuery{}
	case *wire.Envelope_Balances:
		return r.balances(b.Balances)
	case *wire.Envelope_StatementQuery:
		return r.statementQuery(b.StatementQuery)
	case *wire.Envelope_Statement:
		return r.statement(b.Statement)
	case *wire.Envelope_ProofQuery:
		return r.proofQuery(b.ProofQuery)
	case *wire.Envelope_Proof:
		return r.proof(b.Proof)
	}
	return r.bankBody(e)
}

package codec

import (
	"slices"

	"ramp/protocol"
	"ramp/protocol/message"
)

// allowed reports whether a body may come with a performative under a protocol
// token. It is the table of the protocol's stages; what may come when is for the
// machines. No body: an agree that says nothing more.
func allowed(body protocol.Body, act protocol.Performative, token string) bool {
	const auction, commit, request = protocol.ProtocolAuction, protocol.ProtocolCommit, protocol.ProtocolRequest
	switch body.(type) {
	case nil:
		return act == protocol.Agree && token == request
	case message.Presence:
		return act == protocol.Inform && token == protocol.ProtocolPresence
	case message.CallForProposals:
		return act == protocol.CFP && token == auction
	case message.Proposal:
		return act == protocol.Propose && token == auction
	case message.Refusal:
		return among(act, protocol.Refuse, protocol.Failure, protocol.NotUnderstood) && among(token, auction, commit, request) ||
			act == protocol.RejectProposal && among(token, auction, commit)
	case message.Acceptance:
		return act == protocol.AcceptProposal && token == commit
	case message.Vote:
		return act == protocol.Agree && token == commit
	case message.Confirmation, message.Countersigned:
		return act == protocol.Confirm && token == commit
	case message.Cancellation:
		return act == protocol.Cancel && token == commit
	case message.Settlement, message.Annulment, message.UnitCancellation, message.RefundRequest:
		return act == protocol.Request && token == request
	case message.Decision:
		return among(act, protocol.Agree, protocol.Refuse, protocol.Inform) && among(token, commit, request)
	case message.OutcomeQuery, message.BalanceQuery, message.StatementQuery, message.ProofQuery:
		return act == protocol.QueryRef && token == request
	case message.Balances, message.Statement, message.Proof:
		return act == protocol.Inform && token == request
	}
	return token == request && allowedBank(body, act)
}

// allowedBank is the part of the table for what banks alone are asked, under
// fipa-request.
func allowedBank(body protocol.Body, act protocol.Performative) bool {
	switch body.(type) {
	case message.JobReport:
		return among(act, protocol.Request, protocol.Inform)
	case message.JobVerdict, message.VoucherRequest, message.QuoteRequest, message.ExchangeRequest, message.Readmission:
		return act == protocol.Request
	case message.Vouched, message.Quoted:
		return act == protocol.Agree
	}
	return allowedLaunch(body, act)
}

// allowedLaunch is the part of the table for what runs in a slot, and for what
// a seller asks that has lost its journal, under fipa-request.
func allowedLaunch(body protocol.Body, act protocol.Performative) bool {
	switch body.(type) {
	case message.Launch, message.LaunchOrder:
		return act == protocol.Request
	case message.LaunchStatus:
		return among(act, protocol.Agree, protocol.Inform)
	case message.SoldQuery, message.BundleQuery:
		return act == protocol.QueryRef
	case message.SoldList, message.BundleCopy:
		return act == protocol.Inform
	}
	return false
}

func among[T comparable](x T, set ...T) bool { return slices.Contains(set, x) }

// knownCode reports whether c is of the closed set of protocol.Code.
func knownCode(c protocol.Code) bool {
	switch c {
	case protocol.CodeOS, protocol.CodeOSVersion, protocol.CodeArchitecture, protocol.CodeCPUSpeed, protocol.CodeRAM,
		protocol.CodeDisk, protocol.CodeBandwidth, protocol.CodeSize, protocol.CodeNoBank, protocol.CodeMode, protocol.CodeProgram,
		protocol.CodeBusy, protocol.CodePrice, protocol.CodeStands, protocol.CodeWindow, protocol.CodeHoldLimit,
		protocol.CodeVoucher, protocol.CodeLimit, protocol.CodeUnavailable, protocol.CodeDraining, protocol.CodeExpired,
		protocol.CodeUnknown, protocol.CodeMismatch, protocol.CodeMalformed, protocol.CodeForbidden,
		protocol.CodeSignature, protocol.CodeAccount, protocol.CodeFunds, protocol.CodeFrozen, protocol.CodeSettleBy, protocol.CodeAbandoned,
		protocol.CodeOverflow, protocol.CodeSilent, protocol.CodeCeiling, protocol.CodeLate, protocol.CodeApproval:
		return true
	}
	return false
}

func knownMode(m protocol.Mode) bool { return m.Known() }

func knownOutcome(o protocol.Outcome) bool {
	return among(o, protocol.OutcomeUnknown, protocol.OutcomeGathering, protocol.OutcomeSettled, protocol.OutcomeVoid)
}

// decided reports whether an outcome is a decision, which comes with a receipt.
func decided(o protocol.Outcome) bool {
	return o == protocol.OutcomeSettled || o == protocol.OutcomeVoid
}

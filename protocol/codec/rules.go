package codec

import "ramp/protocol"

// knownCode reports whether c is one of the codes of package protocol.
func knownCode(c protocol.Code) bool {
	switch c {
	case protocol.CodeOS, protocol.CodeOSVersion, protocol.CodeArchitecture, protocol.CodeCPUSpeed, protocol.CodeRAM,
		protocol.CodeDisk, protocol.CodeBandwidth, protocol.CodeSize, protocol.CodeNoBank, protocol.CodeMode, protocol.CodeProgram,
		protocol.CodeBusy, protocol.CodePrice, protocol.CodeStands, protocol.CodeWindow, protocol.CodeHoldLimit,
		protocol.CodeVoucher, protocol.CodeLimit, protocol.CodeUnavailable, protocol.CodeDraining, protocol.CodeExpired,
		protocol.CodeUnknown, protocol.CodeMismatch, protocol.CodeMalformed, protocol.CodeForbidden,
		protocol.CodeSignature, protocol.CodeAccount, protocol.CodeFunds, protocol.CodeFrozen, protocol.CodeSettleBy, protocol.CodeAbandoned,
		protocol.CodeOverflow, protocol.CodeSilent, protocol.CodeCeiling, protocol.CodeLate, protocol.CodeApproval, protocol.CodeClock:
		return true
	}
	return false
}

// decided reports whether an outcome is a decision, which needs a receipt.
func decided(o protocol.Outcome) bool {
	return o == protocol.OutcomeSettled || o == protocol.OutcomeVoid
}

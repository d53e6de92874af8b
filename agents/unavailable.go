package agents

import (
	"ramp/protocol"
	"ramp/protocol/message"
)

// Unavailable is what self answers to a message while it cannot write its journal: it
// refuses proposals, fails requests, and ignores local messages and those that expect no
// answer. Live and simulated agents share it; use it for Config.Unavailable.
func Unavailable(self protocol.AgentID, m protocol.Message) (answer protocol.Message, ok bool) {
	p := protocol.Failure
	switch m.Performative {
	case protocol.CFP, protocol.AcceptProposal:
		p = protocol.Refuse
	case protocol.Confirm, protocol.Request, protocol.QueryRef:
	default:
		return protocol.Message{}, false
	}
	if m.Sender.Local() {
		return protocol.Message{}, false
	}
	return m.Reply(self, p, message.Refused(protocol.CodeUnavailable, "this agent cannot write its journal")), true
}

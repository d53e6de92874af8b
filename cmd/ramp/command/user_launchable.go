package command

import (
	"cmp"
	"errors"
	"strconv"
	"strings"

	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/message"
)

// launchable refuses a program that no site could ever be told, such as one with
// more arguments than a message holds: before anything is bought for it.
func launchable(id string, p *message.Program) error {
	if p == nil {
		return nil
	}
	l := message.Launch{
		Contract: protocol.ContractID(strings.Repeat("0", 64)), ID: id + "." + strconv.Itoa(protocol.MaxUnits),
		App: p.App, Params: p.Params, Command: p.Command, Place: message.Place{Number: protocol.MaxUnits, Units: protocol.MaxUnits},
	}
	for _, in := range p.Inputs {
		l.Inputs = append(l.Inputs, in.File)
	}
	site := protocol.AgentID("site@" + strings.Repeat("a", protocol.FingerprintLen)) // any
	_, err := codec.Encode(protocol.Message{
		Performative: protocol.Request, Receivers: []protocol.AgentID{site}, Protocol: protocol.ProtocolRequest, Conversation: id, Body: l,
	})
	if err != nil {
		return fail(exitUsage, "", "what is to run cannot be told to a site: %w", cmp.Or(errors.Unwrap(err), err))
	}
	return nil
}

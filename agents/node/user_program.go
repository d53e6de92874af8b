package node

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"ramp/agents/exit"
	"ramp/agents/user"
	"ramp/agents/words"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/message"
)

// UnitWords say how a unit stands.
func UnitWords(u message.RunUnit) string {
	s := u.Status
	text := user.StateOf(u)
	switch {
	case s.Stage == message.StageFailed:
		return "it did not run: " + s.Why
	case u.Lost && u.Launch == "":
		return "offered to the federation of " + u.Resource
	case u.Lost:
		return u.Resource + " has lost its slot; another is being bought"
	case s.Stage == message.StageAsked:
		return "asking " + u.Resource
	case s.Stage == message.StageStaging && s.Missing == 0:
		return "being prepared on " + u.Resource
	case s.Stage == message.StageStaging:
		return fmt.Sprintf("bringing inputs to %s, %d missing", u.Resource, s.Missing)
	case s.Stage == message.StageReady:
		return fmt.Sprintf("on %s, begins at %s", u.Resource, words.At(u.Slot.Start))
	case s.Job.State == protocol.JobExited:
		text = fmt.Sprintf("exited with %d", s.Job.Exit)
	case s.Job.State == protocol.JobExpired:
		text = "ended with its slot"
	}
	if s.Job.State.Over() {
		text += fmt.Sprintf(" after %s", s.Job.Usage.Wall.Round(1e6))
	}
	if s.Job.Note != "" {
		text += " (" + s.Job.Note + ")"
	}
	if s.Stage == message.StageCollecting && s.Why != "" {
		text += "; " + s.Why
	}
	return text
}

// Launchable refuses a program that does not fit into a launch message, such as one with
// too many arguments, before anything is bought for it.
func Launchable(id string, p *message.Program) error {
	if p == nil {
		return nil
	}
	l := message.Launch{
		Contract: protocol.ContractID(strings.Repeat("0", 64)), ID: id + "." + strconv.Itoa(protocol.MaxUnits),
		App: p.App, Params: p.Params, Place: message.Place{Number: protocol.MaxUnits, Units: protocol.MaxUnits},
	}
	for _, in := range p.Inputs {
		l.Inputs = append(l.Inputs, in.File)
	}
	site := protocol.AgentID("site@" + strings.Repeat("a", protocol.FingerprintLen)) // any
	for unit := range max(1, len(p.Commands)) {
		if l.Command = p.Of(unit); l.App == "" && len(l.Command) == 0 {
			return exit.Fail(exit.Usage, "", "the program of unit %d: want command or app", unit+1)
		}
		_, err := codec.Encode(protocol.Message{Performative: protocol.Request, Receivers: []protocol.AgentID{site}, Protocol: protocol.ProtocolRequest, Conversation: id, Body: l})
		if err != nil {
			return exit.Fail(exit.Usage, "", "the program does not fit into a launch message: %w", cmp.Or(errors.Unwrap(err), err))
		}
	}
	return nil
}

// inputsThere refuses an order whose inputs are gone: its program would fail in a slot that is paid.
func inputsThere(p *message.Program) error {
	if p == nil {
		return nil
	}
	for _, in := range p.Inputs {
		if _, err := os.Stat(in.Source); err != nil {
			return exit.Fail(exit.Usage, "order again with its files; nothing was bought", "input %s: %w", in.File.Path, err)
		}
	}
	return nil
}

package command

import (
	"log/slog"
	"testing"

	"ramp/protocol"
	"ramp/protocol/message"
)

// A log of decisions has each once, however often it is asked for.
func TestADecisionIsLoggedWhenItIsMade(t *testing.T) {
	settled := message.Decision{Outcome: protocol.OutcomeSettled}
	for name, c := range map[string]struct {
		in    bool
		m     protocol.Message
		level slog.Level
	}{
		"a bank answers who brought the last copy": {false, protocol.Message{Performative: protocol.Agree, InReplyTo: "copy", Body: settled}, slog.LevelInfo},
		"a bank tells the others":                  {false, protocol.Message{Performative: protocol.Inform, Body: settled}, slog.LevelInfo},
		"a bank is asked once more":                {false, protocol.Message{Performative: protocol.Inform, InReplyTo: "ended", Body: settled}, slog.LevelDebug},
		"a seller in doubt hears it":               {true, protocol.Message{Performative: protocol.Inform, InReplyTo: "doubt", Body: settled}, slog.LevelInfo},
	} {
		if level, what, _ := decisionOf(c.in, c.m); level != c.level || what != "settled" {
			t.Errorf("%s: %s at %s, want settled at %s", name, what, level, c.level)
		}
	}
}

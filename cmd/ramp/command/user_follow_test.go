package command_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"ramp/agents/user"
	"ramp/cmd/ramp/command"
	"ramp/protocol/message"
)

// A bank that does not say what it decided is not waited for without end.
func TestABankThatNeverDecidesEndsTheCommand(t *testing.T) {
	p := message.Purchase{ID: "p1", State: user.StateDeciding, Bank: "bank@a", Until: time.Now().Add(-29900 * time.Millisecond)}
	if code, err := command.Follow(t.Context(), 0, p); code != 5 || !strings.Contains(err.Error(), "bank has not said what it decided about p1") {
		t.Errorf("code %d: %v", code, err)
	}
	for name, c := range map[string]struct {
		wait  time.Duration
		state string
		until time.Time
	}{
		"the command tries for an hour": {time.Hour, user.StateDeciding, p.Until},
		"it may still decide":           {0, user.StateConfirming, time.Now()},
		"it is not asked yet":           {0, user.StateVoting, p.Until},
		"nobody knows until when":       {0, user.StateDeciding, time.Time{}},
	} {
		p.State, p.Until = c.state, c.until
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if code, err := command.Follow(ctx, c.wait, p); code == 5 || ctx.Err() == nil {
			t.Errorf("%s: code %d: %v", name, code, err)
		}
		cancel()
	}
}

package cli_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"ramp/cmd/ramp/cli"

	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

// A bank that does not say what it decided is not waited for without end.
func TestABankThatNeverDecidesEndsTheCommand(t *testing.T) {
	late := time.Now().Add(-29900 * time.Millisecond)
	p := message.Purchase{ID: "p1", State: user.StateDeciding, Bank: "bank@a", Until: late}
	if code, err := cli.Follow(t.Context(), late, 0, p); code != 5 || !strings.Contains(err.Error(), "bank has not reported its decision on p1") {
		t.Errorf("code %d: %v", code, err)
	}
	for name, c := range map[string]struct {
		begun time.Time
		wait  time.Duration
		state string
		until time.Time
	}{
		"the command tries for an hour": {late, time.Hour, user.StateDeciding, p.Until},
		"it may still decide":           {late, 0, user.StateConfirming, time.Now()},
		"it is not asked yet":           {late, 0, user.StateVoting, p.Until},
		"the command asks only now":     {time.Now(), 0, user.StateDeciding, time.Now().Add(-time.Hour)},
		"nobody knows until when":       {late, 0, user.StateDeciding, time.Time{}},
	} {
		p.State, p.Until = c.state, c.until
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if code, err := cli.Follow(ctx, c.begun, c.wait, p); code == 5 || ctx.Err() == nil {
			t.Errorf("%s: code %d: %v", name, code, err)
		}
		cancel()
	}
}

// A command that bids again says why the purchase so far was lost.
func TestALostPurchaseSaysWhy(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]message.Purchase{
		"others took the cores first":                    {State: user.StateFailed, Refused: protocol.CodeBusy},
		"the site holds no more for you at once":         {State: user.StateFailed, Refused: protocol.CodeHoldLimit},
		"the offer expired before every site had agreed": {State: user.StateFailed, Refused: protocol.CodeSettleBy},
		"the contract was not signed in time":            {State: user.StateVoid, Void: protocol.CodeSettleBy},
	} {
		p.ID = "p1"
		if got := cli.LostWords(t.Context(), p); !strings.HasPrefix(got, want+"; nothing ") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A daemon that ended resumes only what is signed; anything else was not bought.
func TestTheHintAfterADaemonEndsFitsTheState(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{
		"": "nothing was signed", user.StateBidding: "nothing was signed", user.StateApproval: "nothing was signed", user.StateVoting: "nothing was signed",
		user.StateConfirming: "the daemon resumes it", user.StateDeciding: "the daemon resumes it",
	} {
		if got := cli.GoneHint(state); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %q, want %q", state, got, want)
		}
	}
}

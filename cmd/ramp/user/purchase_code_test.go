package user_test

import (
	"testing"

	"ramp/cmd/ramp/user"

	agent "ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

// What policy or funds refuse ends with 4, and is not tried again; what the market did
// not give may come.
func TestHowAPurchaseEnds(t *testing.T) {
	for _, c := range []struct {
		state string
		void  protocol.Code
		found int
		code  int
		again bool
	}{
		{state: agent.StateSettled, found: 2, code: 0},
		{state: agent.StateVoid, void: protocol.CodeFunds, found: 2, code: 4},
		{state: agent.StateVoid, void: protocol.CodeAccount, found: 2, code: 4},
		{state: agent.StateVoid, void: protocol.CodeForbidden, found: 2, code: 4},
		{state: agent.StateVoid, void: protocol.CodeFrozen, found: 2, code: 4},
		{state: agent.StateVoid, void: protocol.CodeMode, found: 2, code: 4},
		{state: agent.StateVoid, void: protocol.CodeSettleBy, found: 2, code: 3, again: true},
		{state: agent.StateVoid, void: protocol.CodeAbandoned, found: 2, code: 3, again: true},
		{state: agent.StateFailed, found: 2, code: 3, again: true},
		{state: agent.StateFailed, found: 0, code: 5, again: true},
		{state: agent.StateCancelled, found: 2, code: 3},
	} {
		p := message.Purchase{State: c.state, Void: c.void, Found: c.found, Settled: c.state == agent.StateSettled}
		if code, again := user.PurchaseCode(p); code != c.code || again != c.again {
			t.Errorf("%s (%s) of %d found ends with %d, again %v; want %d, %v", c.state, c.void, c.found, code, again, c.code, c.again)
		}
	}
}

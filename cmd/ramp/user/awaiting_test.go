package user_test

import (
	"testing"

	"ramp/cmd/ramp/user"

	agent "ramp/agents/user"
	"ramp/protocol/message"
)

func TestACancellationEndsWithWhatBecameOfIt(t *testing.T) {
	units := func(states ...string) message.Purchase {
		p := message.Purchase{Settled: true}
		for i, s := range states {
			p.Units = append(p.Units, message.PurchasedUnit{Unit: i, State: s})
		}
		return p
	}
	for _, c := range []struct {
		name string
		p    message.Purchase
		unit int
		want int
	}{
		{"taken back", units(agent.StateCancelled, agent.StateCancelled), 0, 0},
		{"never settled", message.Purchase{Units: []message.PurchasedUnit{{State: "offered"}}}, 0, 0},
		{"refused", units(agent.StateCancelled, agent.StateSettled), 0, 4},
		{"not answered", units(agent.StateCancelled, agent.StateCancelling), 0, 5},
		{"one is not answered, one refused", units(agent.StateCancelling, agent.StateSettled), 0, 4},
		{"another unit is not answered", units(agent.StateCancelled, agent.StateCancelling), 1, 0},
	} {
		if got := user.CancelledCode(c.p, c.unit); got != c.want {
			t.Errorf("%s: it ends with %d, want %d", c.name, got, c.want)
		}
	}
}

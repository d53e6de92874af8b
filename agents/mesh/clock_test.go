package mesh_test

import (
	"context"
	"testing"
	"time"

	"ramp/agents/mesh"
)

func TestAnAgentKnowsHowTheClocksOfOthersStand(t *testing.T) {
	m := newMarket(t)
	fast := m.start("fast", func(c *mesh.Config) { c.Now = func() time.Time { return time.Now().Add(10 * time.Minute) } })
	a := m.joined("alice", fast)
	a.awaitKnown(fast.Self())
	fast.awaitKnown(a.Self())
	got := a.Clocks(context.Background())
	if len(got) != 1 || got[0].Agent != fast.Self() || (got[0].Ahead-10*time.Minute).Abs() > got[0].Within+time.Second {
		t.Errorf("clocks %+v, want one ten minutes ahead", got)
	}
	if got := fast.Clocks(context.Background()); len(got) != 1 || got[0].Ahead > -9*time.Minute {
		t.Errorf("from the other side: %+v", got)
	}
}

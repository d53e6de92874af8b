package federation_test

import (
	"testing"

	"ramp/agents/sim/federation"
)

// Only the ratio of an auction's length to the mean run time counts (003).
func TestLongerTimesChangeNothing(t *testing.T) {
	c := cast(t)
	p := federation.As003()
	p.Jobs = 60
	short := p.Run(c, never)
	p.Scale = 1024
	long := p.Run(c, never)
	for i := range short.Wait {
		if d := short.Wait[i] - long.Wait[i]; d > 1e-3 || d < -1e-3 || short.Wait[i] == 0 {
			t.Errorf("level %d waits %v, with times 1024 times as long %v", i, short.Wait[i], long.Wait[i])
		}
	}
	if short.Better != long.Better || len(short.Violations)+len(long.Violations) > 0 {
		t.Errorf("better bids %v and %v; %v %v", short.Better, long.Better, short.Violations, long.Violations)
	}
}

package user_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"ramp/agents/user"
)

// Beyond the bound of programs that nobody fetches, the oldest ones are given up.
func TestTheOldestOutputsAreGivenUp(t *testing.T) {
	_, most := user.OverRuns(time.Unix(0, 0), nil)
	var ids []string
	for i := range most + 3 {
		ids = append(ids, fmt.Sprintf("p%06d", i))
	}
	if kept, _ := user.OverRuns(time.Unix(0, 0), ids); !slices.Equal(kept, ids[3:]) {
		t.Errorf("%d programs are kept, want the last %d of %d", len(kept), most, len(ids))
	}
}

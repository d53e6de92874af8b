package bench

import (
	"testing"
	"time"
)

// A bank asks its store of a bundle that may be older than the outcomes in its memory, and
// here no store answers.
func TestWhatIsPreparedSettlesLaterThanWhatIsMadeMeanwhile(t *testing.T) {
	now := time.Now()
	k, err := newBenchKeys(2, now)
	if err != nil {
		t.Fatal(err)
	}
	prepared, made := k.draft(now, k.accounts[0], k.accounts[1], 1), k.bundle(now.Add(25*time.Minute)).Sale
	if !prepared.SettleBy.After(made.Bundle.SettleBy) {
		t.Errorf("what was prepared settles until %s, what was made 25 minutes later until %s", prepared.SettleBy, made.Bundle.SettleBy)
	}
}

package agents

import (
	"context"
	"time"
)

// Pause waits, and reports whether ctx was still alive at the end.
func Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

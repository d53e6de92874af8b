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

// Signal notes in a channel of capacity 1 that something has happened. A note that has not been
// taken yet stands for all.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

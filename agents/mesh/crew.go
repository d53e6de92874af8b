package mesh

import (
	"context"
	"sync"
	"time"
)

// crew is goroutines that someone waits for. Once disbanded it takes no more.
type crew struct {
	mu   sync.Mutex
	over bool
	wg   sync.WaitGroup
}

// run runs f in a goroutine of its own, and reports whether it did.
func (c *crew) run(f func()) bool {
	if !c.join() {
		return false
	}
	go func() {
		defer c.wg.Done()
		f()
	}()
	return true
}

// call runs f in the caller's goroutine.
func (c *crew) call(f func()) bool {
	if !c.join() {
		return false
	}
	defer c.wg.Done()
	f()
	return true
}

func (c *crew) join() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.wg.Add(1)
	}
	return !c.over
}

// disband returns when all are done.
func (c *crew) disband() {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.wg.Wait()
}

// pause waits, and reports whether ctx was still on at the end.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

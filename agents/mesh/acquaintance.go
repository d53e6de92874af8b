package mesh

import (
	"context"
	"sync"
	"time"

	"ramp/agents"
)

// Waits of an agent that joins.
const (
	// slowDial is how long an agent that is being met keeps its turn. Those behind a
	// firewall take seconds to fail, and must not delay the others.
	slowDial  = 250 * time.Millisecond
	quietLook = 10 * time.Millisecond // between two looks
	// Quiet is how long Acquainted waits for one more agent.
	Quiet = time.Second
)

// milestone is something that happens once. Its reach may be called several times.
type milestone struct {
	reached chan struct{}
	once    sync.Once
}

func (m *milestone) reach() { m.once.Do(func() { close(m.reached) }) }

// within waits until it has happened, at most for a time.
func (m *milestone) within(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case <-m.reached:
	case <-ctx.Done():
	}
}

// Acquainted waits like Joined, and then until this agent has met those that were
// introduced to it, or has met nobody more for Quiet, so that Send reaches the market:
// agents that do not answer may never do so.
func (m *Mesh) Acquainted(ctx context.Context) error {
	if err := m.Joined(ctx); err != nil {
		return err
	}
	for !isClosed(m.joining.followed.reached) {
		quiet := time.Until(time.Unix(0, m.joining.lastMet.Load()).Add(Quiet))
		if quiet <= 0 || isClosed(m.ep.life.draining) || !agents.Pause(ctx, min(quiet, quietLook)) {
			return nil
		}
	}
	return nil
}

package real

import (
	"context"
	"fmt"
	"time"

	"ramp/agents/control"
	"ramp/protocol/message"
)

const callTime = 15 * time.Second // for one call of a daemon

func (a *agent) dial() (*control.Client, error) {
	c, ok := control.Dial(a.disk.dir)
	if !ok {
		return nil, fmt.Errorf("%s does not answer", a.name)
	}
	return c, nil
}

// ask makes one call to an agent's daemon.
func ask[Q, A any](ctx context.Context, a *agent, call control.Endpoint[Q, A], q Q) (answer A, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	c, err := a.dial()
	if err != nil {
		return answer, err
	}
	if err := call.Ask(ctx, c, q, &answer); err != nil {
		return answer, fmt.Errorf("%s: %w", a.name, err)
	}
	return answer, nil
}

// buy orders a purchase from an agent's daemon and follows it to its end.
func (a *agent) buy(ctx context.Context, q control.BuyCall) (message.Purchase, error) {
	c, err := a.dial()
	if err != nil {
		return message.Purchase{}, err
	}
	last := control.ProgressLine{}
	err = control.Buy.Follow(ctx, c, q, func(l control.ProgressLine) error {
		last = l
		return nil
	})
	if err == nil && !last.Done {
		err = fmt.Errorf("the daemon stopped reporting it: %s", last.Error)
	}
	if err != nil {
		err = fmt.Errorf("%s: purchase %s: %w", a.name, q.ID, err)
	}
	return last.Purchase, err
}

// until calls done periodically until it succeeds, or the time or ctx is over.
func until(ctx context.Context, limit, pause time.Duration, done func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	t := time.NewTicker(pause)
	defer t.Stop()
	for {
		err := done()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", limit, err)
		case <-t.C:
		}
	}
}

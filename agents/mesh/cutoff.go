package mesh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"ramp/protocol/identity"
)

// ErrCutOff means that a peer closed the connection after it saw this agent's card,
// before it showed its own. Peers do so when they do not accept a certificate, and
// they give strangers no reason.
var ErrCutOff = errors.New("it answers, but rejects this agent's certificate")

// cutOff classifies an error of meeting a connected peer. A fault that this agent
// itself found, or an attempt that it gave up, stays as it is.
func cutOff(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || isFault(err) || isInvalid(err) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrCutOff, err)
}

// isInvalid reports whether an error is about an invalid certificate.
func isInvalid(err error) bool {
	return slices.ContainsFunc([]error{
		identity.ErrExpired, identity.ErrNotYetValid, identity.ErrRevoked, identity.ErrForeign, identity.ErrProxy,
		identity.ErrWeak, identity.ErrUsage, identity.ErrMalformed, identity.ErrMismatch,
	}, func(why error) bool { return errors.Is(err, why) })
}

// explains reports whether an error is about a certificate, this agent's or a peer's.
func explains(err error) bool { return errors.Is(err, ErrCutOff) || isInvalid(err) }

// noteFailure remembers why joining failed. A rejected certificate explains more than
// the silence that follows it, unless nobody listens at the address any more.
func (j *joining) noteFailure(err error) {
	gone := errors.Is(err, syscall.ECONNREFUSED)
	if last := j.failure.Load(); last != nil && explains(*last) && !explains(err) && !gone {
		return
	}
	j.failure.Store(&err)
}

// explain says why the agent has not joined in time.
func (j *joining) explain(late error) error {
	last := j.failure.Load()
	switch {
	case last != nil && explains(*last):
		return fmt.Errorf("no agent admits this one: %w (%w)", *last, late)
	case len(j.anchors) == 0:
		return fmt.Errorf("found no agent on this network: %w", late)
	case last == nil || errors.Is(*last, ErrNotThere):
		return notThere(j.ep.cfg.Bootstrap)
	}
	return fmt.Errorf("cannot join the market: %w; last attempt: %w", late, *last)
}

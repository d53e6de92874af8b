package mesh

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"ramp/protocol/identity"
)

// ErrCutOff is why an agent cannot join by an address at which somebody answers,
// and ends the talk before it has shown its card. Peers do that to those whose
// certificate does not count for them; they tell strangers no more.
var ErrCutOff = errors.New("it answers, and ends the talk at this agent's certificate")

// cutOff is an error of meeting a peer to which there is a connection. What this
// agent itself found against the peer, or gave up, stays what it is.
func cutOff(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || isFault(err) || judged(err) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrCutOff, err)
}

// judged reports whether a certificate was found not to count.
func judged(err error) bool {
	for _, why := range []error{
		identity.ErrExpired, identity.ErrNotYetValid, identity.ErrRevoked, identity.ErrForeign, identity.ErrProxy,
		identity.ErrWeak, identity.ErrUsage, identity.ErrMalformed, identity.ErrMismatch,
	} {
		if errors.Is(err, why) {
			return true
		}
	}
	return false
}

// noteJoin keeps why joining failed. That a certificate does not count, this
// agent's or the other's, says more than the silence that follows it, unless
// nobody is there any more.
func (m *Mesh) noteJoin(err error) {
	gone := errors.Is(err, syscall.ECONNREFUSED)
	if last := m.joinError.Load(); last != nil && telling(*last) && !telling(err) && !gone {
		return
	}
	m.joinError.Store(&err)
}

func telling(err error) bool { return errors.Is(err, ErrCutOff) || judged(err) }

// unjoined is why an agent has not joined in time.
func (m *Mesh) unjoined(late error) error {
	why := late
	if last := m.joinError.Load(); last != nil {
		if telling(*last) {
			return fmt.Errorf("nobody lets this agent in: %w (%w)", *last, late)
		}
		why = fmt.Errorf("%w; last try: %w", late, *last)
	}
	if len(m.anchors) == 0 {
		return fmt.Errorf("nobody was found on this network: %w", why)
	}
	return fmt.Errorf("none of the bootstrap addresses answers: %w", why)
}

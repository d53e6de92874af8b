package queue

import (
	"reflect"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Pace says when to poll a batch system: soon after a change, and less and less often
// while nothing happens or it does not answer.
type Pace struct {
	Least, Most time.Duration // between two polls
	rest        time.Duration
	failing     bool      // at the last poll
	at          time.Time // of the next look; zero: at once
}

// Due reports whether a poll is due.
func (p *Pace) Due(now time.Time) bool { return !now.Before(p.at) }

// Next is the time of the next poll.
func (p *Pace) Next() time.Time { return p.at }

// Looked notes a poll: whether something changed, or why it failed. It reports
// whether to inform the agent: of a change, the first failure, or the first success.
func (p *Pace) Looked(now time.Time, changed bool, err error) (news bool) {
	news = (err != nil) != p.failing || err == nil && changed
	p.failing = err != nil
	p.rest = min(max(2*p.rest, p.Least), p.Most)
	if news {
		p.rest = p.Least
	}
	p.at = now.Add(p.rest)
	return news
}

// Soon polls again after the least pause, since the agent changed something.
func (p *Pace) Soon(now time.Time) {
	p.rest = p.Least
	p.at = protocol.Earlier(p.at, now.Add(p.rest))
}

// Polled is the state of a batch system that is polled, at the last look.
type Polled struct {
	Pace  Pace
	Read  func(now time.Time) (message.QueueChanged, error)
	last  message.QueueChanged
	told  message.QueueChanged // in the last answer of State; none if it failed
	fresh bool                 // last is younger than the last change
}

// Changed notes that the agent changes something: the last state is out of date.
func (p *Polled) Changed(now time.Time) {
	p.fresh = false
	p.Pace.Soon(now)
}

// State reads the state, unless the last one is fresh.
func (p *Polled) State(now time.Time) (q message.QueueChanged, err error) {
	if q = p.last; !p.fresh || !q.At.Equal(now) {
		q, err = p.Look(now)
	}
	p.told = q
	return q, err
}

// Advance reads the state if a poll is due, and reports whether it has changed since State.
func (p *Polled) Advance(now time.Time) (changed bool, next time.Time) {
	if p.Pace.Due(now) {
		q, err := p.Look(now)
		changed = p.Pace.Looked(now, !Same(p.told, q), err)
	}
	return changed, p.Pace.Next()
}

// Look reads the state.
func (p *Polled) Look(now time.Time) (message.QueueChanged, error) {
	q, err := p.Read(now)
	if err == nil {
		p.last, p.fresh = q, true
	}
	return q, err
}

// Same reports whether two states differ at most in their time.
func Same(a, b message.QueueChanged) bool {
	a.At, b.At = time.Time{}, time.Time{}
	return reflect.DeepEqual(a, b)
}

// Outward rounds a slot to whole seconds, as batch systems count, so that it covers
// the requested slot.
func Outward(s protocol.Slot) protocol.Slot {
	start, end := s.Start.Truncate(time.Second), s.End.Truncate(time.Second)
	if end.Before(s.End) {
		end = end.Add(time.Second)
	}
	return protocol.Slot{Start: start.UTC(), End: end.UTC(), Cores: s.Cores, Nodes: s.Nodes}
}

// Equal reports whether a granted slot is the one wanted. Cores that fill whole nodes by
// chance are any cores.
func Equal(got, want protocol.Slot) bool {
	whole := want.Nodes == 0 || got.Nodes == want.Nodes
	return whole && got.Cores == want.Cores && got.Start.Equal(want.Start) && got.End.Equal(want.End)
}

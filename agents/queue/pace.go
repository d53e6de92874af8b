package queue

import (
	"reflect"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Pace is when to look at a batch system that tells nothing by itself: soon after
// a change, and less and less often while nothing happens or it does not answer.
type Pace struct {
	Least, Most time.Duration // between two looks
	rest        time.Duration
	failing     bool      // the last look failed
	at          time.Time // of the next look; zero: at once
}

// Due reports whether it is time to look.
func (p *Pace) Due(now time.Time) bool { return !now.Before(p.at) }

// Next is when to look.
func (p *Pace) Next() time.Time { return p.at }

// Looked notes a look: whether something had changed, or why it failed. It
// reports whether that is news: a change, the first failure, the first success.
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

// Soon looks again after the least rest, since something was changed.
func (p *Pace) Soon(now time.Time) {
	p.rest = p.Least
	p.at = protocol.Earlier(p.at, now.Add(p.rest))
}

// Same reports whether two states are the same, but for their time.
func Same(a, b message.QueueChanged) bool {
	a.At, b.At = time.Time{}, time.Time{}
	return reflect.DeepEqual(a, b)
}

// Outward rounds a slot to whole seconds, as batch systems count, so that it
// still covers what was asked.
func Outward(s protocol.Slot) protocol.Slot {
	start, end := s.Start.Truncate(time.Second), s.End.Truncate(time.Second)
	if end.Before(s.End) {
		end = end.Add(time.Second)
	}
	return protocol.Slot{Start: start.UTC(), End: end.UTC(), Cores: s.Cores}
}

// Equal reports whether two slots are the same.
func Equal(a, b protocol.Slot) bool {
	return a.Cores == b.Cores && a.Start.Equal(b.Start) && a.End.Equal(b.End)
}

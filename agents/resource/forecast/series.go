package forecast

// Bounds of a history.
const (
	// MaxHistory is the length of a history; new observations replace the oldest.
	MaxHistory = 1 << 14
	// LeastHistory is the least number of observations that bound the usual
	// quantile, and the number that survive a change.
	LeastHistory = 59
	// MaxValue bounds an observation: longer than any wait, in seconds. Observations
	// are clamped to 0..MaxValue.
	MaxValue = 1 << 40
)

// Series owns the observations of one kind since the last change.
//
//	steady --too many exceeded bounds in a row to be chance--> the last 59
type Series struct {
	recent  ring   // in order of observation
	order   sorted // the same by size
	memory  memory // of recent
	missed  int    // consecutive observations above the usual bound
	changes int    // since the beginning
}

// Len is the number of observations since the last change.
func (s *Series) Len() int { return s.order.size }

// Changes counts how often the past was dropped.
func (s *Series) Changes() int { return s.changes }

// Learn adds an observation. It first compares the observation with the current usual
// bound, to detect a change.
func (s *Series) Learn(x int64) {
	x = min(max(x, 0), MaxValue)
	if bound, ok := s.Bound(Usual()); ok && x > bound {
		s.missed++
	} else if ok {
		s.missed = 0
	}
	if s.Len() == MaxHistory {
		s.drop()
	}
	s.push(x)
	if s.missed >= leastRun && s.missed >= patience(s.memory.correlation()) {
		s.change()
	}
}

// change keeps the last LeastHistory observations.
func (s *Series) change() {
	for s.Len() > LeastHistory {
		s.drop()
	}
	s.missed = 0
	s.changes++
}

func (s *Series) push(x int64) {
	if last, ok := s.recent.last(); ok {
		s.memory.pairs += scaled(last) * scaled(x)
	}
	s.memory.add(x)
	s.recent.push(x)
	s.order.insert(x)
}

func (s *Series) drop() {
	oldest := s.recent.pop()
	s.memory.subtract(oldest)
	if next, ok := s.recent.first(); ok {
		s.memory.unfollow(oldest, next)
	}
	s.order.remove(oldest)
}

// Bound is the upper bound on the quantile; false after too few observations.
func (s *Series) Bound(l Level) (int64, bool) {
	k, ok := l.Rank(s.Len())
	if !ok {
		return 0, false
	}
	return s.order.at(k), true
}

// BoundAbove is Bound for values that are known to exceed x: only observations above x count.
func (s *Series) BoundAbove(x int64, l Level) (int64, bool) {
	below := s.order.upTo(x)
	k, ok := l.Rank(s.Len() - below)
	if !ok {
		return 0, false
	}
	return s.order.at(below + k), true
}

// Within is the probability, on the safe side, of x or less: the largest quantile whose
// bound with that confidence is at most x. It is false below LeastHistory observations.
func (s *Series) Within(x int64, confidence float64) (float64, bool) {
	if s.Len() < LeastHistory {
		return 0, false
	}
	return Covered(s.Len(), s.order.upTo(x), confidence), true
}

// WithinAbove is Within for values that are known to exceed low: only observations above low count.
func (s *Series) WithinAbove(low, x int64, confidence float64) (float64, bool) {
	below := s.order.upTo(low)
	n := s.Len() - below
	if n < LeastHistory {
		return 0, false
	}
	return Covered(n, max(s.order.upTo(x)-below, 0), confidence), true
}

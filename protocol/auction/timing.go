package auction

import (
	"slices"
	"time"

	"ramp/protocol"
)

// timingMemory is how many answer times enter the median, and timingSellers how many
// late sellers a Timing remembers.
const (
	timingMemory  = 64
	timingSellers = 1 << 15
)

// Timing measures, across auctions, how fast sellers answer. Rounds do not wait for a
// seller that was late until it has answered in time again.
type Timing struct {
	answers  []time.Duration // a ring of the last timingMemory
	next     int
	sorted   []time.Duration
	changed  bool          // new answers since the last Patience
	punctual time.Duration // result of the last Patience
	late     map[protocol.AgentID]bool
}

// NewTiming makes an empty Timing: every seller is due.
func NewTiming() *Timing {
	return &Timing{punctual: protocol.MinPatience, late: map[protocol.AgentID]bool{}}
}

// Answered notes that a seller answered after d. It was in time if d is within the
// patience at the call of the latest round.
func (t *Timing) Answered(id protocol.AgentID, d time.Duration) {
	if d <= t.punctual {
		delete(t.late, id)
	}
	t.changed = true
	if len(t.answers) < timingMemory {
		t.answers = append(t.answers, d)
	} else {
		t.answers[t.next] = d
		t.next = (t.next + 1) % timingMemory
	}
}

// Missed notes that a seller did not answer while a round waited for it.
func (t *Timing) Missed(id protocol.AgentID) {
	if len(t.late) < timingSellers {
		t.late[id] = true
	}
}

// Due reports whether a round waits for this seller.
func (t *Timing) Due(id protocol.AgentID) bool { return !t.late[id] }

// Patience is how long a called round waits: the larger of MinPatience and
// PatienceFactor times the median answer time.
func (t *Timing) Patience() time.Duration {
	if t.changed {
		t.changed = false
		t.sorted = append(t.sorted[:0], t.answers...)
		slices.Sort(t.sorted)
		t.punctual = max(protocol.MinPatience, protocol.PatienceFactor*t.sorted[len(t.sorted)/2])
	}
	return t.punctual
}

package message

import (
	"time"

	"ramp/protocol"
)

// Reserve asks the batch system to block a slot (local, request). ID is the
// reservation's, chosen by the role and carried as its mark.
type Reserve struct {
	ID   string
	Slot protocol.Slot
	// Over: also over jobs that run or wait, which the seller expects to be gone by then.
	// A batch system that cannot refuses.
	Over bool
}

// Keep asks that a reservation outlast the doubt, and reads it back (request).
type Keep struct {
	ID   string
	Slot protocol.Slot
}

// Release asks that a reservation go (request). A reservation that is not
// there counts as released.
type Release struct {
	ID string
}

// Reserved answers Reserve and Keep: OK with the slot as the batch system has
// it, or why not.
type Reserved struct {
	ID     string
	OK     bool
	Kept   bool // the answer to Keep
	Batch  string
	Slot   protocol.Slot
	Reason protocol.Reason
}

// Released answers Release.
type Released struct {
	ID     string
	OK     bool
	Reason protocol.Reason
}

// RunningJob occupies cores until, at the latest as the batch system knows, End.
type RunningJob struct {
	Cores int
	End   time.Time
	// What waits and run times are learnt from; a driver that cannot tell leaves ID
	// empty.
	ID        string // the batch system's, the same as while it waited
	Submitted time.Time
	Started   time.Time
	Wall      time.Duration // requested
}

// QueuedJob waits for cores for a wall time.
type QueuedJob struct {
	Cores     int
	Wall      time.Duration
	ID        string // the batch system's; empty: not told
	Submitted time.Time
}

// QueueChanged is the batch system as it is now (inform). Reservations with
// Mine bear this agent's mark; the others are as good as running jobs.
type QueueChanged struct {
	At           time.Time
	Capacity     int
	Running      []RunningJob
	Queued       []QueuedJob // in the order of the queue
	Reservations []QueueReservation
	// Foreseen is the cores that are free from At on, with everything above laid
	// in: spans in order, without gaps, the last of which holds for ever. A driver
	// that plays its queue forward itself tells it, and may leave Running and
	// Queued empty; without it the agent plays them forward.
	Foreseen []protocol.Span
	Runs     int           // jobs that run, and
	Waits    int           // jobs that wait, beside those that are listed
	Longest  time.Duration // that a job may last; 0: no bound
}

// QueueDown says that the batch system cannot be asked how it is (inform). What
// was told last may be wrong by now; what is promised stands. The next
// QueueChanged ends it.
type QueueDown struct {
	Since time.Time
	Why   string // one line for people
}

// QueueReservation is a reservation as the batch system lists it.
type QueueReservation struct {
	ID   string
	Slot protocol.Slot
	Mine bool
}

// Kind names the body; local bodies are never on the wire.
func (Reserve) Kind() string      { return "local-reserve" }
func (Keep) Kind() string         { return "local-keep" }
func (Release) Kind() string      { return "local-release" }
func (Reserved) Kind() string     { return "local-reserved" }
func (Released) Kind() string     { return "local-released" }
func (QueueChanged) Kind() string { return "local-queue-changed" }
func (QueueDown) Kind() string    { return "local-queue-down" }

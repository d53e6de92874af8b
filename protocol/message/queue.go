package message

import (
	"time"

	"ramp/protocol"
)

// Reserve asks the batch system to reserve a slot (local, request). The role chooses
// the ID, which marks the reservation.
type Reserve struct {
	ID   string
	Slot protocol.Slot
	// Over allows the slot to overlap jobs that run or wait: the seller expects them to
	// end before it starts. A batch system that cannot do this refuses.
	Over bool
	// Again: the batch system has lost the reservation.
	Again bool
}

// Keep asks for a reservation to last while the outcome of the commit is in doubt, and
// reads it back (request).
type Keep struct {
	ID   string
	Slot protocol.Slot
}

// Release removes a reservation (request). A missing reservation counts as released.
type Release struct {
	ID string
}

// Reserved answers Reserve and Keep: OK with the slot in the batch system, or a Reason.
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

// RunningJob occupies cores until End at the latest.
type RunningJob struct {
	Cores int
	End   time.Time
	// For learning wait and run times. A driver that does not know them leaves ID empty.
	ID        string // the batch system's, unchanged since submission
	Submitted time.Time
	Started   time.Time
	Wall      time.Duration // requested
}

// QueuedJob waits for cores for a wall time.
type QueuedJob struct {
	Cores     int
	Wall      time.Duration
	ID        string // the batch system's; empty: unknown
	Submitted time.Time
}

// QueueChanged is the state of the batch system (inform). Reservations with Mine are
// this agent's; the others count like running jobs.
type QueueChanged struct {
	At           time.Time
	Capacity     int
	Running      []RunningJob
	Queued       []QueuedJob // in the order of the queue
	Reservations []QueueReservation
	// Foreseen is the number of free cores from At on, with everything above scheduled: spans in
	// order, without gaps; the last one has no end. A driver that simulates its own queue sets it
	// and may leave Running and Queued empty. Otherwise the agent simulates them.
	Foreseen []protocol.Span
	Runs     int           // running jobs
	Waits    int           // waiting jobs; both in addition to those listed
	Longest  time.Duration // longest wall time of a job; 0: no bound
	// NodeCores are the cores of each node that can be reserved whole; 0: none can. Whole
	// is how many such nodes are free from At on, with Running and Reservations on theirs:
	// spans in order, without gaps; the last one has no end.
	NodeCores int
	Whole     []protocol.Span
}

// QueueDown reports that the batch system does not answer (inform). The last known
// state may be outdated; promises remain valid. The next QueueChanged ends it.
type QueueDown struct {
	Since time.Time
	Why   string // one line for people
}

// QueueReservation is a reservation in the batch system.
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

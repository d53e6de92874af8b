package message

import (
	"time"

	"ramp/protocol"
)

// SlotQuery asks the batch system how a reservation's cores were used (local,
// request). The answer is SlotUsed.
type SlotQuery struct {
	ID   string
	Slot protocol.Slot // as sold: batch systems forget reservations that have ended
}

// SlotUsed reports on the jobs of a reservation (inform), on request and, if the
// batch system can, when they have stopped. A final status never changes.
type SlotUsed struct {
	ID     string
	At     time.Time
	Status protocol.JobStatus

	Measured protocol.Measured // source of the usage in Status
}

// Kind names the body; local bodies are never on the wire.
func (SlotQuery) Kind() string { return "local-slot-query" }
func (SlotUsed) Kind() string  { return "local-slot-used" }

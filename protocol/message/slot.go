package message

import (
	"time"

	"ramp/protocol"
)

// SlotQuery asks the batch system what became of a reservation's cores (local,
// request). The answer is SlotUsed.
type SlotQuery struct {
	ID   string
	Slot protocol.Slot // as it was sold: a batch system may have forgotten it, once it is over
}

// SlotUsed says how it stands with what ran in a reservation (inform), when asked
// and, if the batch system can, when it has stopped. Once the status is over it
// never changes.
type SlotUsed struct {
	ID     string
	At     time.Time
	Status protocol.JobStatus

	Measured protocol.Measured // what the usage in Status rests on
}

// Kind names the body; local bodies are never on the wire.
func (SlotQuery) Kind() string { return "local-slot-query" }
func (SlotUsed) Kind() string  { return "local-slot-used" }

package protocol

import "time"

// Sold is what one seller promised in one settled contract.
type Sold struct {
	Contract     ContractID
	User         AgentID
	Conversation string
	Ends         time.Time // the end of its last slot, including units that have ended
	Units        []SoldUnit
}

// SoldUnit is one reservation of a Sold contract.
type SoldUnit struct {
	Unit        int
	Reservation string
	Slot        Slot
}

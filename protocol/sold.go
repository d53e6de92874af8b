package protocol

import "time"

// Sold is what one seller promised in one settled contract.
type Sold struct {
	Contract     ContractID
	User         AgentID
	Conversation string
	Ends         time.Time // the last of its slots, of units that are over too
	Units        []SoldUnit
}

// SoldUnit is one reservation of it.
type SoldUnit struct {
	Unit        int
	Reservation string
	Slot        Slot
}

package reserve

import (
	"fmt"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
)

// Notary signs as the seller, deterministically: now is the signing time.
type Notary interface {
	Countersign(v contract.Verified, now time.Time) (contract.Sale, error)
	Refund(r contract.Refund, now time.Time) (contract.VerifiedNote[contract.Refund], error)
	Job(r contract.JobRecord, now time.Time) (contract.VerifiedNote[contract.JobRecord], error)
}

// Book records promised slots, so that the seller does not offer them to the next buyer.
type Book interface {
	// Room is the number of cores free over a slot; of one with nodes, on whole nodes alone.
	Room(slot protocol.Slot) int
	Add(id string, slot protocol.Slot)
	Remove(id string)
}

// ParticipantConfig holds the seller's identity, terms and limits.
type ParticipantConfig struct {
	Self   protocol.AgentID
	Terms  []protocol.Terms
	Modes  []protocol.Mode
	Notary Notary
	Book   Book
	Hold   time.Duration // longest time for which a vote holds a slot
	// Limits for one buyer that holds units without buying them.
	BuyerHolds    int // units at once, 1..MaxUnsold
	BuyerReserves int // units at once that the batch system has not granted yet, 1..MaxUnsold
	// BuyerCoreSeconds is the allowance: core-seconds of slots, each held for DefaultHold.
	// Beyond it a buyer must show a voucher. 1..2⁶⁰
	BuyerCoreSeconds int64
	Cancellation     CancelPolicy
	// TrustJournal skips the inquiry at the banks at the start, because the journal is
	// known to be complete.
	TrustJournal bool
}

// CancelPolicy controls whether a buyer may return a settled unit.
type CancelPolicy struct {
	Allowed     bool
	Before      time.Duration // least time before the slot's start
	FeePerMille int           // share of the cost that the seller keeps, 0..1000
}

// Bounds of a Participant.
const (
	MaxUnsold = 4096 // claims reserving, held or countersigned at once; the seller refuses more with limit
	MaxHold   = 10 * time.Minute
	Retention = 24 * time.Hour // how long the seller answers questions about an ended unit
)

// Validate names the first invalid field and the allowed values.
func (c ParticipantConfig) Validate() error {
	switch {
	case len(c.Terms) == 0:
		return fmt.Errorf("terms: want at least one bank and currency")
	case len(c.Modes) == 0:
		return fmt.Errorf("modes: want at least one settlement mode")
	case c.Hold < 2*protocol.ClockSkew || c.Hold > MaxHold:
		return fmt.Errorf("hold %s: want %s..%s", c.Hold, 2*protocol.ClockSkew, MaxHold)
	case c.BuyerHolds < 1 || c.BuyerHolds > MaxUnsold:
		return fmt.Errorf("holds per buyer %d: want 1..%d", c.BuyerHolds, MaxUnsold)
	case c.BuyerReserves < 1 || c.BuyerReserves > MaxUnsold:
		return fmt.Errorf("reservations asked for per buyer %d: want 1..%d", c.BuyerReserves, MaxUnsold)
	case c.BuyerCoreSeconds < 1 || c.BuyerCoreSeconds > maxCoreSeconds:
		return fmt.Errorf("core-seconds per buyer %d: want 1..%d", c.BuyerCoreSeconds, int64(maxCoreSeconds))
	case c.Cancellation.Before < 0:
		return fmt.Errorf("cancellation until %s before the start: want 0 or more", c.Cancellation.Before)
	case c.Cancellation.FeePerMille < 0 || c.Cancellation.FeePerMille > 1000:
		return fmt.Errorf("cancellation fee %d per mille: want 0..1000", c.Cancellation.FeePerMille)
	}
	return nil
}

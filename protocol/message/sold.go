package message

import (
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
)

// SoldQuery asks a bank which settled contracts name the sender as a seller
// (query-ref): those whose last slot of the sender ends at Ends or later, in order of
// that end, then of settlement; with After, only those behind that contract.
type SoldQuery struct {
	Ends  time.Time
	After protocol.ContractID
}

// SoldList answers SoldQuery (inform). More means that further contracts follow.
// Complete means that the bank has kept this index since its first entry, not only
// since an upgrade from an older program.
type SoldList struct {
	Sold     []protocol.Sold // with their units that are neither refunded nor ended
	More     bool
	Complete bool
}

// MaxSold bounds the contracts of one SoldList.
const MaxSold = 1024

// BundleQuery asks a user for a contract that it has signed (query-ref, from a
// seller of the contract).
type BundleQuery struct {
	Contract protocol.ContractID
}

// BundleCopy answers BundleQuery (inform).
type BundleCopy struct {
	Bundle contract.Verified
}

// SoldLookup is a SoldQuery on its way to the store (local, to LocalHistory),
// which answers with a SoldList.
type SoldLookup struct {
	Seller protocol.AgentID
	Query  SoldQuery
}

// Kind is the name on the wire.
func (SoldQuery) Kind() string   { return "sold-query" }
func (SoldList) Kind() string    { return "sold-list" }
func (BundleQuery) Kind() string { return "bundle-query" }
func (BundleCopy) Kind() string  { return "bundle-copy" }

// Kind names the body; local bodies are never on the wire.
func (SoldLookup) Kind() string { return "local-sold-lookup" }

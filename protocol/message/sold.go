package message

import (
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
)

// SoldQuery asks a bank which settled contracts name the sender as a seller
// (query-ref): those whose last slot there ends at Ends or later, in order of
// that, then of when they were settled; with After, those behind that contract.
type SoldQuery struct {
	Ends  time.Time
	After protocol.ContractID
}

// SoldList answers SoldQuery (inform). More means that others follow the last
// one. Complete means that the bank has such lists since its first entry; one of
// an older program has them since it was renewed.
type SoldList struct {
	Sold     []protocol.Sold // with the units that are neither refunded nor ended
	More     bool
	Complete bool
}

// MaxSold bounds the contracts of one SoldList.
const MaxSold = 1024

// BundleQuery asks a user for a contract that it has signed (query-ref, from a
// seller that the contract names).
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

// Kind is the word on the wire.
func (SoldQuery) Kind() string   { return "sold-query" }
func (SoldList) Kind() string    { return "sold-list" }
func (BundleQuery) Kind() string { return "bundle-query" }
func (BundleCopy) Kind() string  { return "bundle-copy" }

// Kind names the body; local bodies are never on the wire.
func (SoldLookup) Kind() string { return "local-sold-lookup" }

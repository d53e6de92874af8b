package message

import (
	"time"

	"ramp/protocol"
)

// Bounds of the messages to and from an index.
const (
	MaxRecord       = 2 << 10 // bytes of a signed record; 0.8 KiB with a P-256 certificate
	MaxRecords      = 64      // in one message
	MaxRows         = 256     // in one answer
	MaxLoad         = 7       // the class of a machine that is full, or nearly
	MaxClass        = 9       // of a machine's size
	MaxShardBits    = 16
	MaxCensus       = 256
	MaxDigest       = 512
	MaxIndexSellers = 1 << 30
)

// Record is a seller's entry in an index, which the seller has signed. It is valid
// without regard to who brings it.
type Record struct {
	Seller   protocol.AgentID // certified by the signer's chain
	Issuer   string           // names the authority that certified it
	Issued   time.Time
	Load     int      // eighths of the machine that are allocated, rounded down: 0..MaxLoad
	Presence Presence // its addresses include those through relays; TTL zero: the record is withdrawn
	Signed   []byte   // as received
}

// Records brings records to an index (request), or to a buyer that asked for them
// (inform). Those whose signature or certificate is not valid are left out on receipt.
type Records struct {
	List []Record
}

// Shard is a part of an index: the sellers that accept the terms, whose machines have from 4^Class
// up to 4^(Class+1) cores, and whose fingerprints begin with the lowest Bits bits of Prefix.
type Shard struct {
	Terms  protocol.Terms
	Class  int
	Bits   int
	Prefix int
}

// IndexQuery asks for some rows of a shard; without Terms, for the census only (query-ref).
type IndexQuery struct {
	Shard   Shard
	Modes   []protocol.Mode  // one of these must be accepted; empty: any
	Cores   int              // that the machine must have
	Ceiling protocol.Credits // per core-hour, which the minimum must not exceed; 0: none
	Want    int              // 0..MaxRows
	Salt    uint64           // by which servers of the last version draw rows
}

// IndexRow is the part of a record by which a buyer chooses. It proves nothing.
type IndexRow struct {
	Seller     string // its fingerprint
	Start, Min protocol.Credits
	Cores      int
	Load       int
}

// Census is the number of sellers in a shard or in a whole class.
type Census struct {
	Shard Shard
	Count int
}

// IndexRows answers a query (inform) and accepts records (agree).
type IndexRows struct {
	Rows   []IndexRow
	Census []Census
}

// IndexFetch asks for the records of sellers (query-ref).
type IndexFetch struct {
	Sellers []string // fingerprints
}

// IndexDigest tells the other indexes what each shard holds (inform).
type IndexDigest struct {
	Shards []Census
}

// Kind is the name on the wire.
func (Records) Kind() string     { return "records" }
func (IndexQuery) Kind() string  { return "index-query" }
func (IndexRows) Kind() string   { return "index-rows" }
func (IndexFetch) Kind() string  { return "index-fetch" }
func (IndexDigest) Kind() string { return "index-digest" }

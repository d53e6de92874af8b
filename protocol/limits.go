package protocol

import "time"

// The bounds of every list, queue, message and wait.
const (
	MaxMessage      = 2 << 20   // bytes of one encoded message; an RFQL document may take 1 MiB of it
	MaxDocument     = 1 << 20   // bytes of one RFQL document
	MaxUnits        = 256       // requests in a document, legs of a bundle
	MaxCores        = 1 << 30   // cores of a slot
	MaxReceivers    = 64        // of one message
	MaxOffers       = 1024      // in one propose
	MaxGroups       = 16        // offers of one seller that include the same unit; a buyer ignores further ones
	MaxSpans        = 4096      // of joint capacity in one propose
	MaxReasons      = 512       // in one refuse
	MaxHints        = 2         // in one reason
	MaxSignature    = 1 << 20   // bytes of one CMS SignedData
	MaxConversation = 128       // bytes of a conversation-id
	MaxReservation  = 128       // bytes of a reservation's name
	MaxGossipless   = 64        // sellers called over direct streams; more are called by gossip
	MaxItems        = 1 << 15   // in all offers of one propose
	MaxTerms        = 64        // banks and currencies in one presence or cfp
	MaxModes        = 8         // settlement modes in one presence or cfp
	MaxAddresses    = 32        // in one presence
	MaxAccounts     = 256       // in one answer of a bank
	MaxRounds       = 100       // of an auction
	MaxName         = 128       // bytes of a reply-with, an offer's ID, a group, a reservation's ID
	MaxWords        = 1024      // bytes of a text for people; longer ones are clipped
	MaxBuyerClaims  = 4096      // units that a seller remembers of one buyer and that are not sold
	MaxBuyerKept    = 4 << 20   // bytes that it keeps of these units and their contracts
	MaxKept         = 64 << 20  // of all buyers
	MaxBuyerVoids   = 1 << 20   // bytes that a seller keeps of one buyer's void contracts
	MaxVoids        = 32 << 20  // of all void contracts
	MaxPast         = 256 << 20 // of finished deals
)

// Times and trust. Each is a default that configuration may change.
const (
	DefaultRounds     = 3                // 002 §8
	MostRounds        = 16               // of an auction that goes on until nobody improves
	DefaultRoundLimit = 15 * time.Second // 002 §10
	MinPatience       = time.Second      // a slow garbage collection must not lose a round
	PatienceFactor    = 4                // of the median answer time
	DefaultHold       = 60 * time.Second // how long a vote holds a slot before it is confirmed
	DefaultSettle     = 30 * time.Second // from the vote to the bank's deadline
	MaxSettleAhead    = time.Hour        // a bank refuses later deadlines
	ClockSkew         = 5 * time.Second  // between honest clocks
	OfferValidity     = 10 * time.Minute // how long a bid is valid
	HeartbeatPeriod   = 10 * time.Second // between presences
	PresenceTTL       = 35 * time.Second // three lost heartbeats and a little more
	MaxTTL            = time.Hour        // an agent that left is forgotten after this
	VoteTimeout       = 10 * time.Second // for one answer to accept-proposal
	VotePatience      = 2 * time.Second  // then the seller's runners-up are asked too
	CopyTimeout       = 10 * time.Second // for a seller's copy after the bank has settled
	RetryFirst        = 500 * time.Millisecond
	RetryMost         = 30 * time.Second // back-off of a seller in doubt
	ReportWithin      = 24 * time.Hour   // from a slot's end to its seller's report; without one nothing is paid
	DisputeWithin     = time.Hour        // from a usage record to its user's dispute; without one it is paid
	QuoteValidity     = time.Minute      // of a rate of exchange
	MaxVoucherAhead   = 2 * MaxSettleAhead
	OutcomeMemory     = 24 * time.Hour // how long a bank keeps outcomes in memory
	// OrderMemory is how long at least a bank remembers an order under its key, and an exchange
	// under its quote's ID: a weekend and a day. After it, the same key means a new order.
	OrderMemory = 72 * time.Hour
)

package mesh

import "time"

// Bounds of direct streams.
const (
	// MaxCard bounds a certificate chain with addresses: ten times a usual chain
	// of two P-256 certificates.
	MaxCard = 32 << 10
	// MaxAddresses of one agent: a machine with a few interfaces, both IP versions.
	MaxAddresses = 8
	maxAddress   = 200 // bytes of one: MaxIntroductions with MaxAddresses each fit in maxIntroBytes
	// QueueLength bounds the messages waiting for one peer; further ones are reported as
	// undeliverable. An auction of 16 concurrent requests has 16 in flight.
	QueueLength = 1024
	// MaxBatch bounds the waiting messages that share one flush.
	MaxBatch = 64
	// MaxLinks bounds the peers that this agent writes to at once.
	MaxLinks = 2 * MaxConnections
	// FailureQueue bounds the failures that wait for the role. Further ones are only
	// counted; the role's own deadlines cover them.
	FailureQueue = 4096
	// bufferSize of a stream's reader and writer: a round of answers in one read.
	bufferSize  = 16 << 10
	smallBuffer = 4 << 10 // of streams that carry little
)

// Waits.
const (
	DialTimeout  = 3 * time.Second  // to connect, secure, identify and open a stream
	HelloTimeout = 20 * time.Second // for a peer to show its credential; it may be starting on a busy machine
	MeetTimeout  = 15 * time.Second // like DialTimeout, for agents that no message waits for
	WriteTimeout = 10 * time.Second // for a flush, and at least half of it; a peer that reads nothing is lost
	LinkIdle     = 10 * time.Minute // an unused stream is closed after this, or twice as long
	// replaceGrace is how long a stream is still read after a newer one replaces it.
	replaceGrace = time.Second
	CloseTimeout = 2 * time.Second // for queues to empty when the mesh closes
	// The back-off after a failed dial. The maximum is short, so that a restarted bank is
	// found soon.
	RedialFirst = 50 * time.Millisecond
	RedialMost  = 2 * time.Second
	// The back-off of joining, which goes on for as long as the agent lives.
	RejoinFirst  = 100 * time.Millisecond
	RejoinMost   = 5 * time.Second
	RejoinPeriod = time.Minute     // between introductions once everybody is met
	VisitPeriod  = 5 * time.Minute // the same for visitors, and between their returns after a loss
	// CutOff is the ban of a peer that exceeded a limit or showed an invalid credential;
	// Silence, of one that showed none and may just be slow.
	CutOff  = 30 * time.Second
	Silence = time.Second
	// HearerGrace is how long after its first presence a seller gets calls directly as
	// well as by gossip. A busy machine takes a second to build the topics.
	HearerGrace = 5 * time.Second
	// watchPeriod is how often the credentials of connected peers are verified.
	watchPeriod = 5 * time.Second
)

// Bounds of connections (the resource manager) and tables.
const (
	SellerMost     = 2 * sellerKeeps  // connections of a seller, before it closes unused ones
	IdleStays      = 30 * time.Second // until an unused connection is closed
	MaxConnections = 1024             // 1,000 agents of a market, each directly
	maxHalfOpen    = 256              // inbound connections that are not secured yet
	halfOpenAtOnce = 2 * maxHalfOpen  // with those that are being dropped
	maxStrangers   = 64               // secured ones without a credential
	handshakeTime  = 20 * time.Second // by when the library has secured a connection or given it up
	strangerTenure = time.Second      // in which others of the same network do not displace one
	maxLosers      = 4096             // strangers remembered because they lost their place
	maxTrusted     = 1024             // networks of known agents that are remembered
	strangersLog   = time.Minute      // between two log lines about dropped strangers
	strangersNamed = 16               // lines about single ones before that
	lowWater       = 800              // to which the connection manager trims ...
	highWater      = 960              // ... from here, those of the lowest value first
	trimGrace      = 20 * time.Second
	visitorKeeps   = 8  // connections of a visitor, beside those that it uses
	sellerKeeps    = 32 // the same of a seller, which closes some from SellerMost
	// maxPerAddress bounds the connections of one IP address. The library's 8, and its rate of one
	// in five seconds, would keep out a site with many agents behind one address.
	maxPerAddress     = 512
	newPerAddress     = 64  // new connections per second from one address
	newPerAddressMost = 512 // ... and at once, when a site starts
	maxPerPeer        = 8   // connections: two agents that dial each other, directly and through relays, and a restart
	streamsPerPeer    = 32  // inbound: gossip, identify, and ours, each replaced once
	streamsPerKind    = 4   // inbound, of one protocol and peer
	filesPerPeer      = 16  // exchanges of files; following a job uses one
	enrolPerPeer      = 2   // applications, each waiting with up to MaxEnrol bytes
	maxStreams        = 16 * MaxConnections
	maxMemory         = 1 << 30 // of stream buffers, all peers
	peerMemory        = 64 << 20
	// A stranger needs one stream to show its credential, beside one of identify. The
	// memory of all strangers together is a small part of maxMemory.
	streamsPerStranger = 2
	strangerMemory     = 2 << 20
	strangerRefusals   = 8 // streams refused to a stranger before it is cut off
	maxFiles           = 2 * MaxConnections
	maxBanned          = 4096 // peers cut off at once
	// MaxContacts bounds the contacts. A full table forgets the one that has been silent
	// the longest and is not connected.
	MaxContacts = 4096
	// MaxIntroductions bounds the agents in one answer, and the connections that an agent
	// opens on its own to join.
	MaxIntroductions = 256
	maxIntroBytes    = 512 << 10
	// meetingsAtOnce bounds the agents that are being met, besides those that do not answer.
	meetingsAtOnce = 32
	maxBootstrap   = 32
)

// Bounds of gossip. The library's queue of 32 per peer drops two thirds of a burst.
const (
	gossipQueue    = 1024            // RPCs waiting per peer
	publishQueue   = 256             // own messages waiting to be published
	validateQueue  = 256             // arrived, waiting for a validator
	hearQueue      = 1024            // valid, waiting for the role; further ones are dropped
	gossipOverhead = 4096            // of an RPC around one message
	meshDegree     = 4               // neighbours that a message is passed on to at once
	lazyDegree     = 3               // others that get a list of recent messages now and then, or ...
	lazyShare      = 0.05            // ... this share of them; a bank tells six at least
	lazyBeats      = 2               // beats whose messages are in a list; a bank's: three
	gossipBeat     = 3 * time.Second // between two such lists
	visitorBeat    = 5 * time.Second // the same of a visitor
	unwantedFrom   = 4 << 10         // bytes of a message that other neighbours are asked not to send as well: not a presence
	maxPresence    = 2 << 10         // bytes of a gossiped presence
	maxCall        = 64 << 10        // bytes of a gossiped call for proposals
	// staleAfter is how long a presence may be on its way, and by how much clocks may
	// differ, before it is dropped.
	staleAfter   = 30 * time.Second
	staleLog     = time.Hour // between two log lines about the clock of one agent
	replayWindow = 256       // messages of one author that may overtake each other
)

// Rate is an allowance: Burst at once, PerSecond in the long run.
type Rate struct {
	PerSecond float64
	Burst     float64
}

// What an agent uses of its allowance, and how long it waits for more. Messages of half a second
// may arrive at once, when the other side or this one did not get to run.
const (
	pacedRate  = 0.9
	pacedBurst = 0.5
	paceTick   = 2 * time.Millisecond
)

// Limits are the allowances of one peer. A peer that exceeds one is cut off for CutOff;
// gossip beyond its author's allowance is only dropped.
type Limits struct {
	Messages Rate // direct messages
	Bytes    Rate // of direct messages
	Streams  Rate // that the peer opens
	Faults   Rate // messages that cannot be understood, invalid gossip
	Gossip   Rate // messages of one author, per topic
	Load     Rate // bytes of these
}

// DefaultLimits are above an auction's needs: 16 concurrent auctions of five rounds exchange
// 1,000 messages of 300 bytes per second with each peer, on a fast machine four times as many.
func DefaultLimits() Limits {
	return Limits{
		Messages: Rate{PerSecond: 8000, Burst: 8000},
		Bytes:    Rate{PerSecond: 32 << 20, Burst: 64 << 20},
		Streams:  Rate{PerSecond: 16, Burst: 256}, // a user may run each command in a process of its own
		Faults:   Rate{PerSecond: 1, Burst: 32},
		Gossip:   Rate{PerSecond: 32, Burst: 128},
		Load:     Rate{PerSecond: 256 << 10, Burst: 4 << 20},
	}
}

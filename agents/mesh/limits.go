package mesh

import "time"

// Bounds of direct streams.
const (
	// MaxCard bounds a certificate chain with addresses: ten times a usual chain
	// of two P-256 certificates.
	MaxCard = 32 << 10
	// MaxAddresses of one agent: a machine with a few interfaces, both IP versions.
	MaxAddresses = 8
	// QueueLength is how many messages wait for one peer; one more is reported as
	// undeliverable. An auction of 16 concurrent requests has 16 in flight.
	QueueLength = 1024
	// MaxBatch is how many waiting messages share one flush.
	MaxBatch = 64
	// MaxLinks is how many peers are written to at once.
	MaxLinks = 2 * MaxConnections
	// FailureQueue is how many undeliverable messages wait for the role to hear of
	// them; further ones are only counted, and the role's own deadlines stand.
	FailureQueue = 4096
	// bufferSize of a stream's reader and writer: a round of answers in one read.
	bufferSize  = 16 << 10
	smallBuffer = 4 << 10 // of streams that carry little
	// trustedLength is how much of a frame is allocated on its announcement alone;
	// the rest grows with what arrives.
	trustedLength = 64 << 10
)

// Waits.
const (
	DialTimeout  = 3 * time.Second  // to connect, secure, identify and open a stream
	HelloTimeout = 20 * time.Second // for a peer to show its credential; it may be a busy machine that starts
	MeetTimeout  = 15 * time.Second // to connect to an agent that nobody waits for, as DialTimeout
	FrameTimeout = 30 * time.Second // for the rest of a frame that has begun
	WriteTimeout = 10 * time.Second // for a flush, half of it at least; a peer that reads nothing is lost
	LinkIdle     = 10 * time.Minute // after which, or twice that, an unused stream is closed
	// replaceGrace is how long a stream that a newer one replaces may still be read
	// to its end.
	replaceGrace = time.Second
	CloseTimeout = 2 * time.Second // for queues to empty when the mesh closes
	// A dial that failed is not tried again at once; the most is short because a
	// restarted bank should be found within it.
	RedialFirst = 50 * time.Millisecond
	RedialMost  = 2 * time.Second
	// An address to join by is tried for as long as the agent lives.
	RejoinFirst  = 100 * time.Millisecond
	RejoinMost   = 5 * time.Second
	RejoinPeriod = time.Minute // between introductions while connected and all met
	// CutOff is how long a peer stays away that broke a bound or showed a credential
	// that does not count; Silence, one that showed none, which may just be slow.
	CutOff  = 30 * time.Second
	Silence = time.Second
	// HearerGrace is how long after a seller's first presence it is called directly
	// beside a call by gossip. A busy machine takes a second to build the topics.
	HearerGrace = 5 * time.Second
	// watchPeriod is how often connections are checked for a credential that is
	// still valid.
	watchPeriod = 2 * time.Second
)

// Bounds of connections (the resource manager) and tables.
const (
	MaxConnections = 1024 // 1,000 agents of a market, each directly
	lowWater       = 800  // to which the connection manager trims ...
	highWater      = 960  // ... from here, those of least use first
	trimGrace      = 20 * time.Second
	// maxPerAddress is how many connections one IP address may have. The
	// library's 8 (and its rate of one in five seconds) would keep out a site that
	// runs many agents behind one address.
	maxPerAddress     = 512
	newPerAddress     = 64  // new connections per second from one address
	newPerAddressMost = 512 // ... and at once: a site that starts
	maxPerPeer        = 4   // connections: two that dial each other, and a restart
	streamsPerPeer    = 32  // inbound: gossip, identify, and ours, each replaced once
	streamsPerKind    = 4   // inbound, of one protocol and peer
	filesPerPeer      = 16  // exchanges of files: a job that is followed keeps one
	maxStreams        = 16 * MaxConnections
	maxMemory         = 1 << 30 // of stream buffers, all peers
	peerMemory        = 64 << 20
	maxFiles          = 2 * MaxConnections
	maxBanned         = 4096 // peers cut off at once
	// MaxContacts is how many agents are remembered; beyond, the one that was
	// silent the longest and is not connected is forgotten.
	MaxContacts = 4096
	// MaxIntroductions is how many agents one answer names, and how many
	// connections an agent makes on its own to join.
	MaxIntroductions = 256
	maxIntroBytes    = 512 << 10
	parallelMeetings = 8
	maxBootstrap     = 32
)

// Bounds of gossip. The library's queue of 32 per peer drops two thirds of a burst.
const (
	gossipQueue    = 1024 // RPCs waiting per peer
	publishQueue   = 256  // own messages waiting to be published
	validateQueue  = 256  // arrived, waiting for a validator
	hearQueue      = 1024 // valid, waiting for the role; further ones are dropped
	gossipOverhead = 4096 // of an RPC around one message
	replayWindow   = 256  // messages of one author that may overtake each other
)

// Rate is an allowance: Burst at once, PerSecond in the long run.
type Rate struct {
	PerSecond float64
	Burst     float64
}

// Limits are the allowances of one peer. A peer over one of them is cut off for
// CutOff; only gossip over its author's allowance is just dropped.
type Limits struct {
	Messages Rate // direct messages
	Bytes    Rate // of direct messages
	Streams  Rate // that the peer opens
	Faults   Rate // messages that cannot be understood, invalid gossip
	Foreign  Rate // gossip passed on, of authors without a credential that counts here
	Gossip   Rate // messages of one author, per topic
}

// DefaultLimits are far above an auction's needs: 16 concurrent auctions of five
// rounds exchange about 1,000 messages of 1 KiB per second and peer.
func DefaultLimits() Limits {
	return Limits{
		Messages: Rate{PerSecond: 4000, Burst: 4000},
		Bytes:    Rate{PerSecond: 32 << 20, Burst: 64 << 20},
		Streams:  Rate{PerSecond: 16, Burst: 256}, // a user whose every command is a process of its own
		Faults:   Rate{PerSecond: 1, Burst: 32},
		Foreign:  Rate{PerSecond: 32, Burst: 256},
		Gossip:   Rate{PerSecond: 32, Burst: 128},
	}
}

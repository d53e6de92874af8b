package mesh

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/identity"
)

// Errors that a caller can act on.
var (
	ErrAddressInUse = errors.New("address already in use by another process")
	ErrNoPeerID     = errors.New("address must end in /p2p/ID, which identifies the agent at it")
	ErrClosed       = errors.New("the mesh is closed")
	ErrUnknownAgent = errors.New("no address of this agent is known")
	ErrUnreached    = errors.New("it cannot be reached")
	ErrBusy         = errors.New("too many messages are queued for this agent")
)

// Codec turns messages into bytes and back. Open limits, parses and verifies. If its
// error has a method Answer(self) (protocol.Message, bool), like that of package codec,
// the sender gets that answer. Both are called from several goroutines.
type Codec interface {
	Encode(m protocol.Message) ([]byte, error)
	Open(b []byte, sender protocol.AgentID, at time.Time) (protocol.Message, error)
}

// Wire is the codec of the market: package codec, with o for opening.
func Wire(o codec.Opener) Codec { return wire{o} }

type wire struct{ codec.Opener }

// Encode is codec.Encode.
func (wire) Encode(m protocol.Message) ([]byte, error) { return codec.Encode(m) }

// Trust decides which certificates are valid at a time. identity.Trust implements it.
type Trust interface {
	Verify(chain [][]byte, at time.Time) (identity.Peer, error)
}

// Config is what a Mesh needs.
type Config struct {
	Credential *identity.Credential
	Trust      Trust
	Codec      Codec
	// Deliver passes a message to the role: one that arrived, or a failure from protocol.LocalMesh.
	// It may block, which slows down only the peer that sent the message, and must return once the
	// role has stopped. It is called from several goroutines, in order for each peer.
	Deliver func(m protocol.Message) error
	// Listen has multiaddresses such as /ip4/0.0.0.0/tcp/4001. The mesh listens for QUIC
	// beside each, except at loopback addresses. If empty, it listens at a free port of the
	// loopback address.
	Listen []string
	// Announce replaces the addresses that others receive, for hosts behind a forwarded
	// port, and states that others can reach them. /p2p-circuit stands for the addresses
	// of relays, for hosts that others cannot reach.
	Announce []string
	// Bootstrap has addresses of any agents, each ending in /p2p/ID.
	Bootstrap []string
	// Peers, if set, keeps peers over a restart, so that this agent finds the market again
	// when no bootstrap address answers any more.
	Peers Peers
	// Revocations, if set, are kept up to date with those of other agents.
	Revocations Revocations
	// Nearby finds agents on this network by multicast DNS, and lets them find this one.
	// It yields addresses only; agents found this way are verified like any other.
	Nearby bool
	// HearPresence and HearCalls subscribe to gossip: users to presences, resources to
	// both. Sending needs neither.
	HearPresence, HearCalls bool
	// Visitor: this agent, a user, need not be introduced to other visitors.
	Visitor bool
	// Limits are the allowances of each peer; zero means DefaultLimits.
	Limits Limits
	// Bare, if set, receives the frames that other agents send with SendBare, for
	// measurements. It is called like Deliver.
	Bare func(from protocol.AgentID, frame []byte)
	// Enrol, if set, answers peers that apply for a certificate. It is called from up to
	// enrolAtOnce goroutines.
	Enrol Enrol
	// Files, if set, serves one exchange that another agent opened with OpenFiles. It is
	// called from several goroutines, and must return when reading fails.
	Files func(s *Stream) error
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Log records who is cut off and why; nil discards it.
	Log *slog.Logger
}

// addresses are the parsed addresses of a Config.
type addresses struct {
	listen, announce []ma.Multiaddr
	bootstrap        []peer.AddrInfo
}

// Validate reports that fields are missing, or the first that cannot be used.
func (c Config) Validate() error {
	if c.Credential == nil || c.Trust == nil || c.Codec == nil || c.Deliver == nil {
		return errors.New("mesh: Credential, Trust, Codec and Deliver must be set")
	}
	_, err := c.parse()
	return err
}

// CheckAddresses reports the first address that an agent could not listen on or join
// through, with an example. It contacts nobody.
func CheckAddresses(listen, bootstrap []string) error {
	_, err := Config{Listen: listen, Bootstrap: bootstrap}.parse()
	return err
}

// CheckJoin is CheckAddresses for the addresses of an invitation.
func CheckJoin(addresses []string) error {
	_, err := parseAddresses("address", addresses)
	return err
}

// CheckAnnounce reports the first address that others could not dial, with an example.
func CheckAnnounce(announce []string) error {
	all, err := parseAddresses("announce", announce)
	if err != nil {
		return err
	}
	for _, a := range all {
		if a.String() != circuit && (len(a.Bytes()) > maxAddress || !claimable.MatchString(a.String()) || manet.IsIPUnspecified(a)) {
			return fmt.Errorf("announce %q: want an address that others can dial, such as /ip4/203.0.113.7/tcp/4001, or %s for relays only", a, circuit)
		}
	}
	return nil
}

func (c Config) withDefaults() Config {
	if len(c.Listen) == 0 {
		c.Listen = []string{"/ip4/127.0.0.1/tcp/0"}
	}
	if c.Limits == (Limits{}) {
		c.Limits = DefaultLimits()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) parse() (a addresses, err error) {
	if len(c.Bootstrap) > maxBootstrap {
		return a, fmt.Errorf("mesh: %d addresses in Bootstrap, at most %d", len(c.Bootstrap), maxBootstrap)
	}
	listen, err1 := parseAddresses("listen", c.Listen)
	announce, err2 := parseAddresses("announce", c.Announce)
	bootstrap, err3 := parseBootstrap(c.Bootstrap)
	for i, info := range bootstrap { // an invitation may name TCP only, but paths are punched to where others see QUIC come from
		bootstrap[i].Addrs = ma.Unique(append(info.Addrs, besideTCP(info.Addrs)...))
	}
	return addresses{listen: listen, announce: announce, bootstrap: bootstrap}, cmp.Or(err1, err2, err3)
}

func parseAddresses(field string, all []string) ([]ma.Multiaddr, error) {
	example := cmp.Or(map[string]string{"listen": "/ip4/0.0.0.0/tcp/4001", "bootstrap": "/ip4/192.0.2.7/tcp/4101/p2p/ID"}[field], "/dns4/bank.example.org/tcp/4101")
	out := make([]ma.Multiaddr, len(all))
	for i, s := range all {
		a, err := ma.NewMultiaddr(s)
		if err != nil || (field == "listen" || field == "address") && !has(a, ma.P_TCP) && !has(a, ma.P_UDP) { // names and relays stand for others
			return nil, fmt.Errorf("%s %q: want an address with a port, such as %s", field, s, example)
		}
		out[i] = a
	}
	return out, nil
}

// parseBootstrap merges several addresses of one peer.
func parseBootstrap(all []string) ([]peer.AddrInfo, error) {
	parsed, err := parseAddresses("bootstrap", all)
	if err != nil {
		return nil, err
	}
	for i, a := range parsed {
		if _, id := peer.SplitAddr(a); id == "" {
			return nil, fmt.Errorf("bootstrap %q: %w", all[i], ErrNoPeerID)
		}
	}
	return peer.AddrInfosFromP2pAddrs(parsed...)
}

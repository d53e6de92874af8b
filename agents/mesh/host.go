package mesh

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"syscall"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	libp2pprotocol "github.com/libp2p/go-libp2p/core/protocol"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	quic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/libp2p/go-libp2p/x/rate"
	ma "github.com/multiformats/go-multiaddr"
)

// newHost creates a host that does not listen yet, with as few features of the library
// as possible and explicit limits. It shares no port with another process: the library
// would allow that, which hides a second daemon at the same address.
func newHost(cfg Config, g *gate, denied *denials, r *reach, t *traffic) (host.Host, error) {
	key, _, err := crypto.KeyPairFromStdKey(cfg.Credential.PrivateKey())
	if err != nil {
		return nil, fmt.Errorf("host key of %s: %w", cfg.Credential.ID, err)
	}
	limits, err := newLimits(denied, g.strangers.strange)
	if err != nil {
		return nil, fmt.Errorf("resource limits: %w", err)
	}
	connections, err := connmgr.NewConnManager(lowWater, highWater, connmgr.WithGracePeriod(trimGrace))
	if err != nil {
		return nil, fmt.Errorf("connection limits: %w", err)
	}
	return newLibp2p(key, append(r.options(),
		libp2p.ResourceManager(limits), libp2p.ConnectionManager(connections), libp2p.ConnectionGater(g), libp2p.BandwidthReporter(t))...)
}

// newLibp2p creates a host with the features of the library that every host here needs.
func newLibp2p(key crypto.PrivKey, more ...libp2p.Option) (host.Host, error) {
	return libp2p.New(append(more,
		libp2p.Identity(key),
		libp2p.NoListenAddrs,
		libp2p.Transport(tcp.NewTCPTransport, tcp.DisableReuseport()),
		libp2p.Transport(quic.NewTransport),
		libp2p.Security(noise.ID, noise.New),
		libp2p.Muxer(yamux.ID, muxer()),
		libp2p.SwarmOpts(swarm.WithDialRanker(rank)),
		libp2p.WithDialTimeout(MeetTimeout),
		libp2p.UserAgent("ramp"),
		libp2p.Ping(false),
		libp2p.DisableMetrics(),
	)...)
}

// newLimits limits what the whole host, one peer and one protocol of a peer may have at
// once.
func newLimits(denied *denials, strange func(peer.ID) bool) (network.ResourceManager, error) {
	whole := rcmgr.ResourceLimits{
		Streams: maxStreams, StreamsInbound: maxStreams, StreamsOutbound: maxStreams,
		Conns: MaxConnections + halfOpenAtOnce, ConnsInbound: MaxConnections + halfOpenAtOnce, ConnsOutbound: MaxConnections,
		FD: maxFiles, Memory: maxMemory,
	}
	// Streams are transient, too, until their protocol is agreed.
	transient := whole
	transient.Conns, transient.ConnsInbound = MaxConnections, halfOpenAtOnce
	one := rcmgr.ResourceLimits{
		Streams: 2 * (streamsPerPeer + relayCircuits), StreamsInbound: streamsPerPeer + relayCircuits, StreamsOutbound: streamsPerPeer + relayCircuits,
		Conns: maxPerPeer, ConnsInbound: maxPerPeer, ConnsOutbound: maxPerPeer,
		FD: maxPerPeer, Memory: peerMemory,
	}
	kind := rcmgr.ResourceLimits{
		Streams: 2 * streamsPerKind, StreamsInbound: streamsPerKind, StreamsOutbound: streamsPerKind,
		Memory: peerMemory,
	}
	enrol := kind // each waits with up to MaxEnrol bytes
	enrol.Streams, enrol.StreamsInbound, enrol.StreamsOutbound = 4, 2, 2
	files := kind
	files.Streams, files.StreamsInbound, files.StreamsOutbound = 2*filesPerPeer, filesPerPeer, filesPerPeer
	limits := rcmgr.PartialLimitConfig{
		System: whole, Transient: transient, PeerDefault: one,
		ProtocolDefault: whole, ServiceDefault: whole,
		ProtocolPeer: map[libp2pprotocol.ID]rcmgr.ResourceLimits{
			protocolACL: kind, protocolPresence: kind, protocolIntroductions: kind, protocolEnrolment: enrol, protocolClock: kind, protocolBare: kind, protocolRevocations: kind, protocolFiles: files,
		},
	}
	return rcmgr.NewResourceManager(newStandings(limits, strange),
		rcmgr.WithMetricsDisabled(),
		rcmgr.WithMetrics(denied),
		rcmgr.WithLimitPerSubnet(
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 32, ConnCount: maxPerAddress}},
			perNetwork6(func(bits int) rcmgr.ConnLimitPerSubnet {
				return rcmgr.ConnLimitPerSubnet{PrefixLength: bits, ConnCount: maxPerAddress}
			})),
		rcmgr.WithConnRateLimiters(newConnectionRates()))
}

// perNetwork6 returns the limits of IPv6 networks of each size.
func perNetwork6[T any](limit func(bits int) T) []T {
	var list []T
	for _, bits := range networks6() {
		list = append(list, limit(bits))
	}
	return list
}

// newConnectionRates limits new connections by address, except from this machine: a
// market on one machine starts all at once.
func newConnectionRates() *rate.Limiter {
	perAddress := rate.Limit{RPS: newPerAddress, Burst: newPerAddressMost}
	return &rate.Limiter{
		NetworkPrefixLimits: []rate.PrefixLimit{
			{Prefix: netip.MustParsePrefix("127.0.0.0/8")},
			{Prefix: netip.MustParsePrefix("::1/128")},
		},
		SubnetRateLimiter: rate.SubnetLimiter{
			IPv4SubnetLimits: []rate.SubnetLimit{{PrefixLength: 32, Limit: perAddress}},
			IPv6SubnetLimits: perNetwork6(func(bits int) rate.SubnetLimit { return rate.SubnetLimit{PrefixLength: bits, Limit: perAddress} }),
			GracePeriod:      time.Minute,
		},
	}
}

// listen opens every address, or names the one that failed. It does without those of
// extra that it cannot open.
func listen(h host.Host, addrs, extra []ma.Multiaddr, log *slog.Logger) error {
	swarm, ok := h.Network().(interface{ AddListenAddr(ma.Multiaddr) error })
	if !ok {
		return fmt.Errorf("network of kind %T cannot listen", h.Network())
	}
	for _, a := range addrs {
		err := swarm.AddListenAddr(a)
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("listen on %s: %w", a, ErrAddressInUse)
		}
		if err != nil {
			return fmt.Errorf("listen on %s: %w", a, err)
		}
	}
	for _, a := range extra {
		if err := swarm.AddListenAddr(a); err != nil {
			log.Warn("cannot listen for QUIC, which carries direct paths through NAT", "at", a, "err", err)
		}
	}
	return nil
}

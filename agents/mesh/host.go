package mesh

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"syscall"
	"time"

	"github.com/libp2p/go-libp2p/config"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	libp2pprotocol "github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/net/upgrader"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	quic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/libp2p/go-libp2p/x/rate"
	ma "github.com/multiformats/go-multiaddr"
	"go.uber.org/fx"
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
	c := hostConfig{ResourceManager: limits, ConnManager: connections, ConnectionGater: g, Reporter: t}
	r.configure(&c)
	return c.start(key)
}

// hostConfig is the library's configuration. It is filled in without the options of package
// libp2p, whose defaults would add the transports that are not used here to the program.
type hostConfig config.Config

// start creates a host with the features of the library that every host here needs.
func (c hostConfig) start(key crypto.PrivKey) (host.Host, error) {
	peers, err := pstoremem.NewPeerstore()
	if err != nil {
		return nil, err
	}
	c.PeerKey, c.Peerstore = key, peers
	c.Transports = []fx.Option{provided(exclusiveTCP), provided(quic.NewTransport)}
	c.SecurityTransports = []config.Security{{ID: noise.ID, Constructor: noise.New}}
	c.Muxers = []upgrader.StreamMuxer{{ID: yamux.ID, Muxer: muxer()}}
	c.SwarmOpts = []swarm.Option{swarm.WithDialRanker(rank)}
	c.DialTimeout, c.UserAgent, c.DisablePing, c.DisableMetrics = MeetTimeout, "ramp", true, true
	// Where hardly any dial succeeds, these addresses are not dialled: the library's defaults.
	c.UDPBlackHoleSuccessCounter = &swarm.BlackHoleSuccessCounter{N: 100, MinSuccesses: 5, Name: "UDP"}
	c.IPv6BlackHoleSuccessCounter = &swarm.BlackHoleSuccessCounter{N: 100, MinSuccesses: 5, Name: "IPv6"}
	return (*config.Config)(&c).NewNode()
}

// provided is a transport that the library makes.
func provided(constructor any) fx.Option {
	return fx.Provide(fx.Annotate(constructor, fx.As(new(transport.Transport)), fx.ResultTags(`group:"transport"`)))
}

func exclusiveTCP(u transport.Upgrader, limits network.ResourceManager) (*tcp.TcpTransport, error) {
	return tcp.NewTCPTransport(u, limits, nil, tcp.DisableReuseport())
}

// newLimits limits what the whole host, one peer and one protocol of a peer may have at once.
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
	each := func(way rcmgr.LimitVal) rcmgr.ResourceLimits {
		return rcmgr.ResourceLimits{Streams: 2 * way, StreamsInbound: way, StreamsOutbound: way, Memory: peerMemory}
	}
	kind := each(streamsPerKind)
	limits := rcmgr.PartialLimitConfig{
		System: whole, Transient: transient, PeerDefault: one,
		ProtocolDefault: whole, ServiceDefault: whole,
		ProtocolPeer: map[libp2pprotocol.ID]rcmgr.ResourceLimits{
			protocolACL: kind, protocolPresence: kind, protocolIntroductions: kind, protocolEnrolment: each(enrolPerPeer), protocolClock: kind, protocolBare: kind, protocolRevocations: kind, protocolFiles: each(filesPerPeer),
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

package mesh

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/host/autorelay"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	"go.uber.org/fx"

	"ramp/agents"
	"ramp/protocol"
)

// Limits of the relay service of an agent that others can reach. Only agents with a valid
// credential may use it.
const (
	// RelayData is what one relayed connection carries in each direction, and RelayTime how
	// long it lives: messages of an auction are a few kilobytes, files should go directly.
	RelayData = 64 << 20
	RelayTime = time.Hour
	// MaxRelayed is the number of agents that reserve a place with one relay, and
	// relayCircuits how many relayed connections each of them has at once.
	MaxRelayed       = 256
	relayCircuits    = 64
	reservationTime  = time.Hour
	relayedPerOrigin = 64 // from one IPv4 address or IPv6 /48
)

// Bounds of a client of relays.
const (
	relaysWanted = 2
	relaysTried  = 8                // candidates that are remembered
	relayAgain   = 10 * time.Second // before a refused reservation is tried again
	directTime   = 6 * time.Second  // for a direct path to be punched, before files are relayed
	sleepLeast   = 20 * time.Second // a tick that is so late means that the machine slept
	sleepTick    = 5 * time.Second
)

// How others reach an agent.
const (
	ReachLocal   = "local"   // from this machine only
	ReachNetwork = "network" // from its own network, as far as is known
	ReachPublic  = "public"  // directly: announced, or seen from outside
	ReachPunched = "punched" // through relays, and directly by those who have punched a path
	ReachRelayed = "relayed" // through relays only
	ReachNone    = "none"    // others tried its addresses in vain, and it knows no relay
)

// relaySearch is the time between looks at who relays, beside those for whom one meets.
var relaySearch = 250 * time.Millisecond

// Reach is how others reach this agent, and by which paths it reaches them.
type Reach struct {
	Kind   string
	Relays []protocol.AgentID // with a reservation; an unknown one has its peer's ID
	// TCP, QUIC and Relayed are open connections; Through are agents that only a relay
	// reaches, with the relay.
	TCP, QUIC, Relayed int
	Through            map[protocol.AgentID]protocol.AgentID
	Punched, Unpunched int  // direct paths that were punched since the start, and attempts that failed
	Offered            int  // connected agents that relay
	Serves             bool // this agent relays
	Reservations       int  // of others with it
	Circuits           int  // relayed connections of others
	RelayedBytes       uint64
}

// reach owns how this agent is reached. It offers the relay service when others can reach
// this agent, and has the library keep reservations with other relays when they cannot.
type reach struct {
	cfg       Config
	open      bool // the agent is meant to be reached from other machines
	onlyRelay bool // the announced addresses are those of relays
	ep        *endpoint
	stats     relayStats
	begun     chan struct{} // closed when ep is set
	met       chan struct{} // a peer has shown its card: it may relay
	punching  punching

	mu      sync.Mutex
	service *relay.Relay
	closed  bool
}

// circuit is announced by agents that only relays can reach.
const circuit = "/p2p-circuit"

// isLocal reports whether an agent listens on this machine only and joins no other.
func isLocal(cfg Config) bool {
	all := slices.Concat(cfg.Listen, cfg.Bootstrap)
	return len(cfg.Announce) == 0 && !slices.ContainsFunc(all, func(s string) bool {
		a, err := ma.NewMultiaddr(s)
		return err == nil && !manet.IsIPLoopback(a)
	})
}

// configure turns on the library's services for agents that other machines reach.
func (r *reach) configure(c *hostConfig) {
	if c.DisableIdentifyAddressDiscovery = !r.open; !r.open {
		return
	}
	// The library would look for relays only after other agents had agreed for minutes
	// that this one is unreachable. candidates decides instead.
	private := network.ReachabilityPrivate
	c.AutoNATConfig.ForceReachability = &private
	c.Relay, c.EnableAutoNATv2, c.EnableAutoRelay = true, true, true
	c.AutoRelayOpts = []autorelay.Option{
		autorelay.WithPeerSource(r.candidates),
		autorelay.WithNumRelays(relaysWanted), autorelay.WithMinCandidates(1), autorelay.WithMaxCandidates(relaysTried),
		autorelay.WithBootDelay(0), autorelay.WithBackoff(relayAgain), autorelay.WithMinInterval(time.Second),
	}
	c.UserFxOptions = []fx.Option{fx.Populate(&r.punching.observed)} // which addresses others have seen
	if len(r.cfg.Announce) > 0 {
		c.AddrsFactory = r.announced
	}
}

// announced replaces the direct addresses by those of the configuration.
func (r *reach) announced(all []ma.Multiaddr) []ma.Multiaddr {
	out, _ := parseAddresses("announce", r.cfg.Announce) // checked by Validate
	out = slices.DeleteFunc(out, func(a ma.Multiaddr) bool { return a.String() == circuit })
	for _, a := range all {
		if r.onlyRelay && isRelayed(a) {
			out = append(out, a)
		}
	}
	return out
}

// start begins to follow what the library finds out.
func (r *reach) start(ep *endpoint, moved func(context.Context)) error {
	r.ep = ep
	close(r.begun)
	if !r.open {
		return nil
	}
	sub, err := ep.host.EventBus().Subscribe([]any{
		new(event.EvtHostReachableAddrsChanged), new(event.EvtLocalAddressesUpdated),
	}, eventbus.Name("ramp-reach"))
	if err != nil {
		return fmt.Errorf("events of the host: %w", err)
	}
	if err := r.punching.start(ep.host); err != nil {
		return fmt.Errorf("punching paths: %w", err)
	}
	ep.life.start(r.punching.again)
	// Gossip ignores relayed connections, and hears of a direct one that was punched later.
	ep.host.Network().Notify(&network.NotifyBundle{ConnectedF: func(_ network.Network, c network.Conn) {
		if id := c.RemotePeer(); !isRelayed(c.RemoteMultiaddr()) && ep.contacts.ofPeer(id) != nil {
			ep.life.tasks.run(func() { ep.admission.admit(id) })
		}
	}})
	changed := make(chan struct{}, 1)
	ep.life.start(func(ctx context.Context) { r.follow(ctx, sub, changed) })
	ep.life.start(func(ctx context.Context) { showAgain(ctx, changed, moved) })
	ep.life.start(r.watchSleep)
	if len(r.cfg.Announce) > 0 && !r.onlyRelay {
		r.serve()
	}
	return nil
}

// showAgain calls moved after each change of the addresses.
func showAgain(ctx context.Context, changed <-chan struct{}, moved func(context.Context)) {
	for {
		select {
		case <-changed:
			moved(ctx)
		case <-ctx.Done():
			return
		}
	}
}

func (r *reach) follow(ctx context.Context, sub event.Subscription, changed chan<- struct{}) {
	defer sub.Close() //nolint:errcheck // it has nothing to lose
	for {
		select {
		case e := <-sub.Out():
			switch e := e.(type) {
			case event.EvtHostReachableAddrsChanged:
				if len(e.Reachable) > 0 {
					r.serve()
				}
			case event.EvtLocalAddressesUpdated:
				agents.Signal(changed)
			}
		case <-ctx.Done():
			r.close()
			return
		}
	}
}

// proved notes that an agent with a valid credential has a connection. If it came in
// directly at a public address of this machine, others can come the same way.
func (r *reach) proved(c network.Conn) {
	agents.Signal(r.met)
	switch from := c.RemoteMultiaddr(); {
	case !r.open || r.onlyRelay || c.Stat().Direction != network.DirInbound:
	case isRelayed(from) || !manet.IsPublicAddr(from) || !r.hasPublic():
	case isQUIC(from) && r.isRelayedTo(c.RemotePeer()): // the path was punched
	default:
		r.serve()
	}
}

// hasPublic reports whether this machine has a public address that the agent listens on.
func (r *reach) hasPublic() bool {
	all, err := r.ep.host.Network().InterfaceListenAddresses()
	return err == nil && slices.ContainsFunc(all, manet.IsPublicAddr)
}

// isRelayedTo reports whether a peer is also connected through a relay.
func (r *reach) isRelayedTo(id peer.ID) bool {
	return slices.ContainsFunc(r.ep.host.Network().ConnsToPeer(id), func(c network.Conn) bool { return isRelayed(c.RemoteMultiaddr()) })
}

// serve relays for others from now on.
func (r *reach) serve() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.service != nil || r.closed {
		return
	}
	s, err := relay.New(r.ep.host, relay.WithACL(r), relay.WithMetricsTracer(&r.stats),
		relay.WithReservationAddressFilter(func(ma.Multiaddr) bool { return true }),
		relay.WithResources(relay.Resources{
			Limit:          &relay.RelayLimit{Duration: RelayTime, Data: RelayData},
			ReservationTTL: reservationTime, MaxReservations: MaxRelayed, MaxCircuits: relayCircuits, BufferSize: 2 * smallBuffer,
			MaxReservationsPerIP: relayedPerOrigin, MaxReservationsPerASN: MaxRelayed,
		}))
	if err != nil {
		r.ep.cfg.Log.Warn("cannot relay for others", "err", err)
		return
	}
	r.service = s
	r.ep.cfg.Log.Info("others can reach this agent; it relays for those that cannot be reached")
}

func (r *reach) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.service != nil {
		_ = r.service.Close() // it never fails
	}
}

func (r *reach) serves() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.service != nil
}

// AllowReserve admits agents that have shown a valid credential.
func (r *reach) AllowReserve(id peer.ID, _ ma.Multiaddr) bool { return r.ep.contacts.ofPeer(id) != nil }

// AllowConnect admits agents that have shown a valid credential. None takes all circuits of another.
func (r *reach) AllowConnect(from peer.ID, _ ma.Multiaddr, to peer.ID) bool {
	c := r.ep.contacts.ofPeer(from)
	return c != nil && r.ep.contacts.ofPeer(to) != nil && c.connects(to, time.Now())
}

// candidates sends the connected agents that relay, for as long as the library wants
// relays. An agent that others reach needs none.
func (r *reach) candidates(ctx context.Context, _ int) <-chan peer.AddrInfo {
	found, t := make(chan peer.AddrInfo), time.NewTicker(relaySearch)
	go func() {
		defer close(found)
		defer t.Stop()
		select {
		case <-r.begun:
		case <-ctx.Done():
			return
		}
		for {
			for _, info := range r.offers() {
				select {
				case found <- info:
				case <-ctx.Done():
					return
				}
			}
			select {
			case <-r.met:
			case <-t.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return found
}

// offers lists connected agents that relay, unless others can reach this agent.
func (r *reach) offers() []peer.AddrInfo {
	if r.serves() {
		return nil
	}
	return r.relays()
}

// relays lists the agents that relay, are connected directly and have shown a credential.
func (r *reach) relays() (all []peer.AddrInfo) {
	for _, c := range r.ep.connected(everybody) {
		store := r.ep.host.Peerstore()
		spoken, err := store.SupportsProtocols(c.peer, proto.ProtoIDv2Hop)
		if err == nil && len(spoken) > 0 && r.ep.host.Network().Connectedness(c.peer) == network.Connected {
			all = append(all, peer.AddrInfo{ID: c.peer, Addrs: store.Addrs(c.peer)})
		}
	}
	return all
}

// watchSleep drops all connections after the machine has slept: the other sides have given
// them up, and it may be elsewhere. Everything connects again.
func (r *reach) watchSleep(ctx context.Context) {
	for last := time.Now().Round(0); agents.Pause(ctx, sleepTick); last = time.Now().Round(0) {
		slept := time.Now().Round(0).Sub(last) // without the monotonic clock, which stands still in sleep
		if slept < sleepLeast {
			continue
		}
		r.ep.cfg.Log.Info("this machine has slept; connecting again", "slept", slept.Round(time.Second))
		for _, c := range r.ep.host.Network().Conns() {
			_ = c.Close() // it is probably lost already
		}
	}
}

// report is how others reach this agent, and it them.
func (r *reach) report() Reach {
	out := Reach{
		Kind: ReachLocal, Serves: r.serves(), Punched: int(r.punching.direct.Load()), Unpunched: int(r.punching.failed.Load()),
		Reservations: int(r.stats.reservations.Load()), Circuits: int(r.stats.circuits.Load()), RelayedBytes: r.stats.bytes.Load(),
	}
	r.countConnections(&out)
	if !r.open {
		return out
	}
	out.Offered = len(r.relays())
	for _, id := range relaysOf(r.ep.addresses()) {
		out.Relays = append(out.Relays, r.nameOf(id))
	}
	out.Kind = r.kind(out)
	return out
}

func (r *reach) kind(now Reach) string {
	switch reachable, unreachable := r.confirmed(); {
	case now.Serves || reachable > 0:
		return ReachPublic
	case len(now.Relays) > 0 && now.Punched > 0:
		return ReachPunched
	case len(now.Relays) > 0:
		return ReachRelayed
	case unreachable > 0 || r.onlyRelay:
		return ReachNone
	}
	return ReachNetwork
}

// nameOf is the agent at a peer, or the peer's ID if it is not known.
func (r *reach) nameOf(id peer.ID) protocol.AgentID {
	if c := r.ep.contacts.ofPeer(id); c != nil {
		return c.agent
	}
	return protocol.AgentID(id.String())
}

// countConnections counts the open connections.
func (r *reach) countConnections(out *Reach) {
	for _, c := range r.ep.host.Network().Conns() {
		a := c.RemoteMultiaddr()
		via, relayed := relayOf(a)
		switch {
		case relayed:
			out.Relayed++
		case isQUIC(a):
			out.QUIC++
		default:
			out.TCP++
		}
		if relayed && r.ep.host.Network().Connectedness(c.RemotePeer()) == network.Limited {
			if out.Through == nil {
				out.Through = map[protocol.AgentID]protocol.AgentID{}
			}
			out.Through[r.nameOf(c.RemotePeer())] = r.nameOf(via.ID)
		}
	}
}

// confirmed counts this agent's addresses that others have tried.
func (r *reach) confirmed() (reachable, unreachable int) {
	h, ok := r.ep.host.(interface {
		ConfirmedAddrs() (reachable, unreachable, unknown []ma.Multiaddr)
	})
	if !ok {
		return 0, 0
	}
	good, bad, _ := h.ConfirmedAddrs()
	return len(good), len(bad)
}

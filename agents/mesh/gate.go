package mesh

import (
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	libp2pprotocol "github.com/libp2p/go-libp2p/core/protocol"
	ma "github.com/multiformats/go-multiaddr"
)

// gate owns the bans of peers that were cut off. It is the host's ConnectionGater, and
// passes inbound connections on to the strangers.
type gate struct {
	now       func() time.Time
	strangers *strangers
	mu        sync.Mutex
	banned    map[peer.ID]time.Time // until when
}

func newGate(now func() time.Time) *gate {
	g := &gate{now: now, banned: map[peer.ID]time.Time{}}
	g.strangers = &strangers{losers: map[peer.ID]int{}, keepOut: func(id peer.ID, d time.Duration) { g.ban(id, now().Add(d)) }}
	return g
}

// ban keeps id out until a time. A full table forgets the ban that ends first.
func (g *gate) ban(id peer.ID, until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.banned) >= maxBanned {
		g.forget()
	}
	g.banned[id] = until
}

func (g *gate) forget() {
	var first peer.ID
	for id, until := range g.banned {
		if first == "" || until.Before(g.banned[first]) {
			first = id
		}
	}
	delete(g.banned, first)
}

func (g *gate) open(id peer.ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	until, ok := g.banned[id]
	if ok && !g.now().Before(until) {
		delete(g.banned, id)
		ok = false
	}
	return !ok
}

// InterceptPeerDial refuses to dial a peer that is cut off.
func (g *gate) InterceptPeerDial(id peer.ID) bool { return g.open(id) }

// InterceptAddrDial allows every address: the resource manager bounds dials.
func (g *gate) InterceptAddrDial(peer.ID, ma.Multiaddr) bool { return true }

// InterceptAccept allows every address while there are places: the peer is not known before
// its key is.
func (g *gate) InterceptAccept(c network.ConnMultiaddrs) bool { return g.strangers.arrive(c) }

// InterceptSecured refuses a peer that is cut off as soon as its key is known.
func (g *gate) InterceptSecured(dir network.Direction, id peer.ID, c network.ConnMultiaddrs) bool {
	open := g.open(id)
	switch {
	case dir == network.DirOutbound:
	case open:
		return g.strangers.secured(c, id)
	default:
		g.strangers.refused(c)
	}
	return open
}

// InterceptUpgraded allows every connection that passed the checks above.
func (g *gate) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }

// denials receives the resource manager's decisions and reports the peers that were
// refused a stream.
type denials struct {
	report func(id peer.ID) // set before the host listens
}

// BlockStream reports a peer with too many streams.
func (d *denials) BlockStream(id peer.ID, dir network.Direction) {
	if dir == network.DirInbound {
		d.report(id)
	}
}

// BlockProtocolPeer reports a peer with too many streams of one protocol.
func (d *denials) BlockProtocolPeer(_ libp2pprotocol.ID, id peer.ID) { d.report(id) }

// The other decisions are not one peer's fault, or not refusals.

func (d *denials) AllowConn(network.Direction, bool)      {}
func (d *denials) BlockConn(network.Direction, bool)      {}
func (d *denials) AllowStream(peer.ID, network.Direction) {}
func (d *denials) AllowPeer(peer.ID)                      {}
func (d *denials) BlockPeer(peer.ID)                      {}
func (d *denials) AllowProtocol(libp2pprotocol.ID)        {}
func (d *denials) BlockProtocol(libp2pprotocol.ID)        {}
func (d *denials) AllowService(string)                    {}
func (d *denials) BlockService(string)                    {}
func (d *denials) BlockServicePeer(string, peer.ID)       {}
func (d *denials) AllowMemory(int)                        {}
func (d *denials) BlockMemory(int)                        {}

package mesh

import (
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// gate keeps out the peers that were cut off. It is the host's ConnectionGater.
type gate struct {
	now    func() time.Time
	mu     sync.Mutex
	banned map[peer.ID]time.Time // until when
}

func newGate(now func() time.Time) *gate {
	return &gate{now: now, banned: map[peer.ID]time.Time{}}
}

// ban keeps id out until a time. At the bound of the table the ban that ends
// first gives way.
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

// InterceptAccept allows every address: who it is comes with the key.
func (g *gate) InterceptAccept(network.ConnMultiaddrs) bool { return true }

// InterceptSecured refuses a peer that is cut off as soon as its key is known.
func (g *gate) InterceptSecured(_ network.Direction, id peer.ID, _ network.ConnMultiaddrs) bool {
	return g.open(id)
}

// InterceptUpgraded has nothing to add.
func (g *gate) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }

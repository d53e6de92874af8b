package mesh

import (
	"context"
	"net"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/discovery/mdns"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// nearbyService is the name under which agents ask for another on a local network
// (RFC 6763 §7), of every market: whose certificate does not count is cut off.
const nearbyService = "_ramp._udp"

// Bounds of what multicast DNS may make this agent do: anybody on the network can
// say anything there.
const (
	nearbyQueue  = 64               // found, waiting to be visited; further ones are dropped
	maxNearby    = 256              // remembered, to be visited again
	nearbyTries  = 5                // in vain, after which one is forgotten
	nearbyPeriod = 10 * time.Second // between visits to those that are not met
	nearbyAgain  = time.Minute      // until it is tried again to take part, where it cannot be
)

// finder takes what multicast DNS finds.
type finder chan peer.AddrInfo

// HandlePeerFound is called on a goroutine of its own for everybody who is found.
func (f finder) HandlePeerFound(info peer.AddrInfo) {
	select {
	case f <- info:
	default: // said again before its record ends
	}
}

// neighbour is somebody of whom multicast DNS has told. It has no more trust than one
// whom an agent introduces.
type neighbour struct {
	info  peer.AddrInfo
	tries int
}

// lookAround tells this network where the agent is, and meets those who do the same,
// until the mesh closes.
func (m *Mesh) lookAround(ctx context.Context) {
	found := make(finder, nearbyQueue)
	service := mdns.NewMdnsService(m.host, nearbyService, found)
	for err := service.Start(); err != nil; err = service.Start() {
		m.cfg.Log.Warn("nobody is looked for on this network", "err", err, "again", nearbyAgain)
		if !pause(ctx, nearbyAgain) {
			return
		}
	}
	m.visitNearby(ctx, found)
	_ = service.Close() // it has nothing that could be lost
}

func (m *Mesh) visitNearby(ctx context.Context, found finder) {
	known := map[peer.ID]*neighbour{}
	t := time.NewTicker(nearbyPeriod)
	defer t.Stop()
	for {
		select {
		case info := <-found:
			if n, ok := remember(known, info, machineNetworks()); ok {
				m.visit(ctx, known, []peer.ID{n})
			}
		case <-t.C:
			m.visit(ctx, known, m.unmet(known))
		case <-ctx.Done():
			return
		}
	}
}

// remember notes where somebody is, if that is on a network of this machine, and
// there is room.
func remember(known map[peer.ID]*neighbour, info peer.AddrInfo, here []net.IPNet) (peer.ID, bool) {
	info.Addrs = slices.DeleteFunc(info.Addrs, func(a ma.Multiaddr) bool { return !onLink(a, here) })
	info.Addrs = info.Addrs[:min(len(info.Addrs), MaxAddresses)]
	if _, again := known[info.ID]; len(info.Addrs) == 0 || !again && len(known) >= maxNearby {
		return "", false
	}
	known[info.ID] = &neighbour{info: info}
	return info.ID, true
}

// onLink reports whether an address is TCP, on one of the networks: nobody here can
// send this agent to knock at doors elsewhere.
func onLink(a ma.Multiaddr, here []net.IPNet) bool {
	ip, err := manet.ToIP(a)
	if _, noTCP := a.ValueForProtocol(ma.P_TCP); err != nil || noTCP != nil {
		return false
	}
	return slices.ContainsFunc(here, func(n net.IPNet) bool { return n.Contains(ip) })
}

// machineNetworks are those that this machine has an address in, its own included.
func machineNetworks() (networks []net.IPNet) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil // nobody is near then
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			networks = append(networks, *n)
		}
	}
	return networks
}

// unmet are those that are not connected, or were not met. Those who were met long
// ago and left are forgotten in time.
func (m *Mesh) unmet(known map[peer.ID]*neighbour) (ids []peer.ID) {
	for id := range known {
		if c := m.book.peer(id); c == nil || !c.wasMet() || !m.book.connected(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// visit joins by each of them, unless it is cut off or there are connections enough,
// and forgets whom it could not reach nearbyTries times.
func (m *Mesh) visit(ctx context.Context, known map[peer.ID]*neighbour, ids []peer.ID) {
	room := max(0, MaxIntroductions-len(m.host.Network().Peers()))
	ids = ids[:min(len(ids), room)]
	m.each(ctx, ids, func(ctx context.Context, id peer.ID) {
		n := known[id] // each has its own
		if _, err := m.join(ctx, n.info); err != nil {
			n.tries++
			m.cfg.Log.Debug("one who is near was not met", "peer", id, "err", err)
			return
		}
		n.tries = 0
		m.joining.Do(func() { close(m.joined) })
	})
	for _, id := range ids {
		if known[id].tries >= nearbyTries {
			delete(known, id)
		}
	}
}

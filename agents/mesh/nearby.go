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

	"ramp/agents"
)

// nearbyService is the name under which agents of all markets look for each other on a local
// network (RFC 6763 §7). Those of other markets are cut off when they show their certificates.
const nearbyService = "_ramp._udp"

// Bounds on the work that multicast DNS can cause: anybody on the network can announce anything.
const (
	nearbyQueue  = 64               // found and waiting for a visit; more are dropped
	maxNearby    = 256              // remembered, to be visited again
	nearbyTries  = 5                // failed visits before a neighbour is forgotten
	nearbyPeriod = 10 * time.Second // between visits to neighbours that were not met
	nearbyAgain  = time.Minute      // before multicast DNS is started again after a failure
)

// finder receives the peers that multicast DNS finds.
type finder chan peer.AddrInfo

// HandlePeerFound is called in a goroutine of its own for every peer found.
func (f finder) HandlePeerFound(info peer.AddrInfo) {
	select {
	case f <- info:
	default: // it is announced again before its record expires
	}
}

// neighbours owns the peers found by multicast DNS. They are trusted no more than
// introduced ones. It belongs to one goroutine.
type neighbours struct {
	joining *joining
	known   map[peer.ID]*neighbour
}

type neighbour struct {
	info  peer.AddrInfo
	tries int
}

// search announces this agent on the local network, and meets those who do the same,
// until the mesh closes.
func (n *neighbours) search(ctx context.Context) {
	found := make(finder, nearbyQueue)
	ep := n.joining.ep
	service := mdns.NewMdnsService(ep.host, nearbyService, found)
	for err := service.Start(); err != nil; err = service.Start() {
		ep.cfg.Log.Warn("cannot search this network for agents", "err", err, "again", nearbyAgain)
		if !agents.Pause(ctx, nearbyAgain) {
			return
		}
	}
	n.visitAll(ctx, found)
	_ = service.Close() // it holds nothing that could be lost
}

func (n *neighbours) visitAll(ctx context.Context, found finder) {
	t := time.NewTicker(nearbyPeriod)
	defer t.Stop()
	for {
		select {
		case info := <-found:
			if n.remember(info, machineNetworks()) {
				n.visit(ctx, []peer.ID{info.ID})
			}
		case <-t.C:
			n.visit(ctx, n.unmet())
		case <-ctx.Done():
			return
		}
	}
}

// remember records where a peer is, if it has an address on a network of this machine
// and the table is not full.
func (n *neighbours) remember(info peer.AddrInfo, here []net.IPNet) bool {
	info.Addrs = slices.DeleteFunc(info.Addrs, func(a ma.Multiaddr) bool { return !onLink(a, here) })
	info.Addrs = info.Addrs[:min(len(info.Addrs), MaxAddresses)]
	if _, again := n.known[info.ID]; len(info.Addrs) == 0 || !again && len(n.known) >= maxNearby {
		return false
	}
	n.known[info.ID] = &neighbour{info: info}
	return true
}

// onLink reports whether an address is TCP and on one of the networks, so that nobody
// here can make this agent connect to machines elsewhere.
func onLink(a ma.Multiaddr, here []net.IPNet) bool {
	ip, err := manet.ToIP(a)
	if _, noTCP := a.ValueForProtocol(ma.P_TCP); err != nil || noTCP != nil {
		return false
	}
	return slices.ContainsFunc(here, func(n net.IPNet) bool { return n.Contains(ip) })
}

// machineNetworks are the networks in which this machine has an address, including loopback.
func machineNetworks() (networks []net.IPNet) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil // no address counts as near then
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			networks = append(networks, *n)
		}
	}
	return networks
}

// unmet lists the neighbours that are not connected or were not met, and that a seller does
// not spare. Those that were met long ago and left are forgotten after nearbyTries.
func (n *neighbours) unmet() (ids []peer.ID) {
	for id := range n.known {
		if !n.joining.hasMet(id) && !n.joining.spares(id, 0) {
			ids = append(ids, id)
		}
	}
	return ids
}

// visit joins through each of the peers as far as there are vacancies, and forgets
// those that it could not reach nearbyTries times.
func (n *neighbours) visit(ctx context.Context, ids []peer.ID) {
	ids = ids[:min(len(ids), n.joining.ep.vacancies())]
	inTurn(ctx, slices.Values(ids), func(ctx context.Context, id peer.ID) {
		v := n.known[id] // no other goroutine has this one
		if _, err := n.joining.join(ctx, v.info, RejoinFirst); err != nil {
			v.tries++
			n.joining.ep.cfg.Log.Debug("cannot meet a neighbour", "peer", id, "err", err)
			return
		}
		v.tries = 0
	})
	for _, id := range ids {
		if n.known[id].tries >= nearbyTries {
			delete(n.known, id)
		}
	}
}

package mesh

import (
	"context"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// claimable are the addresses that agents may say they have: other kinds can hold any text.
var claimable = regexp.MustCompile(`^/(ip4/[0-9.]+|(?:ip6zone/[A-Za-z0-9._-]+/)?ip6/[0-9a-f:.]+|dns[46]?/[A-Za-z0-9._-]+)/(tcp/\d+|udp/\d+/quic-v1)(/p2p/\w+)?(/p2p-circuit(/p2p/\w+)?)?$`)

func has(a ma.Multiaddr, code int) bool {
	_, err := a.ValueForProtocol(code)
	return err == nil
}

func isRelayed(a ma.Multiaddr) bool { return has(a, ma.P_CIRCUIT) }
func isQUIC(a ma.Multiaddr) bool    { return has(a, ma.P_QUIC_V1) }
func elsewhere(a ma.Multiaddr) bool { return !manet.IsIPLoopback(a) }

// relaysOf lists the relays that addresses lead through, each once.
func relaysOf(addrs []ma.Multiaddr) (ids []peer.ID) {
	for _, a := range addrs {
		if info, ok := relayOf(a); ok && !slices.Contains(ids, info.ID) {
			ids = append(ids, info.ID)
		}
	}
	return ids
}

// relayOf is the relay that an address leads through.
func relayOf(a ma.Multiaddr) (peer.AddrInfo, bool) {
	before, after := ma.SplitFunc(a, func(c ma.Component) bool { return c.Protocol().Code == ma.P_CIRCUIT })
	if len(before) == 0 || len(after) == 0 {
		return peer.AddrInfo{}, false
	}
	info, err := peer.AddrInfoFromP2pAddr(before)
	if err != nil {
		return peer.AddrInfo{}, false
	}
	return *info, true
}

// besideTCP lists a QUIC address beside each TCP one: agents listen at both.
func besideTCP(all []ma.Multiaddr) (quic []ma.Multiaddr) {
	for _, a := range all {
		host, _ := ma.SplitFirst(a)
		if port, err := a.ValueForProtocol(ma.P_TCP); err == nil && elsewhere(a) && len(a.Protocols()) == 2 { // neither a web socket nor relayed
			quic = append(quic, host.Encapsulate(ma.StringCast("/udp/"+port+"/quic-v1")))
		}
	}
	return quic
}

// listenQUIC lists the addresses to listen at for QUIC. An agent that listens on this machine
// only, but joins agents elsewhere, also listens for the paths that it punches.
func listenQUIC(at addresses) []ma.Multiaddr {
	quic := besideTCP(at.listen)
	if slices.ContainsFunc(at.listen, elsewhere) {
		return quic
	}
	for _, a := range []string{"/ip4/0.0.0.0/udp/0/quic-v1", "/ip6/::/udp/0/quic-v1"} {
		any := ma.StringCast(a)
		needed := func(b ma.Multiaddr) bool { return elsewhere(b) && has(b, ma.P_IP6) == has(any, ma.P_IP6) } // a name counts as IPv4
		if slices.ContainsFunc(at.bootstrap, func(i peer.AddrInfo) bool { return slices.ContainsFunc(i.Addrs, needed) }) {
			quic = append(quic, any)
		}
	}
	return quic
}

// rank orders dials as the library does, with two exceptions. In a local network TCP costs less
// and needs no path to be kept open. Elsewhere TCP hardly waits for QUIC, which may be blocked.
func rank(addrs []ma.Multiaddr) []network.AddrDelay {
	near := func(a ma.Multiaddr) bool { return manet.IsPrivateAddr(a) && !isRelayed(a) }
	out := swarm.DefaultDialRanker(slices.DeleteFunc(slices.Clone(addrs), near))
	direct := func(d network.AddrDelay) bool { return has(d.Addr, ma.P_TCP) && !isRelayed(d.Addr) }
	if i := slices.IndexFunc(out, direct); i >= 0 { // the first: they are in order
		early := max(0, out[i].Delay-headStart)
		for j, d := range out {
			if direct(d) {
				out[j].Delay -= early
			}
		}
	}
	for _, a := range addrs {
		switch {
		case !near(a):
		case isQUIC(a):
			out = append(out, network.AddrDelay{Addr: a, Delay: swarm.PublicQUICDelay})
		default:
			out = append(out, network.AddrDelay{Addr: a})
		}
	}
	return out
}

const (
	keepAlive = 15 * time.Second      // routers forget idle connections, some after 30 s
	remeasure = 10 * time.Minute      // round trips; each time wakes two daemons
	headStart = 30 * time.Millisecond // of QUIC over TCP, which takes two round trips more
)

func muxer() *yamux.Transport {
	c := *yamux.DefaultTransport
	c.KeepAliveInterval, c.MeasureRTTInterval = keepAlive, remeasure
	return &c
}

// meetRelays shows this agent's card to the relays of addresses that it is not connected to:
// they serve only agents that they know. One that answers is enough.
func (e *endpoint) meetRelays(ctx context.Context, addrs []ma.Multiaddr) {
	if !slices.ContainsFunc(addrs, isRelayed) {
		return
	}
	var unmet []peer.AddrInfo
	for _, a := range addrs {
		info, ok := relayOf(a)
		switch {
		case !ok || info.ID == e.host.ID():
		case e.contacts.ofPeer(info.ID) != nil && e.contacts.connected(info.ID):
			return
		default:
			unmet = append(unmet, info)
		}
	}
	for _, info := range unmet[:min(len(unmet), 2*relaysWanted)] {
		if err := e.host.Connect(ctx, info); err != nil || !e.gate.open(info.ID) {
			continue
		}
		if _, err := e.clock(ctx, info.ID); err == nil {
			return
		}
	}
}

// direct waits for a direct connection to a connected peer, which the library tries to
// punch for a while, and returns how many bytes the connection carries: 0 for any number.
func (e *endpoint) direct(ctx context.Context, id peer.ID) int64 {
	ctx, cancel := context.WithTimeout(ctx, directTime)
	defer cancel()
	look := time.NewTicker(relaySearch)
	defer look.Stop()
	isNew := func(c network.Conn) bool { return time.Since(c.Stat().Opened) < directTime } // a path may still be punched
	for e.host.Network().Connectedness(id) == network.Limited && slices.ContainsFunc(e.host.Network().ConnsToPeer(id), isNew) {
		select {
		case <-look.C:
		case <-ctx.Done():
			return carries(e.host.Network().ConnsToPeer(id))
		}
	}
	return carries(e.host.Network().ConnsToPeer(id))
}

// carries is what the relayed connections to one peer carry, 0 if one is direct or without a limit.
func carries(all []network.Conn) (most int64) {
	for _, c := range all {
		n, _ := c.Stat().Extra[client.StatLimitData].(uint64)
		if n == 0 {
			return 0
		}
		most = max(most, int64(min(n, math.MaxInt64)))
	}
	return most
}

// mostUseful are at most MaxAddresses: public ones before those of relays, and local ones
// in what room is left. The order within each kind stays.
func mostUseful(all []ma.Multiaddr) []ma.Multiaddr {
	class := func(a ma.Multiaddr) int {
		switch {
		case isRelayed(a):
			return 1
		case manet.IsPublicAddr(a):
			return 0
		}
		return 2
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(x, y ma.Multiaddr) int { return class(x) - class(y) })
	return all[:min(len(all), MaxAddresses)]
}

package mesh

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	basichost "github.com/libp2p/go-libp2p/p2p/host/basic"
	"github.com/libp2p/go-libp2p/p2p/protocol/holepunch"
	"github.com/libp2p/go-libp2p/p2p/protocol/identify"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"ramp/agents"
)

// punching owns the library's service that punches direct paths through NAT. The library
// tries once, when a relayed connection comes in; at that time either side may not yet know
// how others see it. So punching tries again.
type punching struct {
	observed       basichost.ObservedAddrsManager // filled in by the library
	host           punchHost
	service        *holepunch.Service
	direct, failed atomic.Int64
}

// punchHost is the part of the library's host that its service needs.
type punchHost interface {
	host.Host
	IDService() identify.IDService
	AllAddrs() []ma.Multiaddr
}

func (p *punching) start(h host.Host) error {
	whole, ok := h.(punchHost)
	if !ok {
		return fmt.Errorf("host of kind %T cannot punch paths", h)
	}
	p.host = whole
	var err error
	p.service, err = holepunch.NewService(h, whole.IDService(), p.addresses, holepunch.WithTracer(p))
	return err
}

// addresses are this agent's public ones, as few others as one have seen them.
func (p *punching) addresses() []ma.Multiaddr {
	all := slices.Concat(p.host.AllAddrs(), p.observed.Addrs(1))
	return ma.Unique(slices.DeleteFunc(all, func(a ma.Multiaddr) bool { return !manet.IsPublicAddr(a) }))
}

// Trace counts the paths that were punched.
func (p *punching) Trace(e *holepunch.Event) {
	end, ok := e.Evt.(*holepunch.EndHolePunchEvt)
	switch {
	case !ok:
	case end.Success:
		p.direct.Add(1)
	default:
		p.failed.Add(1)
	}
}

// again tries again for the relayed connections that came in, until ctx is done.
func (p *punching) again(ctx context.Context) {
	tries := map[string]int{} // by connection
	for agents.Pause(ctx, time.Second) {
		open := map[string]int{}
		for _, c := range p.host.Network().Conns() {
			if c.Stat().Direction != network.DirInbound || !isRelayed(c.RemoteMultiaddr()) {
				continue
			}
			n := tries[c.ID()]
			ages := [...]time.Duration{2 * time.Second, 8 * time.Second, time.Minute} // at which a direct path is tried again
			if n < len(ages) && time.Since(c.Stat().Opened) > ages[n] && p.ready(c.RemotePeer()) {
				n++
				// Nobody waits for it: it ends with the service, or, if that closes before it
				// has begun, with the program. Trace hears how it ends.
				go func() { _ = p.service.DirectConnect(c.RemotePeer()) }()
			}
			open[c.ID()] = n
		}
		tries = open
	}
	_ = p.service.Close() // it never fails
}

// ready reports whether the service runs, and a peer is reached through relays only.
func (p *punching) ready(id peer.ID) bool {
	return slices.Contains(p.host.Mux().Protocols(), holepunch.Protocol) && p.host.Network().Connectedness(id) == network.Limited
}

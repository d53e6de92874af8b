package mesh

import (
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
)

// standings are the limits of the resource manager. A peer that came without a credential
// has those of a stranger until it shows one.
type standings struct {
	rcmgr.Limiter
	stranger rcmgr.Limit
	strange  func(peer.ID) bool
}

func newStandings(limits rcmgr.PartialLimitConfig, strange func(peer.ID) bool) standings {
	member := rcmgr.NewFixedLimiter(limits.Build(rcmgr.DefaultLimits.AutoScale()))
	limits.PeerDefault = rcmgr.ResourceLimits{
		// Outbound: identify, and the answer to an application for a certificate.
		Streams: 2 * streamsPerStranger, StreamsInbound: streamsPerStranger, StreamsOutbound: streamsPerStranger,
		Conns: maxPerPeer, ConnsInbound: maxPerPeer, ConnsOutbound: maxPerPeer,
		FD: maxPerPeer, Memory: strangerMemory,
	}
	stranger := rcmgr.NewFixedLimiter(limits.Build(rcmgr.DefaultLimits.AutoScale()))
	return standings{Limiter: member, stranger: stranger.GetPeerLimits(""), strange: strange}
}

// GetPeerLimits returns limits that follow the peer's standing.
func (s standings) GetPeerLimits(id peer.ID) rcmgr.Limit {
	return standing{all: s, id: id, member: s.Limiter.GetPeerLimits(id)}
}

// standing is the limit of one peer.
type standing struct {
	all    standings
	id     peer.ID
	member rcmgr.Limit
}

func (s standing) now() rcmgr.Limit {
	if s.all.strange(s.id) {
		return s.all.stranger
	}
	return s.member
}

// The limits as they are now.

func (s standing) GetMemoryLimit() int64                    { return s.now().GetMemoryLimit() }
func (s standing) GetStreamLimit(dir network.Direction) int { return s.now().GetStreamLimit(dir) }
func (s standing) GetStreamTotalLimit() int                 { return s.now().GetStreamTotalLimit() }
func (s standing) GetConnLimit(dir network.Direction) int   { return s.now().GetConnLimit(dir) }
func (s standing) GetConnTotalLimit() int                   { return s.now().GetConnTotalLimit() }
func (s standing) GetFDLimit() int                          { return s.now().GetFDLimit() }

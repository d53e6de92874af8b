package mesh

import (
	"fmt"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	libp2pprotocol "github.com/libp2p/go-libp2p/core/protocol"
)

// refusals is told by the resource manager what it allowed and refused; it
// passes on which peer was refused a stream.
type refusals struct {
	tell func(id peer.ID) // set before the host listens
}

// BlockStream says that a peer has too many streams.
func (r *refusals) BlockStream(id peer.ID, d network.Direction) {
	if d == network.DirInbound {
		r.tell(id)
	}
}

// BlockProtocolPeer says that a peer has too many streams of one protocol.
func (r *refusals) BlockProtocolPeer(_ libp2pprotocol.ID, id peer.ID) { r.tell(id) }

// The others are of no interest: what was refused then was not one peer's fault.

func (r *refusals) AllowConn(network.Direction, bool)      {}
func (r *refusals) BlockConn(network.Direction, bool)      {}
func (r *refusals) AllowStream(peer.ID, network.Direction) {}
func (r *refusals) AllowPeer(peer.ID)                      {}
func (r *refusals) BlockPeer(peer.ID)                      {}
func (r *refusals) AllowProtocol(libp2pprotocol.ID)        {}
func (r *refusals) BlockProtocol(libp2pprotocol.ID)        {}
func (r *refusals) AllowService(string)                    {}
func (r *refusals) BlockService(string)                    {}
func (r *refusals) BlockServicePeer(string, peer.ID)       {}
func (r *refusals) AllowMemory(int)                        {}
func (r *refusals) BlockMemory(int)                        {}

// streamRefused takes a stream that the resource manager refused off the peer's
// allowance, which a peer without a credential does not have.
func (m *Mesh) streamRefused(id peer.ID) {
	c := m.book.peer(id)
	if c == nil || !c.admitStream(m.cfg.Now(), m.cfg.Limits) {
		m.drop(id, fmt.Errorf("too many streams: %w", errBound))
	}
}

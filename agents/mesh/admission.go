package mesh

import (
	"fmt"
	"sync"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	libp2pprotocol "github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
)

// admission keeps peers out of gossip until they have shown a valid credential. It is the
// host that the gossip library sees: it hears of a peer when the peer is admitted, and
// gets no stream of one before.
type admission struct {
	host.Host
	bus     event.Bus
	emitter event.Emitter
	ended   <-chan struct{} // the mesh closes
	known   func(peer.ID) bool

	mu    sync.Mutex
	doors map[peer.ID]chan struct{} // of connected peers; closed once the peer is admitted
}

func newAdmission(h host.Host, ended <-chan struct{}, known func(peer.ID) bool) (*admission, error) {
	a := &admission{Host: h, bus: eventbus.NewBus(), ended: ended, known: known, doors: map[peer.ID]chan struct{}{}}
	var err error
	if a.emitter, err = a.bus.Emitter(new(event.EvtPeerIdentificationCompleted)); err != nil {
		return nil, fmt.Errorf("gossip: %w", err)
	}
	h.Network().Notify(&network.NotifyBundle{DisconnectedF: func(n network.Network, c network.Conn) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if id := c.RemotePeer(); len(n.ConnsToPeer(id)) == 0 {
			delete(a.doors, id)
		}
	}})
	return a, nil
}

// EventBus is the library's source of new peers.
func (a *admission) EventBus() event.Bus { return a.bus }

// SetStreamHandler handles the streams of admitted peers.
func (a *admission) SetStreamHandler(id libp2pprotocol.ID, handle network.StreamHandler) {
	a.Host.SetStreamHandler(id, func(s network.Stream) {
		if !a.await(s.Conn().RemotePeer()) {
			_ = s.Reset() // it may be gone already
			return
		}
		handle(s)
	})
}

// door is closed when a peer is admitted.
func (a *admission) door(id peer.ID) chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	d := a.doors[id]
	if d == nil {
		d = make(chan struct{})
		a.doors[id] = d
	}
	return d
}

// admit admits a peer that has just shown a valid credential. The library ignores those
// that it knows.
func (a *admission) admit(id peer.ID) {
	d := a.door(id)
	a.mu.Lock()
	if !isClosed(d) {
		close(d)
	}
	a.mu.Unlock()
	// An error means that the mesh closes.
	_ = a.emitter.Emit(event.EvtPeerIdentificationCompleted{Peer: id, Protocols: []libp2pprotocol.ID{pubsub.GossipSubID_v11}})
}

// await waits until a peer is admitted, as long as it may take to show a credential. One
// that has been met before has shown it.
func (a *admission) await(id peer.ID) bool {
	if a.known(id) {
		return true
	}
	t := time.NewTimer(HelloTimeout)
	defer t.Stop()
	select {
	case <-a.door(id):
		return true
	case <-a.ended:
	case <-t.C:
	}
	return false
}

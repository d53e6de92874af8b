package mesh

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	libp2pprotocol "github.com/libp2p/go-libp2p/core/protocol"
	ma "github.com/multiformats/go-multiaddr"

	"ramp/agents"
	"ramp/protocol"
	"ramp/protocol/message"
)

// The stream protocols.
const (
	protocolACL           libp2pprotocol.ID = "/ramp/acl/1"
	protocolPresence      libp2pprotocol.ID = "/ramp/presence/1"
	protocolIntroductions libp2pprotocol.ID = "/ramp/introductions/1"
	protocolEnrolment     libp2pprotocol.ID = "/ramp/enrolment/1"
	protocolClock         libp2pprotocol.ID = "/ramp/clock/1"
	protocolBare          libp2pprotocol.ID = "/ramp/bare/1"
)

var _ agents.Transport = (*Mesh)(nil)

// Mesh is one agent's place among the others.
type Mesh struct {
	cfg      Config
	self     protocol.AgentID
	announce []ma.Multiaddr
	host     host.Host
	gate     *gate
	book     *book
	gossip   *gossip
	door     *doorkeeper
	anchors  map[peer.ID]chan struct{} // told when one of them is lost
	presence atomic.Pointer[[]byte]    // this agent's last, encoded
	failures chan undelivered
	counters counters

	// start runs a goroutine until the mesh closes; link runs one that may first
	// empty its queue.
	start, link func(f func(ctx context.Context)) bool
	crew, links crew
	draining    chan struct{}
	stop        context.CancelFunc
	closing     sync.Once
	joined      chan struct{} // closed when everybody whom the first anchor introduced was met
	joining     sync.Once
	joinError   atomic.Pointer[error] // of the last try, or the last that tells more

	mu     sync.Mutex
	writes map[linkKey]*link
}

// Listen makes the host, listens, and begins to join. It returns an
// ErrAddressInUse if another process has a listen address, and ErrNoPeerID if a
// bootstrap address says not who is there; that nobody answers there yet is no
// error.
func Listen(cfg Config) (*Mesh, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	addrs, err := cfg.parse()
	if err != nil {
		return nil, err
	}
	g := newGate(cfg.Now)
	refused := &refusals{}
	h, err := newHost(cfg, g, refused)
	if err != nil {
		return nil, err
	}
	m := newMesh(cfg, h, g)
	refused.tell = m.streamRefused
	m.announce = addrs.announce
	if err := m.open(addrs); err != nil {
		_ = m.Close() // the error before it says more
		return nil, err
	}
	return m, nil
}

func newMesh(cfg Config, h host.Host, g *gate) *Mesh {
	ctx, stop := context.WithCancel(context.Background())
	m := &Mesh{
		cfg: cfg, self: cfg.Credential.ID, host: h, gate: g, book: newBook(h.Network()), door: newDoorkeeper(),
		anchors: map[peer.ID]chan struct{}{}, failures: make(chan undelivered, FailureQueue),
		draining: make(chan struct{}), joined: make(chan struct{}), stop: stop, writes: map[linkKey]*link{},
	}
	m.start = func(f func(context.Context)) bool { return m.crew.run(func() { f(ctx) }) }
	m.link = func(f func(context.Context)) bool { return m.links.run(func() { f(ctx) }) }
	return m
}

// open serves, listens and joins, in this order.
func (m *Mesh) open(addrs addresses) error {
	m.start(m.reportFailures)
	m.start(m.watchCredentials)
	m.serve(protocolACL, m.serveMessages)
	m.serve(protocolPresence, m.serveMeeting)
	m.serve(protocolIntroductions, m.serveIntroductions)
	m.serve(protocolClock, m.serveClock)
	if m.cfg.Enrol != nil {
		m.serve(protocolEnrolment, m.serveEnrolment)
	}
	if m.cfg.Bare != nil {
		m.serve(protocolBare, m.serveBare)
	}
	if m.cfg.Files != nil {
		m.serve(protocolFiles, m.serveFiles)
	}
	if err := m.openGossip(); err != nil {
		return err
	}
	if err := listen(m.host, addrs.listen); err != nil {
		return err
	}
	m.joinBy(addrs.bootstrap)
	if m.cfg.Nearby {
		m.start(m.lookAround)
	}
	return nil
}

// serve handles streams of a protocol until the mesh closes.
func (m *Mesh) serve(id libp2pprotocol.ID, handle func(s network.Stream) error) {
	m.host.SetStreamHandler(id, func(s network.Stream) {
		served := m.crew.call(func() {
			if err := handle(s); err != nil {
				m.cfg.Log.Debug("stream ended", "protocol", id, "peer", s.Conn().RemotePeer(), "err", err)
				_ = s.Reset() // it may be gone already
			}
		})
		if !served {
			_ = s.Reset()
		}
	})
}

// Self is the agent whose mesh this is.
func (m *Mesh) Self() protocol.AgentID { return m.self }

// Addresses are where others reach this agent, each ending in /p2p/ID: what to
// give to those who are to join by it.
func (m *Mesh) Addresses() []string {
	var out []string
	for _, a := range m.reachable() {
		out = append(out, a.String()+"/p2p/"+m.host.ID().String())
	}
	return out
}

func (m *Mesh) reachable() []ma.Multiaddr {
	if len(m.announce) > 0 {
		return m.announce
	}
	addrs, err := m.host.Network().InterfaceListenAddresses()
	if err != nil {
		m.cfg.Log.Warn("cannot read the addresses of this machine", "err", err)
	}
	return addrs[:min(len(addrs), MaxAddresses)]
}

// Known lists the agents that this one has met, those that spoke last first.
func (m *Mesh) Known() []Known { return m.book.all() }

// Send queues msg for its receivers and returns at once. To protocol.Everyone it
// goes by gossip: presences, with the addresses of this agent filled in, on the
// topic of presences, and anything else on that of calls. For each receiver that
// cannot be reached the role hears a failure from protocol.LocalMesh with
// message.Undeliverable: at once if no address is known or the queue is full,
// else within DialTimeout and WriteTimeout.
func (m *Mesh) Send(msg protocol.Message) {
	msg.Sender = m.self
	if p, ok := msg.Body.(message.Presence); ok {
		p.Addresses = texts(m.reachable())
		msg.Body = p
	}
	for _, to := range msg.Receivers {
		// Each is told only of itself: a list of twenty agents is longer than most
		// calls, and whom else one asks is nobody's business.
		msg.Receivers = []protocol.AgentID{to}
		o := &outgoing{message: msg}
		err := error(nil)
		if to == protocol.Everyone {
			err = m.publish(o)
		} else {
			err = m.post(to, protocolACL, o)
		}
		if err != nil {
			m.fail(o, to, err)
		}
	}
}

// deliver hands the role a message; it returns an error once the role is gone.
func (m *Mesh) deliver(msg protocol.Message) error {
	if err := m.cfg.Deliver(msg); err != nil {
		return fmt.Errorf("the role takes no more messages: %w", err)
	}
	return nil
}

func (m *Mesh) reportFailures(ctx context.Context) {
	for {
		select {
		case u := <-m.failures:
			if m.deliver(failure(m.self, u)) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// Close sends what is queued, for at most CloseTimeout, and leaves. It returns
// when every goroutine of the mesh is done, for which Deliver must return.
func (m *Mesh) Close() error {
	var err error
	m.closing.Do(func() { err = m.close() })
	return err
}

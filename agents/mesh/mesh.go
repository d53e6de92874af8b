package mesh

import (
	"context"
	"errors"
	"slices"
	"sync"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	libp2pprotocol "github.com/libp2p/go-libp2p/core/protocol"

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
	protocolVisitor       libp2pprotocol.ID = "/ramp/visitor/1" // that an agent has it is all it says
)

var _ agents.Transport = (*Mesh)(nil)

// Mesh is one agent's connection to the others. It owns only its parts, which depend
// on each other in one direction:
//
//	joining --> meetings --> delivery
//	gossip ---> meetings, links --> delivery
//	all ------> endpoint --> contacts, gate, lifetime
type Mesh struct {
	ep       *endpoint
	counters *counters
	delivery *delivery
	links    *links
	meetings *meetings
	gossip   *gossip
	joining  *joining
	revoked  *revocations
	closing  sync.Once
}

// Listen creates the host, listens, and begins to join. It returns ErrAddressInUse if
// another process has a listen address, and ErrNoPeerID if a bootstrap address does not
// name a peer. It does not matter whether anybody answers at those addresses yet.
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
	denied := &denials{}
	r := &reach{cfg: cfg, open: !isLocal(cfg), onlyRelay: slices.Contains(cfg.Announce, circuit), begun: make(chan struct{}), met: make(chan struct{}, 1)}
	t := &traffic{}
	h, err := newHost(cfg, g, denied, r, t)
	if err != nil {
		return nil, err
	}
	m := newMesh(cfg, h, g, r)
	m.ep.traffic = t
	if m.ep.admission, err = newAdmission(h, m.ep.life.draining, g.strangers.known); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	denied.report = m.ep.chargeStream
	h.Network().Notify(&network.NotifyBundle{DisconnectedF: func(_ network.Network, c network.Conn) { g.strangers.ended(c) }})
	if err := m.open(addrs); err != nil {
		_ = m.Close() // the first error says more
		return nil, err
	}
	return m, nil
}

func newMesh(cfg Config, h host.Host, g *gate, r *reach) *Mesh {
	c := &counters{}
	ep := &endpoint{cfg: cfg, host: h, gate: g, reach: r, contacts: newContacts(h.Network()), counters: c, life: newLifetime()}
	ep.strangers = g.strangers
	g.strangers.known = func(id peer.ID) bool { return ep.contacts.ofPeer(id) != nil }
	d := &delivery{cfg: cfg, counters: c, failures: make(chan *undelivered, FailureQueue)}
	m := &Mesh{
		ep: ep, counters: c, delivery: d,
		links:    &links{ep: ep, delivery: d, links: map[linkKey]*link{}},
		meetings: &meetings{ep: ep, delivery: d},
	}
	m.gossip = &gossip{
		ep: ep, delivery: d, meetings: m.meetings, links: m.links,
		topics: map[string]*pubsub.Topic{}, queue: make(chan *outgoing, publishQueue),
	}
	m.revoked = &revocations{ep: ep, news: make(chan struct{}, 1)}
	m.joining = &joining{
		ep: ep, meetings: m.meetings, revoked: m.revoked, anchors: map[peer.ID]chan struct{}{},
		joined: milestone{reached: make(chan struct{})}, followed: milestone{reached: make(chan struct{})},
	}
	return m
}

// open serves, listens and joins, in this order.
func (m *Mesh) open(addrs addresses) error {
	m.ep.life.start(m.delivery.reportFailures)
	m.ep.life.start(m.ep.watchCredentials)
	m.ep.serve(protocolACL, m.links.serveMessages)
	m.ep.serve(protocolPresence, m.meetings.serve)
	m.ep.serve(protocolIntroductions, m.ep.serveIntroductions)
	m.ep.serve(protocolClock, m.ep.serveClock)
	if m.ep.cfg.Visitor {
		m.ep.serve(protocolVisitor, func(network.Stream) error { return errMalformed })
	}
	if m.ep.cfg.Enrol != nil {
		m.ep.serve(protocolEnrolment, newEnrolment(m.ep).serve)
	}
	if m.ep.cfg.Bare != nil {
		m.ep.serve(protocolBare, m.links.serveBare)
	}
	if m.ep.cfg.Files != nil {
		m.ep.serve(protocolFiles, m.ep.serveFiles)
	}
	if err := m.gossip.open(); err != nil {
		return err
	}
	if err := m.ep.reach.start(m.ep, m.meetings.moved); err != nil {
		return err
	}
	if err := listen(m.ep.host, addrs.listen, listenQUIC(addrs), m.ep.cfg.Log); err != nil {
		return err
	}
	m.joining.joinBy(addrs.bootstrap)
	if m.ep.cfg.Revocations != nil {
		m.ep.serve(protocolRevocations, m.revoked.serve)
		m.ep.life.start(m.revoked.run)
	}
	if m.ep.cfg.Peers != nil {
		m.ep.life.start((&keeper{joining: m.joining}).run)
	}
	if m.ep.cfg.Nearby {
		m.ep.life.start((&neighbours{joining: m.joining, known: map[peer.ID]*neighbour{}}).search)
	}
	return nil
}

// Self is the agent whose mesh this is.
func (m *Mesh) Self() protocol.AgentID { return m.ep.cfg.Credential.ID }

// Addresses are where others reach this agent, each ending in /p2p/ID: the bootstrap
// addresses of those who join through it.
func (m *Mesh) Addresses() []string {
	var out []string
	for _, a := range m.ep.addresses() {
		out = append(out, a.String()+"/p2p/"+m.ep.host.ID().String())
	}
	return out
}

// Peers is the number of agents that this one is connected to.
func (m *Mesh) Peers() int { return len(m.ep.host.Network().Peers()) }

// Reach is how others reach this agent, and by which paths it reaches them.
func (m *Mesh) Reach() Reach { return m.ep.reach.report() }

// Known lists the agents that this one has met, the most recently heard first.
func (m *Mesh) Known() []Known { return m.ep.contacts.all() }

// Joined waits until this agent has met one of the bootstrap agents, a kept one or a
// nearby one. It meets the others in the background; see Acquainted. If joining takes
// longer than ctx, the error wraps ctx's and that of the last attempt. It returns at once
// without Nearby and without bootstrap addresses other than this agent's own.
func (m *Mesh) Joined(ctx context.Context) error { return m.joining.await(ctx) }

// Recheck verifies the credentials of all known agents again, and cuts off and forgets those that
// are no longer valid, so that gossip of theirs is refused too. Call it when Trust has changed.
func (m *Mesh) Recheck() {
	m.ep.recheck()
	m.revoked.tell()
}

// Queued counts the messages that wait for an agent to read them.
func (m *Mesh) Queued(to protocol.AgentID) (n int) {
	m.links.mu.Lock()
	defer m.links.mu.Unlock()
	if c := m.ep.contacts.ofAgent(to); c != nil && m.links.links[linkKey{c.peer, protocolACL}] != nil {
		n = len(m.links.links[linkKey{c.peer, protocolACL}].queue)
	}
	return n
}

// Send queues msg for its receivers and returns at once. Messages to protocol.Everyone
// go by gossip: presences, which get this agent's addresses, on the topic of presences,
// and anything else on that of calls. For each receiver that cannot be reached the role
// receives a failure from protocol.LocalMesh with message.Undeliverable: at once if no
// address is known or the queue is full, otherwise within DialTimeout and WriteTimeout.
// Records to protocol.LocalMesh say where sellers are.
func (m *Mesh) Send(msg protocol.Message) {
	msg.Sender = m.Self()
	if p, ok := msg.Body.(message.Presence); ok {
		p.Addresses, p.Issued = texts(m.ep.addresses()), m.ep.cfg.Now().UTC()
		msg.Body = p
	}
	var shared func() ([]byte, error)
	if len(msg.Receivers) > 1 {
		one := msg
		one.Receivers = msg.Receivers[:1]
		shared = sync.OnceValues(func() ([]byte, error) { return m.delivery.cfg.Codec.Encode(one) })
	}
	for _, to := range msg.Receivers {
		// Each receiver sees only itself: a list of twenty agents is longer than most
		// calls, and no receiver needs to know the others.
		msg.Receivers = []protocol.AgentID{to}
		o := &outgoing{message: msg}
		err := error(nil)
		switch to {
		case protocol.Everyone:
			err = m.gossip.publish(o)
		case protocol.LocalMesh:
			if r, ok := msg.Body.(message.Records); ok { // of sellers, which an index brought
				m.ep.learn(r.List)
			}
		default:
			o.shared = shared
			err = m.links.post(to, protocolACL, o)
		}
		if err != nil {
			m.delivery.fail(o, to, err)
		}
	}
}

// Close sends the queued messages, for at most CloseTimeout, and leaves. It returns when
// every goroutine of the mesh has ended, for which Deliver must return.
func (m *Mesh) Close() error {
	var err error
	m.closing.Do(func() { err = m.close() })
	return err
}

func (m *Mesh) close() error {
	m.links.drain()
	flushed, err := m.ep.life.end(m.ep.host.Close)
	if !flushed {
		m.ep.cfg.Log.Warn("closed before every message was sent", "after", CloseTimeout)
	}
	return err
}

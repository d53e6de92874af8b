package mesh

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/peer"

	"ramp/protocol"
	"ramp/protocol/message"
)

// The topics.
const (
	topicPresence = "ramp/presence/1"
	topicCalls    = "ramp/cfp/1"
)

// gossip is this agent's part in the topics.
type gossip struct {
	topics map[string]*pubsub.Topic
	queue  chan *outgoing
}

// heard is what a validator found in a message of gossip.
type heard struct {
	contact *contact
	bytes   []byte
}

func (m *Mesh) openGossip() error {
	joined := make(chan error, 1)
	m.gossip = &gossip{topics: map[string]*pubsub.Topic{}, queue: make(chan *outgoing, publishQueue)}
	if !m.start(func(ctx context.Context) { joined <- m.joinTopics(ctx) }) {
		return ErrClosed
	}
	if err := <-joined; err != nil {
		return err
	}
	m.link(m.publishAll)
	return nil
}

func (m *Mesh) joinTopics(ctx context.Context) error {
	ps, err := pubsub.NewGossipSub(ctx, m.host,
		pubsub.WithMessageSignaturePolicy(pubsub.StrictSign), // the author's key is the certificate's
		pubsub.WithMaxMessageSize(protocol.MaxMessage+MaxCard+gossipOverhead),
		pubsub.WithPeerOutboundQueueSize(gossipQueue),
		pubsub.WithValidateQueueSize(validateQueue),
		pubsub.WithSubscriptionFilter(pubsub.WrapLimitSubscriptionFilter(
			pubsub.NewAllowlistSubscriptionFilter(topicPresence, topicCalls), 2)),
	)
	if err != nil {
		return fmt.Errorf("gossip: %w", err)
	}
	hears := map[string]bool{topicPresence: m.cfg.HearPresence, topicCalls: m.cfg.HearCalls}
	for _, name := range []string{topicPresence, topicCalls} {
		if err := m.joinTopic(ps, name, hears[name]); err != nil {
			return fmt.Errorf("gossip topic %s: %w", name, err)
		}
	}
	return nil
}

func (m *Mesh) joinTopic(ps *pubsub.PubSub, name string, hear bool) error {
	// Inline: validators run in the library's few workers, behind a bounded queue.
	err := ps.RegisterTopicValidator(name, func(_ context.Context, from peer.ID, msg *pubsub.Message) pubsub.ValidationResult {
		return m.validate(name, from, msg)
	}, pubsub.WithValidatorInline(true))
	if err != nil {
		return err
	}
	topic, err := ps.Join(name)
	if err != nil {
		return err
	}
	m.gossip.topics[name] = topic
	if !hear {
		return nil
	}
	sub, err := topic.Subscribe(pubsub.WithBufferSize(hearQueue))
	if err != nil {
		return err
	}
	m.start(func(ctx context.Context) { m.listenTo(ctx, name, sub) })
	return nil
}

// publish queues o for the topic of its kind.
func (m *Mesh) publish(o *outgoing) error {
	select {
	case <-m.draining:
		return ErrClosed
	default:
	}
	select {
	case m.gossip.queue <- o:
		return nil
	default:
		return fmt.Errorf("%d messages wait to be published: %w", publishQueue, ErrBusy)
	}
}

func (m *Mesh) publishAll(ctx context.Context) {
	for {
		select {
		case o := <-m.gossip.queue:
			m.publishOrFail(ctx, o)
		case <-m.draining:
			for len(m.gossip.queue) > 0 {
				m.publishOrFail(ctx, <-m.gossip.queue)
			}
			return
		}
	}
}

func (m *Mesh) publishOrFail(ctx context.Context, o *outgoing) {
	if err := m.publishOne(ctx, o); err != nil {
		m.fail(o, protocol.Everyone, err)
	}
}

func (m *Mesh) publishOne(ctx context.Context, o *outgoing) error {
	b, err := m.encode(o)
	if err != nil {
		return err
	}
	name := topicCalls
	if p, ok := o.message.Body.(message.Presence); ok {
		name = topicPresence
		if before := m.presence.Swap(&b); p.TTL == 0 {
			m.tell(ctx, func(*contact) bool { return true })
		} else if before == nil {
			m.start(m.introduceSelf)
		}
	}
	if name == topicCalls {
		m.callFresh(o.message)
	}
	m.counters.messagesOut.Add(1)
	m.counters.bytesOut.Add(uint64(len(b)))
	return m.gossip.topics[name].Publish(ctx, appendField(appendField(nil, m.card().encode()), b))
}

// callFresh calls the sellers that were met just now directly as well: until the
// library has exchanged topics with a peer, and built its own streams, it would
// tell it nothing, and it never tells a call afterwards. A seller that hears a
// call twice answers as before.
func (m *Mesh) callFresh(call protocol.Message) {
	for _, to := range m.book.fresh(m.cfg.Now()) {
		call.Receivers = []protocol.AgentID{to}
		_ = m.post(to, protocolACL, &outgoing{message: call}) // if there is no room, gossip may still reach it
	}
}

// validate decides whether a message of gossip is passed on. The library has
// verified the author's signature; this verifies that the author's key is that
// of a valid certificate, and that the message is new.
func (m *Mesh) validate(topic string, from peer.ID, msg *pubsub.Message) pubsub.ValidationResult {
	if from == m.host.ID() {
		return pubsub.ValidationAccept
	}
	h, err := m.readGossip(msg)
	if isFault(err) {
		m.blameForwarder(from, err)
		return pubsub.ValidationReject
	}
	if err != nil {
		m.noteForeign(from, err)
		return pubsub.ValidationIgnore
	}
	if seq := msg.GetSeqno(); len(seq) != 8 || !h.contact.admitGossip(topic, binary.BigEndian.Uint64(seq), m.cfg.Now(), m.cfg.Limits) {
		m.counters.dropped.Add(1)
		return pubsub.ValidationIgnore
	}
	msg.ValidatorData = h
	return pubsub.ValidationAccept
}

func (m *Mesh) readGossip(msg *pubsub.Message) (heard, error) {
	f := fields{rest: msg.GetData()}
	shown, b := f.field(), f.field()
	if err := f.finish(); err != nil {
		return heard{}, err
	}
	if len(b) > protocol.MaxMessage {
		return heard{}, fmt.Errorf("message of %d bytes, at most %d: %w", len(b), protocol.MaxMessage, errBound)
	}
	c, err := m.meetCard(msg.GetFrom(), slices.Clone(shown))
	return heard{c, b}, err
}

// blameForwarder notes that a peer passed on what it should have rejected.
func (m *Mesh) blameForwarder(from peer.ID, why error) {
	m.counters.refused.Add(1)
	c := m.book.peer(from)
	if c == nil || c.blame(m.cfg.Now(), m.cfg.Limits) {
		m.drop(from, fmt.Errorf("it passes on invalid gossip: %w", why))
	}
}

// noteForeign notes that a peer passed on what its own trust may allow, but this
// agent's does not.
func (m *Mesh) noteForeign(from peer.ID, why error) {
	m.counters.refused.Add(1)
	c := m.book.peer(from)
	if c == nil || !c.admitForeign(m.cfg.Now(), m.cfg.Limits) {
		m.drop(from, fmt.Errorf("it passes on too much gossip of agents that are not trusted here: %w", why))
	}
}

// listenTo delivers what is heard on a topic.
func (m *Mesh) listenTo(ctx context.Context, topic string, sub *pubsub.Subscription) {
	defer sub.Cancel()
	for {
		msg, err := sub.Next(ctx)
		if err != nil {
			return
		}
		h, ok := msg.ValidatorData.(heard)
		if !ok {
			continue // this agent's own
		}
		if err := m.hearGossip(topic, h); err != nil {
			m.cfg.Log.Debug("gossip not heard", "topic", topic, "from", h.contact.agent, "err", err)
		}
	}
}

func (m *Mesh) hearGossip(topic string, h heard) error {
	if topic == topicPresence {
		return m.hear(h.contact, h.bytes)
	}
	m.counters.messagesIn.Add(1)
	m.counters.bytesIn.Add(uint64(len(h.bytes)))
	msg, err := m.cfg.Codec.Open(h.bytes, h.contact.agent, m.cfg.Now())
	if err == nil && msg.Performative != protocol.CFP {
		err = fmt.Errorf("%s on the topic of calls: %w", msg.Performative, errMalformed)
	}
	if err != nil {
		m.counters.refused.Add(1)
		return err
	}
	return m.deliver(msg)
}

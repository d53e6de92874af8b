package mesh

import (
	"context"
	"fmt"
	"sync/atomic"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/peer"

	"ramp/agents/framing"
	"ramp/protocol"
	"ramp/protocol/message"
)

// The topics.
const (
	topicPresence = "ramp/presence/1"
	topicCalls    = "ramp/cfp/1"
)

// gossip owns this agent's membership of the topics, and the queue of its own messages to them.
type gossip struct {
	ep       *endpoint
	delivery *delivery
	meetings *meetings
	links    *links
	topics   map[string]*pubsub.Topic
	queue    chan *outgoing
	scores   atomic.Pointer[map[peer.ID]float64]
}

// heard is a gossiped message with its author, as the validator found them.
type heard struct {
	contact *contact
	message protocol.Message
}

func (g *gossip) open() error {
	joined := make(chan error, 1)
	if !g.ep.life.start(func(ctx context.Context) { joined <- g.joinTopics(ctx) }) {
		return ErrClosed
	}
	if err := <-joined; err != nil {
		return err
	}
	g.ep.life.startWriter(g.publishAll)
	return nil
}

func (g *gossip) joinTopics(ctx context.Context) error {
	ps, err := pubsub.NewGossipSub(ctx, g.ep.admission, append(g.scoring(),
		pubsub.WithMessageSignaturePolicy(pubsub.StrictSign), // the author's key is the certificate's
		pubsub.WithGossipSubParams(gossipParams(g.ep.cfg.Visitor, !g.ep.cfg.Visitor && !g.ep.cfg.HearCalls)),
		pubsub.WithMaxMessageSize(maxCall+MaxCard+gossipOverhead),
		pubsub.WithPeerOutboundQueueSize(gossipQueue),
		pubsub.WithValidateQueueSize(validateQueue),
		pubsub.WithSubscriptionFilter(pubsub.WrapLimitSubscriptionFilter(
			pubsub.NewAllowlistSubscriptionFilter(topicPresence, topicCalls), 2)),
	)...)
	if err != nil {
		return fmt.Errorf("gossip: %w", err)
	}
	hears := map[string]bool{topicPresence: g.ep.cfg.HearPresence, topicCalls: g.ep.cfg.HearCalls}
	for _, name := range []string{topicPresence, topicCalls} {
		if err := g.joinTopic(ps, name, hears[name]); err != nil {
			return fmt.Errorf("gossip topic %s: %w", name, err)
		}
	}
	return nil
}

// gossipParams are the library's, except for what costs most: presences are small and come
// again, so a few neighbours and rare lists of recent messages are enough. A bank, which may be
// the only one that others reach, tells more of them.
func gossipParams(visitor, bank bool) pubsub.GossipSubParams {
	p := pubsub.DefaultGossipSubParams()
	p.HeartbeatInterval = gossipBeat
	if visitor {
		p.HeartbeatInterval = visitorBeat
	}
	p.D, p.Dlo, p.Dhi, p.Dout, p.Dscore = meshDegree, meshDegree-1, meshDegree+4, 1, meshDegree-1
	if !bank {
		p.Dhi, p.Dlazy, p.HistoryGossip = meshDegree+2, lazyDegree, lazyBeats
	}
	p.GossipFactor, p.IDontWantMessageThreshold = lazyShare, unwantedFrom
	return p
}

func (g *gossip) joinTopic(ps *pubsub.PubSub, name string, hear bool) error {
	// Inline: validators run in the library's few workers, behind a bounded queue.
	err := ps.RegisterTopicValidator(name, func(_ context.Context, from peer.ID, msg *pubsub.Message) pubsub.ValidationResult {
		return g.validate(name, from, msg)
	}, pubsub.WithValidatorInline(true))
	if err != nil {
		return err
	}
	topic, err := ps.Join(name)
	if err != nil {
		return err
	}
	g.topics[name] = topic
	if !hear {
		return nil
	}
	sub, err := topic.Subscribe(pubsub.WithBufferSize(hearQueue))
	if err != nil {
		return err
	}
	g.ep.life.start(func(ctx context.Context) { g.listenTo(ctx, name, sub) })
	return nil
}

// publish queues o for its topic.
func (g *gossip) publish(o *outgoing) error {
	if isClosed(g.ep.life.draining) {
		return ErrClosed
	}
	select {
	case g.queue <- o:
		return nil
	default:
		return fmt.Errorf("%d messages wait to be published: %w", publishQueue, ErrBusy)
	}
}

func (g *gossip) publishAll(ctx context.Context) {
	for {
		select {
		case o := <-g.queue:
			g.publishOrFail(ctx, o)
		case <-g.ep.life.draining:
			for len(g.queue) > 0 {
				g.publishOrFail(ctx, <-g.queue)
			}
			return
		}
	}
}

func (g *gossip) publishOrFail(ctx context.Context, o *outgoing) {
	if err := g.publishOne(ctx, o); err != nil {
		g.delivery.fail(o, protocol.Everyone, err)
	}
}

func (g *gossip) publishOne(ctx context.Context, o *outgoing) error {
	b, err := g.delivery.encode(o)
	if err != nil {
		return err
	}
	name := topicCalls
	if p, ok := o.message.Body.(message.Presence); ok {
		name = topicPresence
		g.meetings.announce(ctx, p, b)
	} else {
		g.callNewSellers(o.message)
	}
	if most := mostOf(name); len(b) > most {
		return fmt.Errorf("%s of %d bytes, at most %d go by gossip: %w", kindOf(o.message), len(b), most, errBound)
	}
	g.ep.counters.countOut(b)
	return g.topics[name].Publish(ctx, framing.AppendField(framing.AppendField(nil, g.ep.card().encode()), b))
}

// callNewSellers sends a call directly to the sellers met a moment ago as well. The library gossips
// nothing to a peer before it has exchanged topics with it and built its own streams, and never
// repeats a call afterwards. A seller that gets a call twice gives the same answer.
func (g *gossip) callNewSellers(call protocol.Message) {
	for _, to := range g.ep.contacts.newSellers(g.ep.cfg.Now()) {
		call.Receivers = []protocol.AgentID{to}
		_ = g.links.post(to, protocolACL, &outgoing{message: call}) // if the queue is full, gossip may still reach it
	}
}

// listenTo delivers the messages of a topic.
func (g *gossip) listenTo(ctx context.Context, topic string, sub *pubsub.Subscription) {
	defer sub.Cancel()
	for {
		msg, err := sub.Next(ctx)
		if err != nil {
			return
		}
		h, ok := msg.ValidatorData.(heard)
		if !ok {
			continue // sent by this agent
		}
		if err := g.hear(topic, h); err != nil {
			g.ep.cfg.Log.Debug("gossip not delivered", "topic", topic, "from", h.contact.agent, "err", err)
		}
	}
}

func (g *gossip) hear(topic string, h heard) error {
	if topic == topicPresence {
		return g.meetings.accept(h.contact, h.message)
	}
	return g.delivery.deliver(h.message)
}

package mesh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"ramp/agents/framing"
	"ramp/protocol"
	"ramp/protocol/message"
)

// kindTag marks verified agents for the connection manager; a bank's connection is more valuable.
const kindTag = "ramp-kind"

var kindValue = map[protocol.Kind]int{protocol.KindUser: 10, protocol.KindResource: 10, protocol.KindBank: 50}

// isFault reports whether a peer, and not the network, is to blame.
func isFault(err error) bool {
	return errors.Is(err, errBound) || errors.Is(err, errMalformed) || errors.Is(err, errMismatch)
}

// meetings owns this agent's current presence, and exchanges it for those of others.
type meetings struct {
	ep       *endpoint
	delivery *delivery
	presence atomic.Pointer[[]byte] // encoded; nil before the first
}

// announce replaces this agent's presence. Contacts get the first presence directly, because gossip
// reaches nobody before the topic's mesh is built, and also one that says good-bye.
func (m *meetings) announce(ctx context.Context, p message.Presence, encoded []byte) {
	if before := m.presence.Swap(&encoded); p.TTL == 0 {
		m.tell(ctx, everybody)
	} else if before == nil {
		m.ep.life.start(func(ctx context.Context) { m.tell(ctx, func(c *contact) bool { return !c.current().greeted }) })
	}
}

// current returns this agent's presence, or nil before the first.
func (m *meetings) current() []byte {
	if p := m.presence.Load(); p != nil {
		return *p
	}
	return nil
}

// tell sends this agent's presence to the connected agents that match a condition.
func (m *meetings) tell(ctx context.Context, match func(c *contact) bool) {
	inTurn(ctx, slices.Values(m.ep.connected(match)), func(ctx context.Context, c *contact) {
		if err := m.meetOnce(ctx, c.peer, m.current()); err != nil {
			m.ep.cfg.Log.Debug("presence not sent", "peer", c.peer, "err", err)
		}
	})
}

// moved shows this agent's new addresses to the connected agents.
func (m *meetings) moved(ctx context.Context) { m.tell(ctx, everybody) }

// meet exchanges cards and presences with a peer. Afterwards each has verified the
// other, and the role has received the other's current presence first-hand. If this
// agent made its own first presence meanwhile, they meet once more.
func (m *meetings) meet(ctx context.Context, id peer.ID) error {
	if err := m.meetOnce(ctx, id, m.current()); err != nil {
		return fmt.Errorf("meet %s: %w", id, err)
	}
	if c, now := m.ep.contacts.ofPeer(id), m.current(); now != nil && c != nil && !c.current().greeted {
		return m.meetOnce(ctx, id, now)
	}
	return nil
}

func (m *meetings) meetOnce(ctx context.Context, id peer.ID, own []byte) error {
	s, w, err := m.ep.dial(ctx, id, protocolPresence, MeetTimeout)
	if err != nil {
		return err
	}
	if err := m.exchange(s, w, own); err != nil {
		_ = s.Reset()
		return err
	}
	return s.Close()
}

// exchange is the meeting on the side that opened the stream.
func (m *meetings) exchange(s network.Stream, w *bufio.Writer, own []byte) error {
	if err := s.SetWriteDeadline(time.Now().Add(HelloTimeout)); err != nil {
		return err
	}
	if err := errors.Join(framing.Write(w, own), w.Flush(), s.CloseWrite()); err != nil {
		return err
	}
	r := bufio.NewReaderSize(s, smallBuffer)
	c, err := m.ep.readCard(s, r)
	if err != nil {
		return err
	}
	if err := m.readPresence(c, s, r); err != nil {
		return err
	}
	c.meets(own != nil)
	return nil
}

// serve is the meeting on the side that accepted the stream.
func (m *meetings) serve(s network.Stream) error {
	c, r, err := m.ep.greet(s)
	if err != nil {
		return err
	}
	// Loaded after the contact was made: announce finds the contact if the first
	// presence is made after this, and sends it.
	own := m.current()
	if err := framing.WriteOne(s, own); err != nil {
		return err
	}
	if err := m.readPresence(c, s, r); err != nil {
		return err
	}
	c.meets(own != nil)
	return s.Close()
}

func (m *meetings) readPresence(c *contact, s network.Stream, r *bufio.Reader) error {
	b, err := m.ep.take(s, r, protocol.MaxMessage)
	if err != nil {
		return fmt.Errorf("presence of %s: %w", c.agent, err)
	}
	if len(b) == 0 {
		return nil
	}
	return m.hear(c, b)
}

// hear records a presence with its contact and delivers it to the role. Any other
// message is a fault.
func (m *meetings) hear(c *contact, b []byte) error {
	msg, err := m.delivery.open(b, c.agent)
	if _, ok := msg.Body.(message.Presence); err == nil && !ok {
		err = fmt.Errorf("%s where a presence is expected: %w", kindOf(msg), errMalformed)
	}
	now := m.ep.cfg.Now()
	if err != nil {
		m.ep.counters.refused.Add(1)
		if !c.charge(&c.faults, now, m.ep.cfg.Limits.Faults) {
			m.ep.drop(c.peer, err)
		}
		return err
	}
	return m.accept(c, msg)
}

// accept records a valid presence with its contact and delivers it to the role.
func (m *meetings) accept(c *contact, msg protocol.Message) error {
	p := msg.Body.(message.Presence) // its callers have seen to it
	if p.Index > 0 {
		p.Issuer = c.authority()
		msg.Body = p
	}
	c.hear(p, m.ep.cfg.Now())
	m.ep.host.ConnManager().TagPeer(c.peer, kindTag, kindValue[p.Agent])
	return m.delivery.deliver(msg)
}

package mesh

import (
	"context"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	libp2pprotocol "github.com/libp2p/go-libp2p/core/protocol"

	"ramp/protocol"
)

// linkTag marks peers that are written to, for the connection manager, which
// trims connections of the least worth first.
const (
	linkTag   = "ramp-link"
	linkWorth = 100
)

type linkKey struct {
	peer     peer.ID
	protocol libp2pprotocol.ID
}

// link is the queue for one peer and the goroutine that writes it to one kept
// stream, opened when there is something to send and again after it was lost.
type link struct {
	key   linkKey
	to    protocol.AgentID
	queue chan *outgoing

	stream  *outbound // nil until one is open
	wait    time.Duration
	retryAt time.Time // no dial before
}

// post queues o for an agent.
func (m *Mesh) post(to protocol.AgentID, via libp2pprotocol.ID, o *outgoing) error {
	c := m.book.agent(to)
	if c == nil {
		return ErrUnknownAgent
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l, err := m.linkTo(linkKey{c.peer, via}, to)
	if err != nil {
		return err
	}
	select {
	case l.queue <- o:
		return nil
	default:
		return fmt.Errorf("%d messages: %w", QueueLength, ErrBusy)
	}
}

// linkTo returns the link of a key, and starts it if there is none. The caller
// holds m.mu.
func (m *Mesh) linkTo(key linkKey, to protocol.AgentID) (*link, error) {
	select {
	case <-m.draining:
		return nil, ErrClosed
	default:
	}
	if l := m.writes[key]; l != nil {
		return l, nil
	}
	if len(m.writes) >= MaxLinks {
		return nil, fmt.Errorf("%d agents are written to: %w", MaxLinks, errBound)
	}
	l := &link{key: key, to: to, queue: make(chan *outgoing, QueueLength)}
	m.writes[key] = l
	m.host.ConnManager().TagPeer(key.peer, linkTag, linkWorth)
	m.link(func(ctx context.Context) { m.write(ctx, l) })
	return l, nil
}

// retire ends a link that has nothing to write.
func (m *Mesh) retire(l *link) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(l.queue) > 0 {
		return false
	}
	delete(m.writes, l.key)
	m.host.ConnManager().UntagPeer(l.key.peer, linkTag)
	return true
}

// write is the goroutine of a link.
func (m *Mesh) write(ctx context.Context, l *link) {
	defer func() { l.shut() }()
	idle, used := time.NewTimer(LinkIdle), false
	defer idle.Stop()
	for {
		select {
		case o := <-l.queue:
			m.send(ctx, l, l.gather(o))
			used = true
		case <-l.lost():
			l.shut()
		case <-idle.C:
			if !used && m.retire(l) {
				return
			}
			used = false
			idle.Reset(LinkIdle)
		case <-m.draining:
			for len(l.queue) > 0 { // nothing is queued any more
				m.send(ctx, l, l.gather(<-l.queue))
			}
			return
		}
	}
}

// gather takes what else is waiting, to share a flush.
func (l *link) gather(first *outgoing) []*outgoing {
	batch := []*outgoing{first}
	for len(batch) < MaxBatch {
		select {
		case o := <-l.queue:
			batch = append(batch, o)
		default:
			return batch
		}
	}
	return batch
}

// send writes a batch, over a new stream if the kept one turns out to be lost.
func (m *Mesh) send(ctx context.Context, l *link, batch []*outgoing) {
	batch, frames := m.encoded(batch, l.to)
	if len(frames) == 0 {
		return
	}
	kept := l.stream != nil && !l.stream.isLost()
	err := m.sendOnce(ctx, l, frames)
	if err != nil && kept {
		err = m.sendOnce(ctx, l, frames)
	}
	for _, o := range batch {
		if err != nil {
			m.fail(o, l.to, err)
		}
	}
}

// encoded leaves out, and reports, what cannot be encoded.
func (m *Mesh) encoded(batch []*outgoing, to protocol.AgentID) (good []*outgoing, frames [][]byte) {
	for _, o := range batch {
		b, err := m.encode(o)
		if err == nil && len(b) > protocol.MaxMessage {
			err = fmt.Errorf("message of %d bytes, at most %d: %w", len(b), protocol.MaxMessage, errBound)
		}
		if err != nil {
			m.cfg.Log.Error("message cannot be encoded", "kind", kindOf(o.message), "err", err)
			m.fail(o, to, err)
			continue
		}
		good, frames = append(good, o), append(frames, b)
	}
	return good, frames
}

func kindOf(msg protocol.Message) string {
	if msg.Body == nil {
		return "bare"
	}
	return msg.Body.Kind()
}

func (m *Mesh) sendOnce(ctx context.Context, l *link, frames [][]byte) error {
	if l.stream != nil && l.stream.isLost() {
		l.shut()
	}
	if l.stream == nil {
		if err := m.reopen(ctx, l); err != nil {
			return err
		}
	}
	if err := l.stream.write(frames); err != nil {
		l.shut()
		return err
	}
	for _, b := range frames {
		m.counters.messagesOut.Add(1)
		m.counters.bytesOut.Add(uint64(len(b)))
	}
	return nil
}

// reopen opens a stream, unless the last try has failed just now.
func (m *Mesh) reopen(ctx context.Context, l *link) error {
	if time.Now().Before(l.retryAt) && !m.book.connected(l.key.peer) {
		return fmt.Errorf("%s could not be reached %s ago at most", l.to, RedialMost)
	}
	s, err := m.openStream(ctx, l.key.peer, l.key.protocol)
	if err != nil {
		l.wait = min(max(2*l.wait, RedialFirst), RedialMost)
		l.retryAt = time.Now().Add(l.wait)
		return err
	}
	l.wait, l.retryAt, l.stream = 0, time.Time{}, s
	return nil
}

// shut gives the stream up; closing it in good order costs a peer that follows
// the protocol nothing.
func (l *link) shut() {
	if l.stream != nil {
		l.stream.close()
		l.stream = nil
	}
}

func (l *link) lost() <-chan struct{} {
	if l.stream == nil {
		return nil
	}
	return l.stream.lost
}

package mesh

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	libp2pprotocol "github.com/libp2p/go-libp2p/core/protocol"

	"ramp/agents"
	"ramp/protocol"
)

// linkTag marks peers that this agent writes to. The connection manager closes
// connections of the lowest value first.
const (
	linkTag   = "ramp-link"
	linkValue = 100
)

// links owns the long-lived streams of messages: for each peer and protocol one
// link that writes, and one stream that is read.
type links struct {
	ep       *endpoint
	delivery *delivery

	mu    sync.Mutex // also held while draining begins: afterwards nothing is queued
	links map[linkKey]*link
}

type linkKey struct {
	peer     peer.ID
	protocol libp2pprotocol.ID
}

// post queues o for an agent.
func (ls *links) post(to protocol.AgentID, via libp2pprotocol.ID, o *outgoing) error {
	c := ls.ep.contacts.ofAgent(to)
	if c == nil {
		return ErrUnknownAgent
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l, err := ls.linkTo(linkKey{c.peer, via}, to)
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

// linkTo returns the link of a key, and starts one if needed. The caller holds ls.mu.
func (ls *links) linkTo(key linkKey, to protocol.AgentID) (*link, error) {
	if isClosed(ls.ep.life.draining) {
		return nil, ErrClosed
	}
	if l := ls.links[key]; l != nil {
		return l, nil
	}
	if len(ls.links) >= MaxLinks {
		return nil, fmt.Errorf("already writing to %d agents: %w", MaxLinks, errBound)
	}
	l := &link{ep: ls.ep, delivery: ls.delivery, key: key, to: to, queue: make(chan *outgoing, QueueLength)}
	ls.links[key] = l
	ls.ep.host.ConnManager().TagPeer(key.peer, linkTag, linkValue)
	ls.ep.life.startWriter(func(ctx context.Context) { l.write(ctx, ls.retire) })
	return l, nil
}

// retire forgets a link, unless messages have been queued for it.
func (ls *links) retire(l *link) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if len(l.queue) > 0 {
		return false
	}
	delete(ls.links, l.key)
	ls.ep.host.ConnManager().UntagPeer(l.key.peer, linkTag)
	return true
}

// drain accepts no more messages, and has the writers send those that are queued.
func (ls *links) drain() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	close(ls.ep.life.draining)
}

// link owns the queue of messages to one peer and the stream that they leave by. Its
// goroutine opens the stream when there is something to send, and again after a loss.
type link struct {
	ep       *endpoint
	delivery *delivery
	key      linkKey
	to       protocol.AgentID
	queue    chan *outgoing

	stream  *outbound // nil until one is open
	wait    time.Duration
	retryAt time.Time // no dial before
}

// write is the goroutine of a link. It ends when retire agrees that the link is idle.
func (l *link) write(ctx context.Context, retire func(*link) bool) {
	defer func() { l.shut() }()
	idle, used := time.NewTimer(LinkIdle), false
	defer idle.Stop()
	for {
		select {
		case o := <-l.queue:
			l.send(ctx, l.gather(o))
			used = true
		case <-l.lost():
			l.shut()
			if retire(l) {
				return
			}
		case <-idle.C:
			if !used && retire(l) {
				return
			}
			used = false
			idle.Reset(LinkIdle)
		case <-l.ep.life.draining:
			for len(l.queue) > 0 { // the queue only shrinks now
				l.send(ctx, l.gather(<-l.queue))
			}
			return
		}
	}
}

// gather takes more waiting messages, to share a flush.
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

// send writes a batch, over a new stream if the open one turns out to be lost.
func (l *link) send(ctx context.Context, batch []*outgoing) {
	batch, frames := l.encode(batch)
	if len(frames) == 0 {
		return
	}
	l.pace(ctx, len(frames))
	wasOpen := l.stream != nil && !isClosed(l.stream.lost)
	err := l.sendOnce(ctx, frames)
	if err != nil && wasOpen {
		err = l.sendOnce(ctx, frames)
	}
	for _, o := range batch {
		if err != nil {
			l.delivery.fail(o, l.to, err)
		}
	}
}

// pace waits until the peer, which has the same limits as this agent, takes more messages.
func (l *link) pace(ctx context.Context, messages int) {
	c, most := l.ep.contacts.ofPeer(l.key.peer), l.ep.cfg.Limits.Messages
	most.PerSecond, most.Burst = pacedRate*most.PerSecond, pacedBurst*most.Burst
	for c != nil && l.key.protocol == protocolACL && !c.spend(&c.sent, min(float64(messages), most.Burst), time.Now(), most) && agents.Pause(ctx, paceTick) {
	}
}

// encode leaves out, and reports, messages that cannot be encoded.
func (l *link) encode(batch []*outgoing) (good []*outgoing, frames [][]byte) {
	for _, o := range batch {
		b, err := l.delivery.encode(o)
		if err == nil && len(b) > protocol.MaxMessage {
			err = fmt.Errorf("message of %d bytes, at most %d: %w", len(b), protocol.MaxMessage, errBound)
		}
		if err != nil {
			l.ep.cfg.Log.Error("message cannot be encoded", "kind", kindOf(o.message), "err", err)
			l.delivery.fail(o, l.to, err)
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

func (l *link) sendOnce(ctx context.Context, frames [][]byte) error {
	if l.stream != nil && isClosed(l.stream.lost) {
		l.shut()
	}
	if l.stream == nil {
		if err := l.reopen(ctx); err != nil {
			return err
		}
	}
	if err := l.stream.write(frames); err != nil {
		l.shut()
		return err
	}
	for _, b := range frames {
		l.ep.counters.countOut(b)
	}
	return nil
}

// reopen opens a stream, unless the last attempt failed a moment ago.
func (l *link) reopen(ctx context.Context) error {
	if time.Now().Before(l.retryAt) && !l.ep.contacts.connected(l.key.peer) {
		return fmt.Errorf("%s could not be reached within the last %s", l.to, RedialMost)
	}
	s, err := l.ep.openOutbound(ctx, l.key.peer, l.key.protocol)
	if err != nil {
		l.wait = min(max(2*l.wait, RedialFirst), RedialMost)
		l.retryAt = time.Now().Add(l.wait)
		return err
	}
	l.wait, l.retryAt, l.stream = 0, time.Time{}, s
	return nil
}

// shut closes the stream in good order, so that a peer that follows the protocol loses nothing.
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

package command

import (
	"context"
	"sync"

	"ramp/protocol"
	"ramp/protocol/message"
)

// hub brings what a user agent tells of its purchases, or of what runs in them, to
// who follows them. A follower sees the latest state, not every step, so that a
// slow one holds nobody up.
type hub[T any] struct {
	mu        sync.Mutex
	followers map[string][]*follower[T]
}

// follower is a mailbox of one message.
type follower[T any] struct {
	mu     sync.Mutex
	latest *T
	err    error // nothing more will come
	signal chan struct{}
}

func newHub[T any]() *hub[T] { return &hub[T]{followers: map[string][]*follower[T]{}} }

// publish takes a message to the owner.
func (n *node) publish(m protocol.Message) {
	switch p := m.Body.(type) {
	case message.Progress:
		n.hub.publish(p.Purchase.ID, p)
	case message.RunProgress:
		n.runs.publish(p.Run.ID, p.Run)
	}
}

func (h *hub[T]) publish(id string, v T) {
	h.mu.Lock()
	list := append([]*follower[T](nil), h.followers[id]...)
	h.mu.Unlock()
	for _, f := range list {
		f.put(v)
	}
}

func (f *follower[T]) put(p T) {
	f.mu.Lock()
	f.latest = &p
	f.mu.Unlock()
	select {
	case f.signal <- struct{}{}:
	default: // it is behind already, and will see the latest
	}
}

// fail ends what everybody follows: the role that told of it is gone.
func (h *hub[T]) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, list := range h.followers {
		for _, f := range list {
			f.mu.Lock()
			f.err = err
			f.mu.Unlock()
			select {
			case f.signal <- struct{}{}:
			default: // it will look anyway
			}
		}
	}
}

// next waits for news.
func (f *follower[T]) next(ctx context.Context) (T, error) {
	var none T
	for {
		f.mu.Lock()
		p, err := f.latest, f.err
		f.latest = nil
		f.mu.Unlock()
		switch {
		case p != nil:
			return *p, nil
		case err != nil:
			return none, err
		}
		select {
		case <-f.signal:
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
}

// follow begins to follow a purchase, until stop is called.
func (h *hub[T]) follow(id string) (f *follower[T], stop func()) {
	f = &follower[T]{signal: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.followers[id] = append(h.followers[id], f)
	return f, func() { h.leave(id, f) }
}

func (h *hub[T]) leave(id string, f *follower[T]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.followers[id]
	for i, g := range list {
		if g == f {
			list = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if h.followers[id] = list; len(list) == 0 {
		delete(h.followers, id)
	}
}

package command

import (
	"context"
	"sync"

	"ramp/protocol"
	"ramp/protocol/message"
)

// hub brings what a user agent tells of its purchases to who follows them. A
// follower sees the latest state, not every step, so that a slow one holds
// nobody up.
type hub struct {
	mu        sync.Mutex
	followers map[string][]*follower
}

// follower is a mailbox of one message.
type follower struct {
	mu     sync.Mutex
	latest *message.Progress
	err    error // nothing more will come
	signal chan struct{}
}

func newHub() *hub { return &hub{followers: map[string][]*follower{}} }

// publish takes a message to the owner.
func (h *hub) publish(m protocol.Message) {
	p, ok := m.Body.(message.Progress)
	if !ok {
		return
	}
	h.mu.Lock()
	list := append([]*follower(nil), h.followers[p.Purchase.ID]...)
	h.mu.Unlock()
	for _, f := range list {
		f.put(p)
	}
}

func (f *follower) put(p message.Progress) {
	f.mu.Lock()
	f.latest = &p
	f.mu.Unlock()
	select {
	case f.signal <- struct{}{}:
	default: // it is behind already, and will see the latest
	}
}

// fail ends what everybody follows: the role that told of it is gone.
func (h *hub) fail(err error) {
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
func (f *follower) next(ctx context.Context) (message.Progress, error) {
	for {
		f.mu.Lock()
		p, err := f.latest, f.err
		f.latest = nil
		f.mu.Unlock()
		switch {
		case p != nil:
			return *p, nil
		case err != nil:
			return message.Progress{}, err
		}
		select {
		case <-f.signal:
		case <-ctx.Done():
			return message.Progress{}, ctx.Err()
		}
	}
}

// follow begins to follow a purchase, until stop is called.
func (h *hub) follow(id string) (f *follower, stop func()) {
	f = &follower{signal: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.followers[id] = append(h.followers[id], f)
	return f, func() { h.leave(id, f) }
}

func (h *hub) leave(id string, f *follower) {
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

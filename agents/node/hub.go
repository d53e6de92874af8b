package node

import (
	"context"
	"sync"
)

// hub passes the progress of purchases, or of runs, on to their followers. A follower
// sees the latest state, not every step, so a slow one holds nobody up.
type hub[T any] struct {
	mu        sync.Mutex
	followers map[string][]*follower[T]
}

// follower is a mailbox for one state.
type follower[T any] struct {
	mu     sync.Mutex
	latest *T
	err    error // why nothing more will come
	signal chan struct{}
}

func newHub[T any]() *hub[T] { return &hub[T]{followers: map[string][]*follower[T]{}} }

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
	default: // signalled already; it will see the latest state
	}
}

// fail ends the following of everything, because the role that reported it is gone.
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
			default: // signalled already
			}
		}
	}
}

// Next waits for a new state.
func (f *follower[T]) Next(ctx context.Context) (T, error) {
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

// Follow follows one purchase or run until stop is called.
func (h *hub[T]) Follow(id string) (f *follower[T], stop func()) {
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

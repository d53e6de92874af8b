// Package hub passes the latest state of things on to whoever follows them.
package hub

import (
	"context"
	"sync"
)

// Hub passes states, each of a thing with an ID, on to their followers. A follower
// sees the latest state, not every step, so a slow one holds nobody up.
type Hub[T any] struct {
	mu        sync.Mutex
	followers map[string][]*Follower[T]
	latest    map[string]T // of what is not over
}

// Follower is a mailbox for one state.
type Follower[T any] struct {
	mu     sync.Mutex
	latest *T
	err    error // why nothing more will come
	signal chan struct{}
}

// New is a Hub without followers.
func New[T any]() *Hub[T] {
	return &Hub[T]{followers: map[string][]*Follower[T]{}, latest: map[string]T{}}
}

// Publish passes a state on, and remembers it unless the thing is over.
func (h *Hub[T]) Publish(id string, v T, over bool) {
	h.mu.Lock()
	if h.latest[id] = v; over {
		delete(h.latest, id)
	}
	list := append([]*Follower[T](nil), h.followers[id]...)
	h.mu.Unlock()
	for _, f := range list {
		f.put(func() { f.latest = &v })
	}
}

func (f *Follower[T]) put(change func()) {
	f.mu.Lock()
	change()
	f.mu.Unlock()
	select {
	case f.signal <- struct{}{}:
	default: // signalled already; it will see the latest state
	}
}

// Fail ends the following of everything, because the role that reported it is gone.
func (h *Hub[T]) Fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.latest)
	for _, list := range h.followers {
		for _, f := range list {
			f.put(func() { f.err = err })
		}
	}
}

// Latest is the last state of a thing that is not over. A nil Hub knows nothing.
func (h *Hub[T]) Latest(id string) (v T, ok bool) {
	if h == nil {
		return v, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	v, ok = h.latest[id]
	return v, ok
}

// Next waits for a new state.
func (f *Follower[T]) Next(ctx context.Context) (T, error) {
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

// Follow follows one of the things until stop is called.
func (h *Hub[T]) Follow(id string) (f *Follower[T], stop func()) {
	f = &Follower[T]{signal: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.followers[id] = append(h.followers[id], f)
	return f, func() { h.leave(id, f) }
}

func (h *Hub[T]) leave(id string, f *Follower[T]) {
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

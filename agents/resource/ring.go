package resource

// ring keeps the last limit things.
type ring[T comparable] struct {
	items []T
	next  int // place of the next, once it is full
	limit int
}

func newRing[T comparable](limit int) ring[T] { return ring[T]{limit: limit} }

func (r *ring[T]) add(x T) {
	if len(r.items) < r.limit {
		r.items = append(r.items, x)
		return
	}
	r.items[r.next] = x
	r.next = (r.next + 1) % r.limit
}

// all returns the things, oldest first.
func (r *ring[T]) all() []T {
	return append(append(make([]T, 0, len(r.items)), r.items[r.next:]...), r.items[:r.next]...)
}

package resource

// ring keeps the last of many things, at most as many as it was made for.
type ring[T comparable] struct {
	items []T
	next  int // where the next goes, once it is full
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

// all are the things kept, oldest first.
func (r *ring[T]) all() []T {
	return append(append(make([]T, 0, len(r.items)), r.items[r.next:]...), r.items[:r.next]...)
}

func (r *ring[T]) contains(x T) bool {
	for _, y := range r.items {
		if x == y {
			return true
		}
	}
	return false
}

package hub

import "sync"

// Queue is a bounded queue in which nobody has more than a part.
type Queue[T any] struct {
	C    chan T
	each int
	mu   sync.Mutex
	of   map[string]int
}

// NewQueue is a Queue for a number of things, some of each owner at most.
func NewQueue[T any](most, each int) *Queue[T] {
	return &Queue[T]{C: make(chan T, most), each: each, of: map[string]int{}}
}

// Put queues a thing of an owner, and reports whether there was room.
func (q *Queue[T]) Put(owner string, x T) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.of[owner] >= q.each {
		return false
	}
	select {
	case q.C <- x:
		q.of[owner]++
		return true
	default:
		return false
	}
}

// Done makes room after a thing of an owner was taken from C and dealt with.
func (q *Queue[T]) Done(owner string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.of[owner]--; q.of[owner] <= 0 {
		delete(q.of, owner)
	}
}

package identity

import "sync"

// Memory remembers what was found out about bytes, so that it need not be found out
// again: by their SHA-256, or by a part of them if what is found holds the whole to be
// compared. It keeps at least the last n/2 and at most n
// entries, and forgets the oldest. It is safe for use by several workers; what
// it hands out is shared and must not be changed.
type Memory[V any] struct {
	mu         sync.Mutex
	half       int
	young, old map[[32]byte]V
}

// NewMemory returns a Memory of at most n entries; n below 2 counts as 2.
func NewMemory[V any](n int) *Memory[V] {
	return &Memory[V]{half: max(n/2, 1), young: map[[32]byte]V{}}
}

// Recall returns what is remembered under key.
func (m *Memory[V]) Recall(key [32]byte) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.young[key]; ok {
		return v, true
	}
	v, ok := m.old[key]
	if ok {
		m.put(key, v) // what is used stays
	}
	return v, ok
}

// Remember keeps v under key, in place of what was there.
func (m *Memory[V]) Remember(key [32]byte, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(key, v)
}

// put starts a new generation when the young one is full: the old is dropped at
// once, which needs no order among entries.
func (m *Memory[V]) put(key [32]byte, v V) {
	if _, there := m.young[key]; !there && len(m.young) >= m.half {
		m.old, m.young = m.young, make(map[[32]byte]V, m.half)
	}
	m.young[key] = v
}

package identity

import "sync"

// Memory caches results about bytes. The key is their SHA-256, or a part of them if the entry holds
// all bytes for comparison. It keeps at least the last n/2 and at most n entries. It is safe for
// use by several workers; entries are shared and must not be changed.
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

// Remember stores v under key and replaces an older entry.
func (m *Memory[V]) Remember(key [32]byte, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(key, v)
}

// put starts a new generation when the young one is full and drops the old one at once,
// which needs no order among entries.
func (m *Memory[V]) put(key [32]byte, v V) {
	if _, there := m.young[key]; !there && len(m.young) >= m.half {
		m.old, m.young = m.young, make(map[[32]byte]V, m.half)
	}
	m.young[key] = v
}

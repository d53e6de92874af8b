package wan

import (
	"container/heap"
	"sync"
	"time"
)

// packet is a packet in flight; it arrives when it is due.
type packet struct {
	due    time.Time
	serial uint64 // equal times: in order of sending
	bytes  []byte
}

// inbox owns the packets in flight to one host. One goroutine takes, any may put.
type inbox struct {
	mu     sync.Mutex
	queue  packets
	serial uint64
	sooner chan struct{} // signals that a packet is due before all others; has room for one
}

func newInbox() *inbox { return &inbox{sooner: make(chan struct{}, 1)} }

// put queues a packet, or reports false if the queue is full.
func (b *inbox) put(due time.Time, bytes []byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) >= MaxQueued {
		return false
	}
	b.serial++
	heap.Push(&b.queue, packet{due, b.serial, bytes})
	if b.queue[0].serial == b.serial {
		select {
		case b.sooner <- struct{}{}:
		default: // a signal is pending
		}
	}
	return true
}

// take returns a packet that is due at now, or how long until the next one is due
// (negative: the queue is empty).
func (b *inbox) take(now time.Time) (bytes []byte, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return nil, -1
	}
	if wait := b.queue[0].due.Sub(now); wait > 0 {
		return nil, wait
	}
	return heap.Pop(&b.queue).(packet).bytes, 0
}

// drain writes each packet when it is due, until done is closed.
func (b *inbox) drain(done <-chan struct{}, write func([]byte)) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		bytes, wait := b.take(time.Now())
		if bytes != nil {
			write(bytes)
			continue
		}
		if wait < 0 {
			wait = time.Hour // put wakes it
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-b.sooner:
		case <-done:
			return
		}
	}
}

// packets is a heap in order of time, then of sending.
type packets []packet

func (p packets) Len() int      { return len(p) }
func (p packets) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p packets) Less(i, j int) bool {
	if !p[i].due.Equal(p[j].due) {
		return p[i].due.Before(p[j].due)
	}
	return p[i].serial < p[j].serial
}
func (p *packets) Push(x any) { *p = append(*p, x.(packet)) }
func (p *packets) Pop() any {
	old := *p
	last := old[len(old)-1]
	old[len(old)-1] = packet{} // let its bytes go
	*p = old[:len(old)-1]
	return last
}

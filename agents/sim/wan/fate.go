package wan

import (
	"math/rand/v2"
	"sync"
	"time"
)

// outcome is a link's decision about a packet.
type outcome int

const (
	arrives outcome = iota
	lost
	cut
)

// outlet owns the links that begin at one host.
type outlet struct {
	mu     sync.Mutex
	links  []Link      // by destination
	last   []time.Time // when the last packet to a destination is due; no other overtakes it
	random *rand.Rand
}

func newOutlet(hosts int, l Link, seed uint64, host int) *outlet {
	o := &outlet{links: make([]Link, hosts), last: make([]time.Time, hosts), random: rand.New(rand.NewPCG(seed, uint64(host)))}
	for i := range o.links {
		o.links[i] = l
	}
	return o
}

// change changes the link to a host.
func (o *outlet) change(to int, f func(*Link)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f(&o.links[to])
}

// fate decides about a packet that leaves now.
func (o *outlet) fate(now time.Time, to int) (outcome, time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.links[to]
	switch {
	case l.Cut:
		return cut, time.Time{}
	case l.Loss > 0 && o.random.Float64() < l.Loss:
		return lost, time.Time{}
	}
	due := now.Add(l.Delay)
	if l.Jitter > 0 {
		due = due.Add(time.Duration(o.random.Int64N(int64(l.Jitter) + 1)))
	}
	if due.Before(o.last[to]) {
		due = o.last[to]
	}
	o.last[to] = due
	return arrives, due
}

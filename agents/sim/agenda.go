package sim

import (
	"cmp"
	"slices"
	"time"

	"ramp/protocol"
)

// eventKind says what happens at an event.
type eventKind uint8

const (
	arrives eventKind = iota + 1 // a packet reaches a host
	answers                      // a local correspondent answers
	rings                        // a host's alarm
	stirs                        // a local correspondent wants to be called
	written                      // a disk has finished a write
	starts                       // a host comes up
	probes                       // a host checks whether its disk can be written
	happens                      // a call planned by the world's owner
)

// event is something that happens at an instant.
type event struct {
	at     time.Duration // since the world's start
	serial uint64        // orders events of the same instant: first planned, first done
	kind   eventKind
	host   *Host
	life   int // of the host; 0: the event outlives it
	packet *packet
	rumour *rumour           // that the packet belongs to, if it was gossiped
	local  *protocol.Message // an answer
	call   func()
}

// rumour holds the arrivals of a gossiped packet that are still to come, in order. Only
// the next one is on the agenda, which stays short even with a thousand hearers.
type rumour struct {
	packet   *packet
	arrivals []arrival
}

// arrival is where and when a packet comes.
type arrival struct {
	at     time.Duration
	serial uint64
	host   *Host
}

// next removes the first arrival, or returns false if there are no more.
func (r *rumour) next() (event, bool) {
	if len(r.arrivals) == 0 {
		return event{}, false
	}
	a := r.arrivals[0]
	r.arrivals = r.arrivals[1:]
	return event{at: a.at, serial: a.serial, kind: arrives, host: a.host, packet: r.packet, rumour: r}, true
}

func (r *rumour) sort() {
	slices.SortFunc(r.arrivals, func(a, b arrival) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.serial, b.serial))
	})
}

// agenda is a heap of events in order of time, then of planning.
type agenda []event

func (a agenda) before(i, j int) bool {
	if a[i].at != a[j].at {
		return a[i].at < a[j].at
	}
	return a[i].serial < a[j].serial
}

func (a *agenda) push(e event) {
	*a = append(*a, e)
	h := *a
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.before(i, parent) {
			return
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

func (a *agenda) pop() event {
	h := *a
	first, last := h[0], len(h)-1
	h[0] = h[last]
	h[last] = event{}
	h = h[:last]
	*a = h
	for i := 0; ; {
		least := i
		for _, child := range []int{2*i + 1, 2*i + 2} {
			if child < last && h.before(child, least) {
				least = child
			}
		}
		if least == i {
			return first
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

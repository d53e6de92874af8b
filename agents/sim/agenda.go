package sim

import (
	"cmp"
	"slices"
	"time"

	"ramp/protocol"
)

// what is the kind of an event.
type what uint8

const (
	arrives what = iota + 1 // a packet reaches a host
	answers                 // a local correspondent answers
	rings                   // a host's alarm
	stirs                   // a local correspondent wants to be called
	written                 // a disk is done with a write
	starts                  // a host comes up
	probes                  // a host looks whether its disk can be written
	happens                 // something that the world's owner planned
)

// event is something that happens at an instant.
type event struct {
	at     time.Duration // since the world's start
	serial uint64        // tells equal instants apart: first planned, first done
	kind   what
	host   *Host
	life   int // of the host, for what does not outlive it; 0: any
	packet *packet
	rumour *rumour           // that the packet belongs to, if it was gossiped
	local  *protocol.Message // an answer
	call   func()
}

// rumour is a gossiped packet's arrivals that are still to come, in order. One of
// them is on the agenda at a time: with a thousand hearers it stays short.
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

// next is the arrival that goes on the agenda now; false if all have been.
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

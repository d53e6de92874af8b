package resource

import (
	"time"

	"ramp/agents/resource/calendar"
	"ramp/agents/workload"
	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/message"
)

// nodes knows which nodes are free as a whole: those that the batch system names, minus
// our own slots that it does not show yet.
type nodes struct {
	each int // cores of a node; 0: the batch system reserves no whole nodes
	own  map[string]protocol.Slot
	free *calendar.Calendar // in nodes
}

// renew takes the batch system's state, which includes our own slots named in shown.
func (n *nodes) renew(q message.QueueChanged, shown []string) {
	n.each = q.NodeCores
	if n.each == 0 {
		return
	}
	n.free = calendar.New(q.Capacity/n.each, q.At)
	n.free.Renew(q.Capacity/n.each, profile(q.Whole), nil)
	for _, id := range shown {
		delete(n.own, id)
	}
	for id, slot := range n.own { // in any order: the sum is the same
		n.enter(id, slot)
	}
}

func (n *nodes) add(id string, slot protocol.Slot) {
	if n.own == nil {
		n.own = map[string]protocol.Slot{}
	}
	n.own[id] = slot
	if n.each > 0 {
		n.enter(id, slot)
	}
}

// enter takes nodes from the calendar. Single cores may be on as few nodes as hold them:
// the batch system then decides.
func (n *nodes) enter(id string, slot protocol.Slot) {
	slot.Cores, slot.Nodes = (slot.Cores+n.each-1)/n.each, 0
	if err := n.free.Add(id, slot); err != nil {
		panic("resource: nodes: " + err.Error())
	}
}

func (n *nodes) remove(id string) {
	delete(n.own, id)
	if n.each > 0 {
		n.free.Remove(id)
	}
}

func (n *nodes) forget(now time.Time) {
	for id, slot := range n.own {
		if !slot.End.After(now) {
			n.remove(id)
		}
	}
	if n.each > 0 {
		n.free.Forget(now)
	}
}

// profile converts spans without gaps to Unix seconds.
func profile(spans []protocol.Span) *workload.Profile {
	steps := make([]workload.Step, len(spans))
	for i, s := range spans {
		steps[i] = workload.Step{At: s.Start.Unix(), Free: s.Cores}
	}
	return workload.ProfileOf(steps)
}

// Whole is the calendar of the nodes with so many cores.
func (k *market) Whole(nodeCores int) (auction.Calendar, bool) {
	each := k.current().nodes.each
	return whole{k}, each > 0 && each == nodeCores
}

// Room is the number of cores that may be sold over a slot.
func (k *market) Room(slot protocol.Slot) int {
	if slot.Nodes == 0 {
		return k.Free(slot.Start, slot.End)
	}
	w, ok := k.Whole(slot.Cores / slot.Nodes)
	if !ok {
		return 0
	}
	return w.Free(slot.Start, slot.End)
}

// whole is a market of whole nodes, in cores.
type whole struct{ *market }

// Free is the number of cores on nodes that are free from start to end.
func (w whole) Free(start, end time.Time) int {
	return min(w.market.Free(start, end), w.nodes.each*w.nodes.free.Free(start, end))
}

// maxLeaps bounds a search for a start.
const maxLeaps = 1 << 10

// Earliest is the first start in [from, latest] at which both cores and nodes are free:
// each search begins where the other has ended.
func (w whole) Earliest(cores int, wall time.Duration, from, latest time.Time) (time.Time, bool) {
	for range maxLeaps {
		start, ok := w.market.Earliest(cores, wall, from, latest)
		if !ok {
			return time.Time{}, false
		}
		if from, ok = w.nodes.free.Earliest(start, latest.Add(wall), wall, (cores+w.nodes.each-1)/w.nodes.each); !ok || from.Equal(start) {
			return from, ok
		}
	}
	return time.Time{}, false
}

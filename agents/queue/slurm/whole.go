package slurm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
)

// Whole reports whether the driver reserves whole nodes: a placeholder job is given its
// nodes only when it starts.
func (b *batch) Whole() bool { return b.cfg.Hold == HoldReservation }

// smallest are the nodes of the partition with the fewest cores, and those cores. Larger
// nodes are not sold whole, since a site publishes one size.
func smallest(nodes []node) (each int, usable []string) {
	for _, n := range nodes {
		if each == 0 || n.cores() < each {
			each, usable = n.cores(), nil
		}
		if n.cores() == each && n.usable() {
			usable = append(usable, n.Name)
		}
	}
	slices.Sort(usable)
	return each, usable
}

// wholly is how many of our nodes a reservation has with all their cores; 0: it has a part of one.
func (v *view) wholly(r reservation) int {
	cores := 0
	for _, n := range r.nodes {
		cores += v.ours[n]
	}
	if cores != r.slot.Cores || len(r.nodes) == 0 || cores%len(r.nodes) != 0 {
		return 0
	}
	return len(r.nodes)
}

// uses are the times during which jobs and reservations have cores on nodes.
func (v *view) uses() []queue.Use {
	uses := slices.Clone(v.jobs)
	for _, h := range v.held {
		uses = append(uses, queue.Use{Start: h.slot.Start, End: h.slot.End, Nodes: h.nodes})
	}
	return uses
}

func (v *view) pick(slot protocol.Slot) ([]string, *protocol.Reason) {
	each := slot.Cores / slot.Nodes
	switch {
	case each != v.each:
		return nil, &protocol.Reason{Code: protocol.CodeSize, Note: fmt.Sprintf("nodes of %d cores wanted, those of the partition have %d", each, v.each)}
	case v.rules.spread > 0 && int64(slot.Nodes) > v.rules.spread:
		return nil, &protocol.Reason{Code: protocol.CodeSize, Note: fmt.Sprintf("%d nodes wanted, a job may have %d (MaxNodes)", slot.Nodes, v.rules.spread)}
	}
	idle := queue.Idle(v.whole, v.uses(), slot)
	if len(idle) < slot.Nodes {
		return nil, &protocol.Reason{Code: protocol.CodeBusy, Free: len(idle) * each, Note: fmt.Sprintf("%d whole nodes wanted, %d free", slot.Nodes, len(idle))}
	}
	return idle[:slot.Nodes], nil
}

// reserveNodes reserves nodes by name, so that Slurm cannot take others, and reads back
// that it granted them whole and to nobody else.
func (b *batch) reserveNodes(now time.Time, id string, slot protocol.Slot) (protocol.Slot, string, *protocol.Reason) {
	v, err := b.part.look(now)
	if err != nil {
		return protocol.Slot{}, "", queue.Unavailable(err)
	}
	if h, ok := v.mine(id); ok {
		return h.again(slot)
	}
	names, why := v.pick(slot)
	if why != nil {
		return protocol.Slot{}, "", why
	}
	switch err := b.create(id, slot, "Nodes="+strings.Join(names, ",")); {
	case says(err, saysBusy), says(err, saysTooMany):
		return protocol.Slot{}, "", &protocol.Reason{Code: protocol.CodeBusy, Free: (slot.Nodes - 1) * v.each, Note: "Slurm does not reserve " + strings.Join(names, ",") + ": " + err.Error()}
	case err != nil:
		return protocol.Slot{}, "", refusal(err)
	}
	got, why := b.part.granted(now, id)
	switch {
	case why != nil:
		return protocol.Slot{}, "", why // the next request finds it
	case queue.Equal(got, slot) && !b.part.shared(id):
		b.slots.ends[b.mark.Name(id)] = slot.End
		return got, b.mark.Name(id), nil
	}
	return protocol.Slot{}, "", b.giveBack(now, id, slot, protocol.Slot{Start: got.Start, End: got.End})
}

// shared reports whether another reservation has cores of the same nodes at the same
// time: Slurm allows that in some orders.
func (p *partition) shared(id string) bool {
	h, _ := p.last.mine(id)
	return slices.ContainsFunc(p.last.held, func(o held) bool {
		return o.name != h.name && o.slot.Overlaps(h.slot) && slices.ContainsFunc(o.nodes, func(n string) bool { return slices.Contains(h.nodes, n) })
	})
}

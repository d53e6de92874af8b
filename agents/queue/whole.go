package queue

import (
	"slices"
	"time"

	"ramp/protocol"
)

// Use is the time during which somebody has cores on some nodes.
type Use struct {
	Start, End time.Time
	Nodes      []string
}

// Idle returns the nodes on which nobody uses a core during a slot, in their order.
func Idle(nodes []string, uses []Use, slot protocol.Slot) []string {
	used := map[string]bool{}
	for _, u := range uses {
		if u.Start.Before(slot.End) && slot.Start.Before(u.End) {
			for _, n := range u.Nodes {
				used[n] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return used[n] })
}

// Whole counts the nodes on which nobody uses a core, from an instant on: spans in
// order, without gaps, the last without an end. Uses are rounded outward to seconds.
func Whole(from time.Time, nodes []string, uses []Use) []protocol.Span {
	type change struct {
		at    time.Time
		delta int
		nodes []string
	}
	from = from.Truncate(time.Second)
	changes := []change{{at: from}}
	for _, u := range uses {
		end := Outward(protocol.Slot{End: u.End}).End
		if start := protocol.Later(u.Start.Truncate(time.Second), from); end.After(start) {
			changes = append(changes, change{start, 1, u.Nodes}, change{end, -1, u.Nodes})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return a.at.Compare(b.at) })
	users := make(map[string]int, len(nodes))
	for _, n := range nodes {
		users[n] = 0
	}
	idle := len(users)
	var spans []protocol.Span
	for i, c := range changes {
		for _, name := range c.nodes {
			n, ours := users[name]
			switch users[name] = n + c.delta; {
			case !ours:
				delete(users, name)
			case n == 0:
				idle--
			case n+c.delta == 0:
				idle++
			}
		}
		if i+1 < len(changes) && changes[i+1].at.Equal(c.at) {
			continue
		}
		if last := len(spans) - 1; last >= 0 {
			spans[last].End = c.at
		}
		spans = append(spans, protocol.Span{Start: c.at, Cores: idle})
	}
	return spans
}

// Taken is the most cores that the uses occupy at any instant of a slot. The maximum
// occurs where a use, or the slot, begins.
func Taken(uses []protocol.Slot, slot protocol.Slot) int {
	most := 0
	instants := []time.Time{slot.Start}
	for _, u := range uses {
		if u.Overlaps(slot) && u.Start.After(slot.Start) {
			instants = append(instants, u.Start)
		}
	}
	for _, t := range instants {
		sum := 0
		for _, u := range uses {
			if !t.Before(u.Start) && t.Before(u.End) {
				sum += u.Cores
			}
		}
		most = max(most, sum)
	}
	return most
}

package queue_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/agents/queue"
	"ramp/protocol"
)

// TestWholeNodes compares both functions with looking at every node in every second.
func TestWholeNodes(t *testing.T) {
	from := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	second := func(n int) time.Time { return from.Add(time.Duration(n) * time.Second) }
	rapid.Check(t, func(t *rapid.T) {
		var nodes []string
		for n := range rapid.IntRange(1, 4).Draw(t, "nodes") {
			nodes = append(nodes, fmt.Sprint("node", n))
		}
		var uses []queue.Use
		for range rapid.IntRange(0, 6).Draw(t, "uses") {
			start := rapid.IntRange(-3, 12).Draw(t, "start")
			on := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"node0", "node1", "node2", "node3", "other"}), func(s string) string { return s }).Draw(t, "on")
			uses = append(uses, queue.Use{Start: second(start), End: second(start + rapid.IntRange(1, 9).Draw(t, "length")), Nodes: on})
		}
		idle := func(start, end int) (list []string) {
			for _, n := range nodes {
				if !slices.ContainsFunc(uses, func(u queue.Use) bool {
					for s := start; s < end; s++ {
						if slices.Contains(u.Nodes, n) && !second(s).Before(u.Start) && second(s).Before(u.End) {
							return true
						}
					}
					return false
				}) {
					list = append(list, n)
				}
			}
			return list
		}
		spans := queue.Whole(from.Add(300*time.Millisecond), nodes, uses)
		for s := range 25 {
			i, _ := slices.BinarySearchFunc(spans, second(s).Add(1), func(x protocol.Span, at time.Time) int { return x.Start.Compare(at) })
			if got, want := spans[i-1].Cores, len(idle(s, s+1)); got != want {
				t.Fatalf("second %d: %d nodes are free, want %d: %v", s, got, want, spans)
			}
		}
		start := rapid.IntRange(0, 20).Draw(t, "slot")
		end := start + rapid.IntRange(1, 6).Draw(t, "wall")
		if got, want := queue.Idle(nodes, uses, protocol.Slot{Start: second(start), End: second(end)}), idle(start, end); !slices.Equal(got, want) {
			t.Fatalf("from %d to %d idle are %v, want %v", start, end, got, want)
		}
	})
}

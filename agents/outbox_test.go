package agents_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ramp/agents"
	"ramp/protocol"
)

// The oracle of an Outbox is a list of steps: an output has left only if every
// record of it and of those before it was in an append that was durable.
func TestNothingLeavesBeforeWhatItRestsOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var box agents.Outbox[int]
		var durable, left, lost []int
		saves := map[int]bool{}
		var writing []int // items with records in the append that goes on
		isWriting := false
		next := 0
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				saves[next] = rapid.Bool().Draw(t, "saves")
				var records []protocol.Record
				if saves[next] {
					records = []protocol.Record{{Table: "t", Key: fmt.Sprint(next)}}
				}
				if box.Put(next, records) {
					left = append(left, next)
				}
				next++
			},
			"write": func(t *rapid.T) {
				records, ok := box.Write()
				if ok && isWriting {
					t.Fatal("two appends at once")
				}
				if !ok {
					return
				}
				isWriting, writing = true, nil
				for _, r := range records {
					var n int
					_, _ = fmt.Sscan(r.Key, &n)
					writing = append(writing, n)
				}
			},
			"written": func(*rapid.T) {
				if isWriting {
					durable, isWriting = append(durable, writing...), false
					left = append(left, box.Written()...)
				}
			},
			"failed": func(*rapid.T) {
				if isWriting {
					isWriting = false
					lost = append(lost, box.Failed()...)
				}
			},
			"": func(t *rapid.T) {
				if !slices.IsSorted(left) {
					t.Fatalf("out of order: %v", left)
				}
				for _, n := range left {
					for m := range n + 1 {
						if saves[m] && !slices.Contains(durable, m) && !slices.Contains(lost, m) {
							t.Fatalf("%d left before %d was durable", n, m)
						}
					}
					if slices.Contains(lost, n) || saves[n] && !slices.Contains(durable, n) {
						t.Fatalf("%d left, and was lost", n)
					}
				}
				if box.Len()+len(left)+len(lost) != next {
					t.Fatalf("%d waits, %d left, %d lost of %d", box.Len(), len(left), len(lost), next)
				}
			},
		})
	})
}

func TestWhatSavesNothingFollowsTheAppendBeforeIt(t *testing.T) {
	var box agents.Outbox[string]
	box.Put("saved", []protocol.Record{{Table: "t", Key: "k"}})
	if _, ok := box.Write(); !ok {
		t.Fatal("nothing to write")
	}
	if box.Put("answer", nil) {
		t.Fatal("the answer overtakes the record")
	}
	if got := box.Written(); !slices.Equal(got, []string{"saved", "answer"}) {
		t.Errorf("left: %v", got)
	}
}

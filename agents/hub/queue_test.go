package hub_test

import (
	"testing"

	"ramp/agents/hub"
)

func TestNobodyFillsAQueue(t *testing.T) {
	q := hub.NewQueue[string](3, 2)
	for i, put := range []struct {
		owner string
		want  bool
	}{{"a", true}, {"a", true}, {"a", false}, {"b", true}, {"b", false}, {"c", false}} {
		if got := q.Put(put.owner, put.owner); got != put.want {
			t.Errorf("thing %d, of %s: taken %v, want %v", i, put.owner, got, put.want)
		}
	}
	q.Done(<-q.C)
	if !q.Put("a", "a") || q.Put("c", "c") {
		t.Error("there is room for one of a")
	}
}

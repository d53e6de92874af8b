package command

import (
	"runtime"
	"testing"
)

// A small heap may grow to five times its size, a large one to twice, and none in between
// by more than the room there is.
func TestTheRoomOfABanksMemory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		live uint64
		want int
	}{{0, 400}, {20 << 20, 400}, {256 << 20, 400}, {512 << 20, 200}, {1 << 30, 100}, {8 << 30, 100}} {
		if got := roomyPercent(c.live); got != c.want {
			t.Errorf("%d MiB live: %d%%, want %d%%", c.live>>20, got, c.want)
		}
	}
	runtime.GC()
	if heapBytes(liveHeap) == 0 {
		t.Error("nothing lives after a collection")
	}
}

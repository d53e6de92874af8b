package command

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// How far a bank's memory may grow between two collections. Most of what it makes for a
// settlement is garbage at once, and collecting it seldom saves a tenth of the time.
const (
	roomyGarbage = 1 << 30 // bytes, or as much as is live if that is more
	roomyMost    = 400     // per cent of what is live
	roomyLeast   = 100
	roomyPeriod  = time.Minute // between two looks at what is live
)

// roomy lets the memory of a bank that has loaded its ledger grow while there is little
// of it, until ctx is done. Who sets GOGC knows better.
func roomy(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(roomyPercent(heapBytes("/memory/classes/heap/objects:bytes"))) // the last collection may have seen less
	go func() {
		look := time.NewTicker(roomyPeriod)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
				debug.SetGCPercent(roomyPercent(heapBytes(liveHeap)))
			}
		}
	}()
}

// roomyPercent is the collector's target for so many live bytes.
func roomyPercent(live uint64) int {
	return int(max(roomyLeast, min(roomyMost, roomyGarbage*100/max(live, 1))))
}

// liveHeap is the runtime's name of what the last collection left.
const liveHeap = "/gc/heap/live:bytes"

// heapBytes is a size that the runtime tells; zero: it does not know it.
func heapBytes(name string) uint64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return s[0].Value.Uint64()
}

package ledger

import (
	"bytes"
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"time"

	"ramp/bank/row"
)

// deadline is when a hold (if its number is set), a quote (if it has an ID) or
// an undecided bundle ends.
type deadline struct {
	at       int64
	hold     uint64
	quote    quoteKey
	contract contractKey
}

// deadlines owns when what is open ends, and the grace after a restart, before which nothing does.
type deadlines struct {
	queue     deadlineQueue
	bound     int // of the queue, before stale deadlines are removed
	graceEnds int64
	current   func(*deadline) bool // reports whether something open still ends then
}

// maxStale bounds the stale deadlines in the queue, together with the number that was
// current when it was last cleaned.
const maxStale = 1 << 10

// await schedules the end of something open. A bundle settles in seconds, but its
// deadline may be an hour ahead, so the queue is cleaned when it reaches its bound.
func (dl *deadlines) await(x deadline) {
	if len(dl.queue) >= dl.bound {
		dl.queue = slices.DeleteFunc(dl.queue, func(d deadline) bool { return !dl.current(&d) })
		heap.Init(&dl.queue)
		dl.bound = 2*len(dl.queue) + maxStale
	}
	heap.Push(&dl.queue, x)
}

// next is when the first deadline of something open is due, which it drops stale ones to find.
func (dl *deadlines) next() (at int64, ok bool) {
	for len(dl.queue) > 0 {
		d := &dl.queue[0]
		if dl.current(d) {
			return max(d.at, dl.graceEnds), true
		}
		heap.Pop(&dl.queue)
	}
	return 0, false
}

// passed reports whether an instant and the grace after a restart are over.
func (dl *deadlines) passed(now time.Time, at int64) bool {
	return row.Nanos(now) >= max(at, dl.graceEnds)
}

// deadlineQueue is a heap, soonest first. Deadlines of the same instant are in
// order of number and contract, so that every replay writes the same entries.
type deadlineQueue []deadline

func (q deadlineQueue) Len() int      { return len(q) }
func (q deadlineQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q deadlineQueue) Less(i, j int) bool {
	x, y := &q[i], &q[j]
	order := cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.hold, y.hold),
		strings.Compare(x.quote.String(), y.quote.String()), bytes.Compare(x.contract[:], y.contract[:]))
	return order < 0
}

// Push is called by package heap.
func (q *deadlineQueue) Push(x any) { *q = append(*q, x.(deadline)) }

// Pop is called by package heap.
func (q *deadlineQueue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}

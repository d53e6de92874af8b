package agents

import "ramp/protocol"

// Outbox holds the outputs of one role until their records, and those of all
// earlier outputs, are on the disk. That includes outputs that save nothing
// themselves. Outputs that wait together share one append (group commit). It does
// no I/O: its owner appends the records of Write, and calls Written or Failed.
//
// The zero Outbox is empty. T is the type of an output.
type Outbox[T any] struct {
	waiting []boxed[T] // in order
	writing int        // how many of the first are being written
}

type boxed[T any] struct {
	item T
	save []protocol.Record
}

// Put takes an output. It reports true if the item may leave at once, because it
// saves nothing and nothing before it waits.
func (o *Outbox[T]) Put(item T, save []protocol.Record) bool {
	if len(save) == 0 && len(o.waiting) == 0 {
		return true
	}
	o.waiting = append(o.waiting, boxed[T]{item, save})
	return false
}

// Len is how many outputs wait.
func (o *Outbox[T]) Len() int { return len(o.waiting) }

// Write begins the next append: the records of all outputs that wait, in order.
// It reports false while an append is under way, and if nothing waits.
func (o *Outbox[T]) Write() ([]protocol.Record, bool) {
	if o.writing > 0 || len(o.waiting) == 0 {
		return nil, false
	}
	n := 0
	for _, b := range o.waiting {
		n += len(b.save)
	}
	records := make([]protocol.Record, 0, n)
	for _, b := range o.waiting {
		records = append(records, b.save...)
	}
	o.writing = len(o.waiting)
	return records, true
}

// Written ends an append that is durable. It returns the items that may leave now,
// in order: the written ones, and those directly after them that save nothing.
func (o *Outbox[T]) Written() []T {
	n := o.writing
	for n < len(o.waiting) && len(o.waiting[n].save) == 0 {
		n++
	}
	items := o.take(n)
	o.writing = 0
	return items
}

// Failed ends an append that failed. It returns all waiting items: none of them was
// saved, and none may ever leave.
func (o *Outbox[T]) Failed() []T {
	items := o.take(len(o.waiting))
	o.writing = 0
	return items
}

func (o *Outbox[T]) take(n int) []T {
	items := make([]T, 0, n)
	for _, b := range o.waiting[:n] {
		items = append(items, b.item)
	}
	clear(o.waiting[:n])
	o.waiting = append(o.waiting[:0], o.waiting[n:]...)
	return items
}

package agents

import "ramp/protocol"

// Outbox keeps the outputs of one role until all that they rest on is durable:
// nothing leaves before every record of its own and of all earlier outputs is on
// the disk, even if it saves nothing itself. Outputs that wait together share one
// append (group commit). It is a machine without I/O: whoever owns it appends
// what Write says, and tells how that went.
//
// The zero Outbox is empty. T is whatever an output carries.
type Outbox[T any] struct {
	waiting []boxed[T] // in order; the first ones are being written
	writing int        // how many of them
}

type boxed[T any] struct {
	item T
	save []protocol.Record
}

// Put takes an output. It reports true if the item may leave at once, because
// nothing is to be saved for it and nothing before it waits.
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
// It reports false while an append is going on, and if nothing waits.
func (o *Outbox[T]) Write() ([]protocol.Record, bool) {
	if o.writing > 0 || len(o.waiting) == 0 {
		return nil, false
	}
	var records []protocol.Record
	for _, b := range o.waiting {
		records = append(records, b.save...)
	}
	o.writing = len(o.waiting)
	return records, true
}

// Written ends an append that is durable. It returns what may leave now, in
// order: what was written, and what followed it and saves nothing.
func (o *Outbox[T]) Written() []T {
	n := o.writing
	for n < len(o.waiting) && len(o.waiting[n].save) == 0 {
		n++
	}
	items := o.take(n)
	o.writing = 0
	return items
}

// Failed ends an append that failed: nothing of what waits was saved, and nothing
// of it may ever leave.
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

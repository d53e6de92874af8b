package ledger

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"ramp/bank/row"
	"ramp/protocol"
)

// Orders owns the keys of the operator's orders, so that an order that is given
// again, because its answer was lost, is carried out once.
//
//	new -----carried out--> remembered --protocol.OrderMemory is over--> forgotten
//	new -----refused------> new
//	remembered --the same order--> its recorded entry
//	remembered --another order---> refused
//	remembered --confirmed-------> forgotten
//
// The key is saved with the order's entry: a ledger has both or, restored from an
// older backup, neither.
type Orders struct {
	byKey map[string]*order
	queue []*order // oldest first
}

// order is one that was carried out.
type order struct {
	key   string
	words [sha256.Size]byte // hash of the order's words
	entry uint64
	at    int64
}

// Once carries out an order of the operator, once for each key of 1..MaxOrderKey bytes. Words
// describe the order: given again with the same words, Once returns the number and the time of its
// entry, and again; with others, it refuses with CodeMismatch. It does not remember what act
// refuses. CodeLimit: MaxOrders are remembered.
func (od *Orders) Once(now time.Time, key, words string, act func() (Entry, []protocol.Record, error)) (e Entry, again bool, records []protocol.Record, err error) {
	hash := sha256.Sum256([]byte(words))
	switch o := od.byKey[key]; {
	case o != nil && o.words != hash:
		return e, false, nil, refuse(protocol.CodeMismatch, "key %q was given with another order, which is entry %d", key, o.entry)
	case o != nil:
		return Entry{Number: o.entry, Time: row.Instant(o.at)}, true, nil, nil
	case key == "" || len(key) > MaxOrderKey:
		return e, false, nil, refuse(protocol.CodeMalformed, "key of %d bytes, want 1..%d", len(key), MaxOrderKey)
	case len(od.byKey) >= MaxOrders:
		return e, false, nil, refuse(protocol.CodeLimit, "%d orders of the last %s are remembered, which is the most: give it without a key, or wait", len(od.byKey), protocol.OrderMemory)
	}
	if e, records, err = act(); err != nil {
		return e, false, records, err
	}
	o := &order{key: key, words: hash, entry: e.Number, at: row.Nanos(e.Time)}
	od.keep(o)
	return e, false, append(records, protocol.Record{Table: TableOrders, Key: NumberKey(o.entry), Value: o.encode()}), nil
}

// Unconfirmed are the keys of the remembered orders with the same words, oldest first:
// whoever gave them may not have heard the answer.
func (od *Orders) Unconfirmed(words string) (keys []string) {
	hash := sha256.Sum256([]byte(words))
	for _, o := range od.queue {
		if o.words == hash {
			keys = append(keys, o.key)
		}
	}
	return keys
}

// Adopt gives a remembered order to another key that is not remembered, and returns the
// number and the time of its entry.
func (od *Orders) Adopt(old, key string) (e Entry, records []protocol.Record, err error) {
	o := od.byKey[old]
	switch {
	case o == nil || od.byKey[key] != nil:
		return e, nil, refuse(protocol.CodeUnknown, "no order has key %q, or another one has %q", old, key)
	case key == "" || len(key) > MaxOrderKey:
		return e, nil, refuse(protocol.CodeMalformed, "key of %d bytes, want 1..%d", len(key), MaxOrderKey)
	}
	delete(od.byKey, old)
	o.key = key
	od.byKey[key] = o
	return Entry{Number: o.entry, Time: row.Instant(o.at)}, []protocol.Record{{Table: TableOrders, Key: NumberKey(o.entry), Value: o.encode()}}, nil
}

// Confirm forgets an order whose answer has arrived. Without one it does nothing.
func (od *Orders) Confirm(key string) []protocol.Record {
	o := od.byKey[key]
	if o == nil {
		return nil
	}
	delete(od.byKey, key)
	od.queue = slices.DeleteFunc(od.queue, func(x *order) bool { return x == o })
	return []protocol.Record{{Table: TableOrders, Key: NumberKey(o.entry)}}
}

func (od *Orders) keep(o *order) {
	od.byKey[o.key] = o
	od.queue = append(od.queue, o)
}

// expire forgets orders that are older than protocol.OrderMemory, at most MaxExpire at once.
func (od *Orders) expire(c *change, now time.Time) {
	for n := 0; n < MaxExpire && len(od.queue) > 0 && row.Nanos(now)-od.queue[0].at > int64(protocol.OrderMemory); n++ {
		delete(od.byKey, od.queue[0].key)
		c.drop(TableOrders, NumberKey(od.queue[0].entry))
		od.queue = od.queue[1:]
	}
}

func (o *order) encode() []byte {
	return row.New(row.Version, 128).String(o.key).Octets(o.words[:]).Time(o.at)
}

func decodeOrder(key string, value []byte) (*order, error) {
	n, err := row.Number64(key)
	d := row.Read(value)
	o := &order{key: d.String(MaxOrderKey), entry: n}
	copy(o.words[:], d.Octets(len(o.words)))
	o.at = d.Time()
	if err := cmp.Or(err, d.Done()); err != nil {
		return nil, fmt.Errorf("order of entry %x: %w", key, err)
	}
	return o, nil
}

func (od *Orders) load(key string, value []byte) error {
	o, err := decodeOrder(key, value)
	if err == nil {
		od.keep(o)
	}
	return err
}

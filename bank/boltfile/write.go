package boltfile

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"

	"ramp/bank/row"
)

// Kinds of operations in a log: an octet, a key and a value, each behind its length.
const (
	opIn       = 1 // those that follow are in the table of the key, or the table of the value within it
	opPut      = 2
	opDelete   = 3
	opSequence = 4 // the value is the table's sequence, 8 octets
)

// Tx is a transaction of File.Write. It may read as bbolt does, and writes into Buckets.
type Tx struct {
	*bbolt.Tx
	ops []byte  // behind room for the head of a frame
	in  *Bucket // of the last operation
}

type bucket = bbolt.Bucket

// Bucket is a table that a transaction writes into.
type Bucket struct {
	*bucket
	tx        *Tx
	top, name string
}

// In opens a top-level table, or the table name within it, which must exist.
func (tx *Tx) In(top, name string) *Bucket {
	b := tx.Bucket([]byte(top))
	if name != "" {
		b = b.Bucket([]byte(name))
	}
	return &Bucket{b, tx, top, name}
}

// Table opens a table within a top-level one, or begins it; open is how many the
// transaction has opened.
func (tx *Tx) Table(top, name string, open int) (*Bucket, error) {
	if name == "" || len(name) > maxTableLen {
		return nil, fmt.Errorf("table name of %d bytes, want 1..%d", len(name), maxTableLen)
	}
	if open >= maxTables {
		return nil, fmt.Errorf("more than %d tables in one append", maxTables)
	}
	b, err := within(tx.Tx, top, name)
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", name, err)
	}
	return &Bucket{b, tx, top, name}, nil
}

// within opens a table, or begins it.
func within(tx *bbolt.Tx, top, name string) (*bbolt.Bucket, error) {
	b, err := tx.CreateBucketIfNotExists([]byte(top))
	if err == nil && name != "" {
		b, err = b.CreateBucketIfNotExists([]byte(name))
	}
	return b, err
}

// Put writes a copy of the value: bbolt reads it again when it commits.
func (b *Bucket) Put(key, value []byte) error {
	b.log(opPut, key, value)
	return b.bucket.Put(key, append([]byte{}, value...))
}

// Delete removes a key, which may be missing.
func (b *Bucket) Delete(key []byte) error {
	b.log(opDelete, key, nil)
	return b.bucket.Delete(key)
}

// SetSequence sets the table's number.
func (b *Bucket) SetSequence(n uint64) error {
	b.log(opSequence, nil, binary.BigEndian.AppendUint64(nil, n))
	return b.bucket.SetSequence(n)
}

// Set writes a value, or deletes the key if the value is nil.
func (b *Bucket) Set(key string, value []byte) error {
	if value == nil {
		return b.Delete([]byte(key))
	}
	return b.Put([]byte(key), value)
}

func (b *Bucket) log(op byte, key, value []byte) {
	if in := b.tx.in; in == nil || in.top != b.top || in.name != b.name {
		b.tx.in = b
		b.tx.log(opIn, []byte(b.top), []byte(b.name))
	}
	b.tx.log(op, key, value)
}

func (tx *Tx) log(op byte, key, value []byte) {
	tx.ops = binary.AppendUvarint(append(tx.ops, op), uint64(len(key)))
	tx.ops = binary.AppendUvarint(append(tx.ops, key...), uint64(len(value)))
	tx.ops = append(tx.ops, value...)
}

func replay(tx *bbolt.Tx, ops []byte) error {
	var b *bbolt.Bucket
	var err error
	for r := row.Fields(ops); err == nil && r.More(); {
		op, key, value := r.Byte(), r.Octets(r.Count(mostLog)), r.Octets(r.Count(mostLog))
		switch {
		case r.Failed() || b == nil && op != opIn:
			return fmt.Errorf("%w: an operation in its log makes no sense", ErrDamaged)
		case op == opIn:
			b, err = within(tx, string(key), string(value))
		case op == opPut:
			err = b.Put(key, append([]byte{}, value...))
		case op == opDelete:
			err = b.Delete(key)
		case op == opSequence && len(value) == 8:
			err = b.SetSequence(binary.BigEndian.Uint64(value))
		}
	}
	return err
}

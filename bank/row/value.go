// Package row writes and reads the values of a bank's tables.
//
// A value begins with its version, and its fields follow without names or padding: numbers as
// varints, times as 8 octets so that they sort, texts with their length before them. A Reader
// bounds every list and text; its first fault stays, so that callers check only Done.
package row

import (
	"encoding/binary"
	"time"

	"ramp/protocol"
)

// Version begins every value that has no later form.
const Version = 1

// Value is a value under construction. Each method appends one field.
type Value []byte

// New begins a value with room for size octets.
func New(version byte, size int) Value { return append(make(Value, 0, size), version) }

// Byte appends one octet.
func (v Value) Byte(b byte) Value { return append(v, b) }

// Octets appends octets whose number the reader knows.
func (v Value) Octets(b []byte) Value { return append(v, b...) }

// String appends a text and its length.
func (v Value) String(s string) Value { return append(binary.AppendUvarint(v, uint64(len(s))), s...) }

// Agent appends an agent's ID.
func (v Value) Agent(id protocol.AgentID) Value { return v.String(string(id)) }

// Uvarint appends a number that is zero or more.
func (v Value) Uvarint(n uint64) Value { return binary.AppendUvarint(v, n) }

// Count appends a length or an index.
func (v Value) Count(n int) Value { return binary.AppendUvarint(v, uint64(n)) }

// Varint appends a number that may be below zero.
func (v Value) Varint(n int64) Value { return binary.AppendVarint(v, n) }

// Credits appends an amount.
func (v Value) Credits(n protocol.Credits) Value { return binary.AppendVarint(v, int64(n)) }

// Time appends nanoseconds since 1970.
func (v Value) Time(n int64) Value { return binary.BigEndian.AppendUint64(v, uint64(n)) }

// Uint64 appends 8 octets.
func (v Value) Uint64(n uint64) Value { return binary.BigEndian.AppendUint64(v, n) }

// Rising appends rising numbers as their differences.
func (v Value) Rising(ns []uint64) Value {
	v = v.Count(len(ns))
	var last uint64
	for _, n := range ns {
		v = v.Uvarint(n - last)
		last = n
	}
	return v
}

// Key64 is a key whose order is that of its number.
func Key64(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }

// Key32 is a shorter one.
func Key32(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }

// Nanos is t in nanoseconds since 1970, at least zero: only deadlines that were
// long over when they came can be older.
func Nanos(t time.Time) int64 {
	if t.Unix() < 0 {
		return 0
	}
	return t.UnixNano()
}

// Instant is the time that Nanos stands for.
func Instant(n int64) time.Time { return time.Unix(0, n).UTC() }

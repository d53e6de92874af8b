package row

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"ramp/protocol"
)

var errShort = errors.New("value is too short")

// Reader reads a value front to back; the first fault stays.
type Reader struct {
	b   []byte
	err error
}

// Read begins to read a value of Version.
func Read(b []byte) *Reader {
	_, r := ReadUpTo(b, Version)
	return r
}

// ReadUpTo reads values of several versions, up to the last that this program knows. It is short
// enough for the compiler to inline, so that the reader stays on the caller's stack.
func ReadUpTo(b []byte, last byte) (version byte, r *Reader) {
	r = &Reader{b: b}
	return r.version(last), r
}

// Fields begins to read a value without a version.
func Fields(b []byte) *Reader { return &Reader{b: b} }

func (r *Reader) version(last byte) byte {
	version := r.Byte()
	if r.err == nil && (version < Version || version > last) {
		r.err = fmt.Errorf("value has version %d, want %d..%d", version, Version, last)
	}
	return version
}

// Fail notes a fault; only the first one counts.
func (r *Reader) Fail(err error) {
	r.err = cmp.Or(r.err, err)
	r.b = nil
}

// Failed reports whether a fault was noted.
func (r *Reader) Failed() bool { return r.err != nil }

// More reports whether there are octets to read.
func (r *Reader) More() bool { return r.err == nil && len(r.b) > 0 }

// Octets reads n octets, which belong to the value.
func (r *Reader) Octets(n int) []byte {
	if r.err != nil || n > len(r.b) {
		r.Fail(errShort)
		return nil
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	return p
}

// Byte reads one octet.
func (r *Reader) Byte() byte {
	if p := r.Octets(1); p != nil {
		return p[0]
	}
	return 0
}

// Uvarint reads a number that is zero or more.
func (r *Reader) Uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.Fail(errShort)
		return 0
	}
	r.b = r.b[n:]
	return v
}

// Varint reads a number that may be below zero.
func (r *Reader) Varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.Fail(errShort)
		return 0
	}
	r.b = r.b[n:]
	return v
}

// Credits reads an amount.
func (r *Reader) Credits() protocol.Credits { return protocol.Credits(r.Varint()) }

// Unit reads the index of a unit.
func (r *Reader) Unit() int { return r.Count(protocol.MaxUnits - 1) }

// Count reads a length of at most limit.
func (r *Reader) Count(limit int) int {
	v := r.Uvarint()
	if v > uint64(limit) {
		r.Fail(fmt.Errorf("value has a list of %d, at most %d", v, limit))
		return 0
	}
	return int(v)
}

// String reads a text of at most limit octets.
func (r *Reader) String(limit int) string { return string(r.Octets(r.Count(limit))) }

// Agent reads an agent's ID.
func (r *Reader) Agent() protocol.AgentID { return protocol.AgentID(r.String(protocol.MaxAgentID)) }

// Time reads nanoseconds since 1970, not before.
func (r *Reader) Time() int64 {
	n := int64(r.Uint64())
	if n < 0 {
		r.Fail(errors.New("value has a time before 1970"))
	}
	return n
}

// Uint64 reads 8 octets.
func (r *Reader) Uint64() uint64 {
	p := r.Octets(8)
	if p == nil {
		return 0
	}
	return binary.BigEndian.Uint64(p)
}

// Rising reads at most limit rising numbers.
func (r *Reader) Rising(limit int) []uint64 {
	ns := make([]uint64, 0, limit)
	var last uint64
	for range r.Count(limit) {
		step := r.Uvarint()
		if step == 0 || last+step < last {
			r.Fail(errors.New("value has numbers that do not rise"))
			return nil
		}
		last += step
		ns = append(ns, last)
	}
	return ns
}

// Done is the first fault; octets that nobody read are one.
func (r *Reader) Done() error {
	if r.err == nil && len(r.b) != 0 {
		r.err = fmt.Errorf("value has %d octets too many", len(r.b))
	}
	return r.err
}

// DoneWith is Done for a value of a kind, which the error names.
func (r *Reader) DoneWith(kind string) error {
	if err := r.Done(); err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	return nil
}

// Number64 reads a key that Key64 made.
func Number64(key string) (uint64, error) {
	if len(key) != 8 {
		return 0, fmt.Errorf("key of %d octets, want 8", len(key))
	}
	return binary.BigEndian.Uint64([]byte(key)), nil
}

// Number32 reads a key that Key32 made.
func Number32(key string) (uint32, error) {
	if len(key) != 4 {
		return 0, fmt.Errorf("key of %d octets, want 4", len(key))
	}
	return binary.BigEndian.Uint32([]byte(key)), nil
}

package ledgeretcd

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"ramp/protocol"
)

// Entry is what one transaction of the leader saves.
type Entry struct {
	Records []protocol.Record
	Head    []byte // signed; nil: none
}

const (
	entryVersion = 1
	headerSize   = 1 + sha256.Size + 8 + 1

	plain  = 0 // ways to store a payload
	packed = 1
)

// header stands before the payload of an entry.
type header struct {
	previous [sha256.Size]byte // hash of the entry before it; of the first: zeros
	term     int64             // create revision of the leader's key
	parts    int               // keys that have the payload; zero: it follows
}

func (h header) encode() []byte {
	b := append(make([]byte, 0, headerSize), entryVersion)
	b = append(b, h.previous[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(h.term))
	return append(b, byte(h.parts))
}

func decodeHeader(b []byte) (h header, rest []byte, err error) {
	if len(b) < headerSize || b[0] != entryVersion {
		return h, nil, fmt.Errorf("%w: an entry of %d octets, or of an unknown version", ErrDamaged, len(b))
	}
	h.previous = [sha256.Size]byte(b[1:])
	h.term = int64(binary.BigEndian.Uint64(b[1+sha256.Size:]))
	h.parts = int(b[headerSize-1])
	rest = b[headerSize:]
	if h.parts > maxParts || h.parts > 0 && len(rest) > 0 {
		return h, nil, fmt.Errorf("%w: an entry in %d parts with %d octets beside them", ErrDamaged, h.parts, len(rest))
	}
	return h, rest, nil
}

// hashEntry is what the next entry names as its previous.
func hashEntry(head, payload []byte) [sha256.Size]byte {
	s := sha256.New()
	_, _ = s.Write(head) // never fails
	_, _ = s.Write(payload)
	return [sha256.Size]byte(s.Sum(nil))
}

// Encode writes an entry as it is stored. It fails if the entry is too large.
func (e Entry) Encode() ([]byte, error) {
	if len(e.Records) > maxRecords {
		return nil, fmt.Errorf("an append of %d records, at most %d", len(e.Records), maxRecords)
	}
	b := appendBytes([]byte{plain}, e.Head)
	b = binary.AppendUvarint(b, uint64(len(e.Records)))
	for i := range e.Records {
		b = appendRecord(b, &e.Records[i])
		if len(b) > maxPayload {
			return nil, fmt.Errorf("an append of more than %d octets", maxPayload)
		}
	}
	if len(b) < packFrom {
		return b, nil
	}
	return pack(b[1:])
}

// appendRecord writes the length of a value one higher than it is; zero: no value.
func appendRecord(b []byte, r *protocol.Record) []byte {
	b = appendBytes(b, []byte(r.Table))
	b = appendBytes(b, []byte(r.Key))
	if r.Value == nil {
		return append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Value))+1)
	return append(b, r.Value...)
}

func appendBytes(b, s []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func pack(b []byte) ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte(packed)
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(b)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// DecodeEntry reads what Encode wrote. Its memory is its own.
func DecodeEntry(b []byte) (Entry, error) {
	e, err := decodeEntry(b)
	if err != nil {
		return Entry{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return e, nil
}

func decodeEntry(b []byte) (Entry, error) {
	b, err := unpack(b)
	if err != nil {
		return Entry{}, err
	}
	d := decoder{rest: b}
	var e Entry
	if head := d.bytes(d.uvarint()); len(head) > 0 {
		e.Head = head
	}
	n := d.uvarint()
	if n > maxRecords {
		return e, fmt.Errorf("%d records", n)
	}
	for range n {
		e.Records = append(e.Records, d.record())
		if d.err != nil {
			return e, d.err
		}
	}
	if d.err == nil && len(d.rest) > 0 {
		d.err = fmt.Errorf("%d octets behind the last record", len(d.rest))
	}
	return e, d.err
}

func unpack(b []byte) ([]byte, error) {
	switch {
	case len(b) == 0:
		return nil, io.ErrUnexpectedEOF
	case b[0] == plain:
		return b[1:], nil
	case b[0] != packed:
		return nil, fmt.Errorf("stored in way %d", b[0])
	}
	out, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(b[1:])), maxPayload+1))
	if err == nil && len(out) > maxPayload {
		err = fmt.Errorf("more than %d octets", maxPayload)
	}
	return out, err
}

// decoder reads and remembers the first error.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) uvarint() uint64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

func (d *decoder) bytes(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		d.fail()
		return nil
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) record() (r protocol.Record) {
	r.Table = string(d.bytes(d.uvarint()))
	r.Key = string(d.bytes(d.uvarint()))
	if n := d.uvarint(); n > 0 {
		r.Value = d.bytes(n - 1)
	}
	return r
}

func (d *decoder) fail() {
	d.rest = nil
	if d.err == nil {
		d.err = io.ErrUnexpectedEOF
	}
}

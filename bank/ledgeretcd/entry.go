package ledgeretcd

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"ramp/bank/boltfile"
	"ramp/bank/ledgerdb"
	"ramp/bank/row"
	"ramp/protocol"
)

// Entry is one transaction of the leader.
type Entry struct {
	Records []protocol.Record
	Head    []byte // signed, or nil
}

const (
	headerSize = 1 + sha256.Size + 8 + 1

	plain  = 0 // forms of a payload
	packed = 1
)

type header struct {
	previous [sha256.Size]byte // hash of the entry before it; zeros for the first
	term     int64             // create revision of the leader's key
	parts    int               // keys with the payload; zero: it follows
}

func (h header) encode() []byte {
	return row.New(ledgerdb.Schema, headerSize).Octets(h.previous[:]).Time(h.term).Byte(byte(h.parts))
}

func decodeHeader(b []byte) (h header, rest []byte, err error) {
	if len(b) > 0 && b[0] > ledgerdb.Schema {
		return h, nil, boltfile.Newer(uint32(b[0]), ledgerdb.Schema)
	}
	if len(b) < headerSize || b[0] == 0 {
		return h, nil, fmt.Errorf("%w: an entry of %d octets, or of form 0", ErrDamaged, len(b))
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

// hashEntry is the hash in the next entry's header.
func hashEntry(head, payload []byte) [sha256.Size]byte {
	s := sha256.New()
	_, _ = s.Write(head) // never fails
	_, _ = s.Write(payload)
	return [sha256.Size]byte(s.Sum(nil))
}

// Encode is the stored form of an entry. It fails if the entry is too large.
func (e Entry) Encode() ([]byte, error) {
	if len(e.Records) > maxRecords {
		return nil, fmt.Errorf("an append of %d records, at most %d", len(e.Records), maxRecords)
	}
	b := row.Value{plain}.String(string(e.Head)).Count(len(e.Records))
	for i := range e.Records {
		r := &e.Records[i]
		if b = b.String(r.Table).String(r.Key); r.Value == nil {
			b = b.Byte(0)
		} else {
			b = b.Count(len(r.Value) + 1).Octets(r.Value) // 0 stands for no value
		}
		if len(b) > maxPayload {
			return nil, fmt.Errorf("an append of more than %d octets", maxPayload)
		}
	}
	if len(b) < packFrom {
		return b, nil
	}
	return pack(b[1:])
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

// DecodeEntry reads an encoded entry, and copies its memory.
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
	d := row.Fields(b)
	var e Entry
	if head := d.Octets(d.Count(maxPayload)); len(head) > 0 {
		e.Head = head
	}
	for range d.Count(maxRecords) {
		r := protocol.Record{Table: d.String(maxPayload), Key: d.String(maxPayload)}
		if n := d.Count(maxPayload + 1); n > 0 {
			r.Value = d.Octets(n - 1)
		}
		if e.Records = append(e.Records, r); d.Failed() {
			break
		}
	}
	return e, d.Done()
}

func unpack(b []byte) ([]byte, error) {
	switch {
	case len(b) == 0:
		return nil, io.ErrUnexpectedEOF
	case b[0] == plain:
		return b[1:], nil
	case b[0] != packed:
		return nil, fmt.Errorf("payload of unknown form %d", b[0])
	}
	out, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(b[1:])), maxPayload+1))
	if err == nil && len(out) > maxPayload {
		err = fmt.Errorf("more than %d octets", maxPayload)
	}
	return out, err
}

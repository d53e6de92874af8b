package mesh

import (
	"encoding/binary"
	"fmt"
)

// appendField appends a length and that many bytes.
func appendField(b, field []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(field))), field...)
}

// appendList appends a count and that many fields.
func appendList(b []byte, list [][]byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, field := range list {
		b = appendField(b, field)
	}
	return b
}

// fields takes apart what was appended. After the first error everything is
// empty, so that only finish needs a check.
type fields struct {
	rest []byte
	err  error
}

func (f *fields) number(most uint64) uint64 {
	n, used := binary.Uvarint(f.rest)
	if f.err == nil && (used <= 0 || n > most) {
		f.err = fmt.Errorf("want a number of at most %d, %d bytes before the end: %w", most, len(f.rest), errMalformed)
	}
	if f.err != nil {
		return 0
	}
	f.rest = f.rest[used:]
	return n
}

func (f *fields) field() []byte {
	n := f.number(uint64(len(f.rest)))
	if f.err == nil && n > uint64(len(f.rest)) {
		f.err = fmt.Errorf("field of %d bytes, %d left: %w", n, len(f.rest), errMalformed)
	}
	if f.err != nil {
		return nil
	}
	field := f.rest[:n:n]
	f.rest = f.rest[n:]
	return field
}

func (f *fields) list(most int) [][]byte {
	n := int(f.number(uint64(most)))
	list := make([][]byte, 0, n)
	for range n {
		list = append(list, f.field())
	}
	if f.err != nil {
		return nil
	}
	return list
}

// finish returns the first error, or one if bytes are left.
func (f *fields) finish() error {
	if f.err == nil && len(f.rest) > 0 {
		f.err = fmt.Errorf("%d bytes too many: %w", len(f.rest), errMalformed)
	}
	return f.err
}

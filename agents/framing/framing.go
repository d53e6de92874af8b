// Package framing reads and writes what every stream of RAMP consists of: frames, which are
// a length and that many bytes, and the fields and lists in them (docs/WIRE.md).
package framing

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// Timeout is how long a frame that has begun may take.
const Timeout = 30 * time.Second

// trustedLength is how much of a frame is allocated before any of it arrives.
const trustedLength = 64 << 10

// Errors of reading.
var (
	ErrMalformed = errors.New("malformed")
	ErrBound     = errors.New("over the limit")
)

// deadliner is the part of a stream that bounds a read.
type deadliner interface {
	SetReadDeadline(t time.Time) error
}

// Write writes a length and that many bytes.
func Write(w *bufio.Writer, b []byte) error {
	var length [binary.MaxVarintLen64]byte
	if _, err := w.Write(length[:binary.PutUvarint(length[:], uint64(len(b)))]); err != nil {
		return err
	}
	_, err := w.Write(b)
	return err
}

// WriteOne writes a single frame to a stream.
func WriteOne(s io.Writer, b []byte) error {
	w := bufio.NewWriterSize(s, 4<<10)
	if err := Write(w, b); err != nil {
		return err
	}
	return w.Flush()
}

// Read waits without a limit for a frame to begin, and Timeout for the rest of
// it. It refuses a frame longer than limit before it allocates anything.
func Read(s deadliner, r *bufio.Reader, limit int) ([]byte, error) {
	if _, err := r.Peek(1); err != nil {
		return nil, err
	}
	if !complete(r) {
		if err := s.SetReadDeadline(time.Now().Add(Timeout)); err != nil {
			return nil, err
		}
		defer func() { _ = s.SetReadDeadline(time.Time{}) }() // fails only on a lost stream
	}
	return Take(r, limit)
}

// complete reports whether a whole frame is buffered, so that no deadline is needed.
func complete(r *bufio.Reader) bool {
	head, _ := r.Peek(min(r.Buffered(), binary.MaxVarintLen64)) // cannot fail: it is buffered
	n, used := binary.Uvarint(head)
	return used > 0 && n <= uint64(r.Buffered()-used)
}

// Take reads a frame. It refuses one longer than limit before it allocates anything.
func Take(r *bufio.Reader, limit int) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, fmt.Errorf("length of a frame: %w", err)
	}
	if n > uint64(limit) {
		return nil, fmt.Errorf("frame of %d bytes, at most %d: %w", n, limit, ErrBound)
	}
	if n <= trustedLength {
		b := make([]byte, n)
		_, err := io.ReadFull(r, b)
		return b, err
	}
	var b bytes.Buffer
	_, err = io.CopyN(&b, r, int64(n))
	return b.Bytes(), err
}

// AppendField appends a length and that many bytes.
func AppendField(b, field []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(field))), field...)
}

// AppendList appends a count and that many fields.
func AppendList(b []byte, list [][]byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, field := range list {
		b = AppendField(b, field)
	}
	return b
}

// Fields parses what AppendField and AppendList wrote; Rest is what is left. After the first
// error every result is empty, so only Finish needs a check.
type Fields struct {
	Rest []byte
	err  error
}

// Number reads a number of at most most.
func (f *Fields) Number(most uint64) uint64 {
	n, used := binary.Uvarint(f.Rest)
	if f.err == nil && (used <= 0 || n > most) {
		f.err = fmt.Errorf("want a number of at most %d, %d bytes before the end: %w", most, len(f.Rest), ErrMalformed)
	}
	if f.err != nil {
		return 0
	}
	f.Rest = f.Rest[used:]
	return n
}

// Field reads a field, which shares memory with Rest.
func (f *Fields) Field() []byte {
	n := f.Number(uint64(len(f.Rest)))
	if f.err == nil && n > uint64(len(f.Rest)) {
		f.err = fmt.Errorf("field of %d bytes, %d left: %w", n, len(f.Rest), ErrMalformed)
	}
	if f.err != nil {
		return nil
	}
	field := f.Rest[:n:n]
	f.Rest = f.Rest[n:]
	return field
}

// List reads a list of at most most fields.
func (f *Fields) List(most int) [][]byte {
	n := int(f.Number(uint64(most)))
	list := make([][]byte, 0, n)
	for range n {
		list = append(list, f.Field())
	}
	if f.err != nil {
		return nil
	}
	return list
}

// Finish returns the first error, or one if bytes are left.
func (f *Fields) Finish() error {
	if f.err == nil && len(f.Rest) > 0 {
		f.err = fmt.Errorf("%d bytes too many: %w", len(f.Rest), ErrMalformed)
	}
	return f.err
}

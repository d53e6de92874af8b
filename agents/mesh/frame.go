package mesh

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"time"
)

// deadliner is the part of a stream that bounds a read.
type deadliner interface {
	SetReadDeadline(t time.Time) error
}

// writeFrame writes a length and that many bytes.
func writeFrame(w *bufio.Writer, b []byte) error {
	var length [binary.MaxVarintLen64]byte
	if _, err := w.Write(length[:binary.PutUvarint(length[:], uint64(len(b)))]); err != nil {
		return err
	}
	_, err := w.Write(b)
	return err
}

// writeOne writes a single frame to a stream.
func writeOne(s io.Writer, b []byte) error {
	w := bufio.NewWriterSize(s, smallBuffer)
	if err := writeFrame(w, b); err != nil {
		return err
	}
	return w.Flush()
}

// readFrame waits without a limit for a frame to begin, and FrameTimeout for the rest of
// it. It refuses a frame longer than limit before it allocates anything.
func readFrame(s deadliner, r *bufio.Reader, limit int) ([]byte, error) {
	if _, err := r.Peek(1); err != nil {
		return nil, err
	}
	if !complete(r) {
		if err := s.SetReadDeadline(time.Now().Add(FrameTimeout)); err != nil {
			return nil, err
		}
		defer func() { _ = s.SetReadDeadline(time.Time{}) }() // fails only on a lost stream
	}
	return takeFrame(r, limit)
}

// complete reports whether a whole frame is buffered, so that no deadline is needed.
func complete(r *bufio.Reader) bool {
	head, _ := r.Peek(min(r.Buffered(), binary.MaxVarintLen64)) // cannot fail: it is buffered
	n, used := binary.Uvarint(head)
	return used > 0 && n <= uint64(r.Buffered()-used)
}

func takeFrame(r *bufio.Reader, limit int) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, fmt.Errorf("length of a frame: %w", err)
	}
	if n > uint64(limit) {
		return nil, fmt.Errorf("frame of %d bytes, at most %d: %w", n, limit, errBound)
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

// fields parses what appendField and appendList wrote. After the first error every
// result is empty, so only finish needs a check.
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

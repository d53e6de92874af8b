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

// readFrame waits for a frame for as long as the peer is silent, but once it has
// begun for FrameTimeout only. A frame longer than limit is refused before
// anything is allocated for it.
func readFrame(s deadliner, r *bufio.Reader, limit int) ([]byte, error) {
	if _, err := r.Peek(1); err != nil {
		return nil, err
	}
	if !complete(r) {
		if err := s.SetReadDeadline(time.Now().Add(FrameTimeout)); err != nil {
			return nil, err
		}
		defer func() { _ = s.SetReadDeadline(time.Time{}) }() // fails only on a stream that is lost
	}
	return takeFrame(r, limit)
}

// complete reports whether a whole frame is buffered, which needs no deadline.
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

package stage

import (
	"errors"
	"hash"
	"io"
	"os"
	"syscall"
	"time"
)

// Sizes and modes for a received file.
const (
	buffers   = 4       // chunks on their way from the stream to the hash
	flushStep = 8 << 20 // bytes after which the kernel starts writing to disk
	flushHint = 2       // SYNC_FILE_RANGE_WRITE: start without waiting
)

// receive copies a number of bytes from a stream to the end of a file, which has at bytes, and into
// a hash, as long as they keep coming. It reads, hashes and writes concurrently, so that the
// slowest decides the time. On an error the file has all received bytes.
func receive(s Stream, file *os.File, h hash.Hash, at, n int64) error {
	free, full := make(chan []byte, buffers), make(chan []byte, buffers)
	size := min(n, chunk)
	for range min(buffers, (n+chunk-1)/chunk) {
		free <- make([]byte, size)
	}
	hashed := make(chan struct{})
	go func() {
		defer close(hashed)
		for b := range full {
			_, _ = h.Write(b) // a hash never fails
			free <- b[:size]
		}
	}()
	r := receiving{s: s, file: file, at: at, flushed: at}
	var err error
	for n > 0 && err == nil {
		b := <-free
		var got int
		got, err = r.piece(b[:min(n, size)])
		n -= int64(got)
		full <- b[:got]
	}
	close(full)
	<-hashed
	return err
}

// receiving is a file that grows.
type receiving struct {
	s       Stream
	file    *os.File
	at      int64     // its size
	flushed int64     // up to where writing to disk has started
	until   time.Time // the stream's deadline
}

// piece reads and writes a piece; before an error it may be short.
func (r *receiving) piece(b []byte) (int, error) {
	got, err := r.fill(b)
	wrote, failed := r.file.Write(b[:got])
	r.at += int64(wrote)
	if r.at-r.flushed >= flushStep {
		_ = syscall.SyncFileRange(int(r.file.Fd()), r.flushed, r.at-r.flushed, flushHint) // the whole file is synced later
		r.flushed = r.at
	}
	return got, errors.Join(err, failed)
}

// fill reads until b is full. It extends the deadline while bytes come, but not for each read.
func (r *receiving) fill(b []byte) (int, error) {
	n := 0
	for n < len(b) {
		if now := time.Now(); r.until.Sub(now) < idleTime-time.Second {
			r.until = now.Add(idleTime)
			if err := r.s.SetDeadline(r.until); err != nil {
				return n, err
			}
		}
		got, err := r.s.Read(b[n:])
		n += got
		if err != nil && n < len(b) {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return n, err
		}
	}
	return n, nil
}

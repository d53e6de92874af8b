package stage

import (
	"errors"
	"hash"
	"io"
	"os"
	"syscall"
	"time"
)

// Of a file that is received.
const (
	buffers   = 4       // chunks on their way from the stream to the hash
	flushStep = 8 << 20 // bytes after which the disk is asked to begin writing them
	flushHint = 2       // SYNC_FILE_RANGE_WRITE: begin, and do not wait
)

// receive copies so many bytes from a stream to the end of a file, which has at
// bytes, and into a hash, as long as they keep coming. Reading, hashing and the
// disk work at the same time: together they take as long as the slowest alone.
// What has come before an error is in the file.
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
	flushed int64     // up to where the disk was asked to write
	until   time.Time // the stream's deadline
}

// piece reads a whole piece, or what there is of it before an error, and writes it.
func (r *receiving) piece(b []byte) (int, error) {
	got, err := r.fill(b)
	wrote, failed := r.file.Write(b[:got])
	r.at += int64(wrote)
	if r.at-r.flushed >= flushStep {
		_ = syscall.SyncFileRange(int(r.file.Fd()), r.flushed, r.at-r.flushed, flushHint) // it is synced at its end
		r.flushed = r.at
	}
	return got, errors.Join(err, failed)
}

// fill reads until b is full. The deadline moves as long as bytes come; it is not
// set for each of them.
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

package stage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"ramp/protocol"
)

// The kinds of a log's parts: one byte, followed by a length of four bytes.
const (
	partAlive  = 0 // empty: the other side is alive
	partStdout = 1
	partStderr = 2
	partEnd    = 3
)

// Pauses between two reads of a growing output.
const (
	lookLeast = 20 * time.Millisecond
	lookMost  = 400 * time.Millisecond
)

// tail is one of a job's two outputs, read as it grows.
type tail struct {
	kind   byte
	path   string
	offset int64
}

// log sends the output of a job up to its present end or, with follow, until the job
// has ended.
func (d *Depot) log(ctx context.Context, from protocol.AgentID, s Stream, q request, g Grant, buffer []byte) error {
	if q.Offset < 0 || q.Errors < 0 {
		return refuse(protocol.CodeMalformed, "a negative offset")
	}
	if err := writeHead(s, answer{OK: true}); err != nil {
		return err
	}
	tails := []*tail{
		{partStdout, filepath.Join(d.dir(g.Job), "stdout"), q.Offset},
		{partStderr, filepath.Join(d.dir(g.Job), "stderr"), q.Errors},
	}
	rest, told := lookLeast, time.Now()
	for {
		over := g.Over || !q.Follow // looked up before reading, to miss nothing
		sent, err := sendAll(s, tails, buffer)
		switch {
		case err != nil:
			return err
		case over && !sent:
			return writePart(s, partEnd, nil)
		case sent:
			rest, told = lookLeast, time.Now()
		case time.Since(told) >= aliveTime:
			if err := writePart(s, partAlive, nil); err != nil {
				return err
			}
			told = time.Now()
		}
		if !over && !sent && !wait(ctx, rest) {
			return ctx.Err()
		}
		rest = min(2*rest, lookMost)
		if q.Follow {
			if g, err = d.cfg.Grant(ctx, from, q.Key); err != nil {
				return writePart(s, partEnd, nil) // the job was forgotten
			}
		}
	}
}

func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// sendAll sends new output, and reports whether there was any.
func sendAll(s Stream, tails []*tail, buffer []byte) (bool, error) {
	any := false
	for _, t := range tails {
		sent, err := t.send(s, buffer)
		if err != nil {
			return any, err
		}
		any = any || sent
	}
	return any, nil
}

// send sends at most a buffer of new output.
func (t *tail) send(s Stream, buffer []byte) (bool, error) {
	f, err := os.OpenFile(t.path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close() //nolint:errcheck // only read
	n, err := f.ReadAt(buffer, t.offset)
	if n == 0 || err != nil && !errors.Is(err, io.EOF) {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return false, err
	}
	t.offset += int64(n)
	return true, writePart(s, t.kind, buffer[:n])
}

func writePart(s Stream, kind byte, b []byte) error {
	if err := s.SetDeadline(time.Now().Add(idleTime)); err != nil {
		return err
	}
	head := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(b)))
	if _, err := s.Write(append(head, b...)); err != nil {
		return err
	}
	return nil
}

// Log writes the output of a job from two offsets on, and advances these. With follow
// it continues until the job has ended.
func Log(s Stream, k Key, out, errs *int64, follow bool, stdout, stderr io.Writer) error {
	if _, err := ask(s, request{Key: k, Do: "log", Offset: *out, Errors: *errs, Follow: follow}); err != nil {
		return err
	}
	buffer := make([]byte, chunk)
	for {
		if err := s.SetDeadline(time.Now().Add(idleTime)); err != nil {
			return err
		}
		var head [5]byte
		if _, err := io.ReadFull(s, head[:]); err != nil {
			return err
		}
		n := binary.BigEndian.Uint32(head[1:])
		if n > chunk {
			return fmt.Errorf("a part of %d bytes, at most %d", n, chunk)
		}
		if _, err := io.ReadFull(s, buffer[:n]); err != nil {
			return err
		}
		switch head[0] {
		case partEnd:
			return nil
		case partStdout:
			*out += int64(n)
			if _, err := stdout.Write(buffer[:n]); err != nil {
				return err
			}
		case partStderr:
			*errs += int64(n)
			if _, err := stderr.Write(buffer[:n]); err != nil {
				return err
			}
		}
	}
}

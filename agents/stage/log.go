package stage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"ramp/agents"
	"ramp/protocol"
)

// The kinds of a log's parts: one byte, followed by a length of four bytes.
const (
	partAlive  = 0 // empty: the other side is alive
	partStdout = 1
	partStderr = 2
	partEnd    = 3
	partKept   = 4 // the end, for now: the rest waits for the usage
)

// Printed output is for watching a job; results belong in its output files. While the usage of a
// job can still be disputed, a site delivers logHead bytes of stdout and of stderr; at the job's
// end a follower waits up to keptTime for the rest.
const (
	logHead  = 64 << 10
	keptTime = 15 * time.Second
)

// ErrKept is returned by Log for output that its site delivers later.
var ErrKept = errors.New("the site delivers the rest of the output when the usage is agreed or decided")

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
	more   bool // there was more than may be delivered yet
}

// log sends the output of a job up to its present end or, with follow, until the job has ended.
func (d *Depot) log(ctx context.Context, from protocol.AgentID, s Stream, q request, g Grant, buffer []byte) error {
	if q.Offset < 0 || q.Errors < 0 {
		return refuse(protocol.CodeMalformed, "a negative offset")
	}
	if err := writeHead(s, answer{OK: true}); err != nil {
		return err
	}
	tails := []*tail{{kind: partStdout, path: filepath.Join(d.dir(g.Job), "stdout"), offset: q.Offset}, {kind: partStderr, path: filepath.Join(d.dir(g.Job), "stderr"), offset: q.Errors}}
	rest, told, waits := lookLeast, time.Now(), time.Time{}
	for {
		over, most := g.Over || !q.Follow, int64(math.MaxInt64) // looked up before reading, to miss nothing
		if g.Head {
			most = logHead
		}
		sent, err := sendAll(s, tails, buffer, most)
		kept := tails[0].more || tails[1].more
		if waits.IsZero() && kept && over {
			waits = time.Now().Add(keptTime)
		}
		switch {
		case err != nil:
			return err
		case over && !sent && kept && q.Follow && time.Now().Before(waits):
			rest = lookMost
		case over && !sent:
			return writePart(s, endOf(kept), nil)
		case sent:
			rest, told = lookLeast, time.Now()
		case time.Since(told) >= aliveTime:
			if err := writePart(s, partAlive, nil); err != nil {
				return err
			}
			told = time.Now()
		}
		if !sent && !agents.Pause(ctx, rest) {
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

func endOf(kept bool) byte {
	if kept {
		return partKept
	}
	return partEnd
}

// sendAll sends new output up to a length of each, and reports whether there was any.
func sendAll(s Stream, tails []*tail, buffer []byte, most int64) (bool, error) {
	any := false
	for _, t := range tails {
		sent, err := t.send(s, buffer, most)
		if err != nil {
			return any, err
		}
		any = any || sent
	}
	return any, nil
}

// send sends at most a buffer of new output.
func (t *tail) send(s Stream, buffer []byte, most int64) (bool, error) {
	t.more = false
	f, err := os.OpenFile(t.path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close() //nolint:errcheck // only read
	if t.offset >= most {
		info, err := f.Stat()
		t.more = err == nil && info.Size() > t.offset
		return false, err
	}
	n, err := f.ReadAt(buffer[:min(int64(len(buffer)), most-t.offset)], t.offset)
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
	_, err := s.Write(append(head, b...))
	return err
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
		case partKept:
			return ErrKept
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

// Package stage transfers files between a user and the site of its job, and keeps the
// files of a site's jobs apart.
//
// An exchange is a stream on which one side sends requests, one or several, and the
// other answers. Every request and answer is JSON after its length in four bytes. The
// file's bytes follow an answer unchanged:
//
//	put  the answer is the next missing byte; the rest of the file follows, and then
//	     another answer, once the file is complete and its hash is right
//	get  the answer is the file's size; its bytes from an offset on follow
//	log  the job's output follows in parts, until the job has ended
//
// An interrupted transfer continues where it stopped. Files are named by paths that
// protocol.CheckPath accepts, opened below their job's directory without following
// links, and never larger than announced.
package stage

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"ramp/protocol"
)

// Bounds and times of an exchange.
const (
	maxHead   = 16 << 10         // bytes of a request or an answer
	chunk     = 256 << 10        // bytes read and written at once
	idleTime  = 30 * time.Second // without progress of the other side
	restTime  = 2 * time.Minute  // until the next request on an open exchange
	aliveTime = 10 * time.Second // between the empty parts of a silent log
)

// Stream is the network connection of an exchange.
type Stream interface {
	io.ReadWriter
	SetDeadline(t time.Time) error
	CloseWrite() error
	Close() error
}

// ErrRelayed means that only a relay reaches the site, and that it does not carry a file of
// that size. Trying again does not help.
var ErrRelayed = errors.New("only a relay reaches the site")

// fits reports whether the connection of a stream carries a file. If several files are more
// than a relay carries, they continue over another connection.
func fits(s Stream, f protocol.StagedFile) error {
	relayed, ok := s.(interface{ Most() int64 })
	if ok && relayed.Most() > 0 && f.Size > relayed.Most() {
		return fmt.Errorf("%s: %w, which carries %d MiB; the file has %d MiB. 'ramp doctor' shows how to get a direct connection", f.Path, ErrRelayed, relayed.Most()>>20, f.Size>>20)
	}
	return nil
}

// Key names a launch; the stream names the agent that asks.
type Key struct {
	Contract protocol.ContractID `json:"contract"`
	Unit     int                 `json:"unit"`
	Launch   string              `json:"launch"`
}

// request is sent by the side that asks.
type request struct {
	Key
	Do     string `json:"do"`
	Path   string `json:"path,omitempty"`
	Offset int64  `json:"offset,omitempty"` // of get, and of stdout
	Errors int64  `json:"errors,omitempty"` // offset of stderr
	Follow bool   `json:"follow,omitempty"`
}

// answer is sent by the other side.
type answer struct {
	OK     bool          `json:"ok"`
	Offset int64         `json:"offset,omitempty"` // of put: the next missing byte
	Size   int64         `json:"size,omitempty"`   // of get
	Code   protocol.Code `json:"code,omitempty"`   // reason of a refusal
	Note   string        `json:"note,omitempty"`
}

// Refusal is the other side's reason for refusing a request.
type Refusal struct {
	Code protocol.Code
	Note string
}

func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Note }

func refuse(code protocol.Code, format string, args ...any) error {
	return &Refusal{code, fmt.Sprintf(format, args...)}
}

// writeHead writes a request or an answer.
func writeHead(s Stream, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(b) > maxHead {
		return fmt.Errorf("a head of %d bytes, at most %d", len(b), maxHead)
	}
	if err := s.SetDeadline(time.Now().Add(idleTime)); err != nil {
		return err
	}
	_, err = s.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	return err
}

// readHead reads a request or an answer that arrives within a time.
func readHead(s Stream, v any, within time.Duration) error {
	if err := s.SetDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	var length [4]byte
	if _, err := io.ReadFull(s, length[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > maxHead {
		return fmt.Errorf("a head of %d bytes, at most %d", n, maxHead)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(s, b); err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// ask sends a request and returns its answer; a refusal is an error.
func ask(s Stream, q request) (answer, error) {
	if err := writeHead(s, q); err != nil {
		return answer{}, err
	}
	return hear(s)
}

func hear(s Stream) (answer, error) {
	var a answer
	if err := readHead(s, &a, idleTime); err != nil {
		return a, err
	}
	if !a.OK {
		return a, &Refusal{a.Code, protocol.Words(a.Note)}
	}
	return a, nil
}

// no answers an error: it sends a Refusal as it is, and hides the details of others.
func no(s Stream, err error) error {
	var r *Refusal
	if !errors.As(err, &r) {
		r = &Refusal{protocol.CodeUnavailable, protocol.Words(err.Error())}
	}
	return writeHead(s, answer{Code: r.Code, Note: r.Note})
}

// steady copies a number of bytes, as long as they keep coming.
func steady(s Stream, dst io.Writer, src io.Reader, n int64, buffer []byte) error {
	for n > 0 {
		if err := s.SetDeadline(time.Now().Add(idleTime)); err != nil {
			return err
		}
		part := buffer[:min(int64(len(buffer)), n)]
		got, err := src.Read(part)
		if got > 0 {
			if _, err := dst.Write(part[:got]); err != nil {
				return err
			}
			n -= int64(got)
		}
		if err != nil && n > 0 {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// Package stage carries files between a user and the site where its job runs, and
// keeps a site's jobs apart on its disk.
//
// An exchange is a stream on which one side asks, once or again and again, and the
// other answers; every request and answer is a length of four bytes and so much
// JSON. After the answer come the file's bytes as they are.
//
//	put  the next missing byte is answered; the rest of the file follows, and then
//	     another answer, once the whole file is there and its hash is right
//	get  the file's size is answered; its bytes from an offset on follow
//	log  what a job prints follows in parts, until the job is over
//
// A transfer that breaks off goes on where it was. Files are named by paths that
// protocol.CheckPath takes, opened below their job's directory without following
// links, and never larger than was said.
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
	idleTime  = 30 * time.Second // for the other side to go on
	restTime  = 2 * time.Minute  // for the next request on an exchange that is kept
	aliveTime = 10 * time.Second // between parts of a log that has nothing to tell
)

// Stream is what an exchange needs of the network.
type Stream interface {
	io.ReadWriter
	SetDeadline(t time.Time) error
	CloseWrite() error
	Close() error
}

// Key names a launch; who asks is known from the stream.
type Key struct {
	Contract protocol.ContractID `json:"contract"`
	Unit     int                 `json:"unit"`
	Launch   string              `json:"launch"`
}

// request is what one side asks.
type request struct {
	Key
	Do     string `json:"do"`
	Path   string `json:"path,omitempty"`
	Offset int64  `json:"offset,omitempty"` // of get, and of stdout
	Errors int64  `json:"errors,omitempty"` // offset of stderr
	Follow bool   `json:"follow,omitempty"`
}

// answer is what the other side says.
type answer struct {
	OK     bool          `json:"ok"`
	Offset int64         `json:"offset,omitempty"` // of put: from which byte on
	Size   int64         `json:"size,omitempty"`   // of get
	Code   protocol.Code `json:"code,omitempty"`   // why not
	Note   string        `json:"note,omitempty"`
}

// Refusal is why the other side does not do what was asked.
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

// readHead reads a request or an answer that comes within a time.
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

// hear reads an answer.
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

// no answers an error: a Refusal as it is, and of anything else that it failed.
func no(s Stream, err error) error {
	var r *Refusal
	if !errors.As(err, &r) {
		r = &Refusal{protocol.CodeUnavailable, protocol.Words(err.Error())}
	}
	return writeHead(s, answer{Code: r.Code, Note: r.Note})
}

// steady copies so many bytes, as long as they keep coming.
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

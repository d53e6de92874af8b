package words

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// Prefixed writes whole lines with a prefix; with an empty prefix it just passes the data on. Mu
// keeps the lines of several writers apart.
type Prefixed struct {
	W      io.Writer
	Mu     *sync.Mutex
	Prefix string
	rest   []byte
}

// maxLogLine bounds a line that is buffered until it ends.
const maxLogLine = 64 << 10

// Write writes the complete lines.
func (p *Prefixed) Write(b []byte) (int, error) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if p.Prefix == "" {
		return p.W.Write(b)
	}
	p.rest = append(p.rest, b...)
	for {
		i := bytes.IndexByte(p.rest, '\n')
		if i < 0 && len(p.rest) < maxLogLine {
			return len(b), nil
		}
		if i < 0 {
			i = len(p.rest) - 1
		}
		if _, err := fmt.Fprintf(p.W, "%s%s\n", p.Prefix, bytes.TrimSuffix(p.rest[:i+1], []byte("\n"))); err != nil {
			return 0, err
		}
		p.rest = p.rest[i+1:]
	}
}

// End writes a last line without a newline.
func (p *Prefixed) End() {
	if len(p.rest) > 0 {
		_, _ = p.Write([]byte("\n")) // an error means that the reader has gone
	}
}

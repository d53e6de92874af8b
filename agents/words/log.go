package words

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"ramp/agents/exit"
	"ramp/protocol"
)

// PlainLog is a log for people: "warning: MESSAGE: ERROR (NAME VALUE, ...)".
type PlainLog struct {
	W     io.Writer
	attrs []slog.Attr
}

func (p PlainLog) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

func (p PlainLog) Handle(_ context.Context, r slog.Record) error {
	line, about := "warning: "+protocol.Words(r.Message), []string{}
	add := func(a slog.Attr) bool {
		if value := protocol.Words(exit.OneLine(a.Value.Resolve().String())); a.Key == "err" {
			line += ": " + value
		} else {
			about = append(about, a.Key+" "+value)
		}
		return true
	}
	for _, a := range p.attrs {
		add(a)
	}
	if r.Attrs(add); len(about) > 0 {
		line += " (" + strings.Join(about, ", ") + ")"
	}
	_, err := io.WriteString(p.W, ForPeople(line)+"\n")
	return err
}

func (p PlainLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return PlainLog{p.W, append(slices.Clone(p.attrs), attrs...)}
}

// WithGroup drops the name of a group: no line for people needs it.
func (p PlainLog) WithGroup(string) slog.Handler { return p }

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

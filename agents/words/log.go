package words

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"

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

// Package node is one running agent on this machine: a role, its store, the mesh, the batch driver,
// staged files, metrics and the control socket. It starts, reloads, drains and stops them. Daemons,
// commands without a daemon, the demo and tests use it. What to decide is left to the role.
package node

import (
	"io"
	"log/slog"
	"strings"
	"time"

	"ramp/agents/config"
	"ramp/agents/words"
	"ramp/protocol"
)

// CommandLog tells a person at a command line only what went wrong, in plain lines.
func CommandLog(w io.Writer) *slog.Logger { return slog.New(words.PlainLog{W: w}) }

// logged is a value of a daemon's log: times are in UTC, and texts, which may quote a foreign
// agent or program, have no controls of a terminal and at most protocol.MaxWords bytes.
func logged(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Any().(type) {
	case time.Time:
		a.Value = slog.TimeValue(v.UTC())
	case string:
		a.Value = slog.StringValue(protocol.Words(v))
	case error:
		a.Value = slog.StringValue(protocol.Words(v.Error()))
	case []string:
		a.Value = slog.StringValue(protocol.Words(strings.Join(v, ", ")))
	}
	return a
}

// levelled is a log whose level can be changed.
type levelled struct {
	slog.Handler
	level *slog.LevelVar
}

// WithAttrs is the handler's; the level stays the same one.
func (l levelled) WithAttrs(attrs []slog.Attr) slog.Handler {
	return levelled{l.Handler.WithAttrs(attrs), l.level}
}

func (l levelled) WithGroup(name string) slog.Handler {
	return levelled{l.Handler.WithGroup(name), l.level}
}

// DaemonLog is the log of a daemon at the level of its configuration. It ignores a
// configuration that cannot be read: the next reader reports that.
func DaemonLog(w io.Writer, path string) *slog.Logger {
	var c config.Log
	if cfg, err := config.Read(path); err == nil && cfg.Log.Check() == nil {
		c = cfg.Log
	}
	level := &slog.LevelVar{}
	level.Set(c.SlogLevel())
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: logged}
	if c.Format == "json" {
		return slog.New(levelled{slog.NewJSONHandler(w, opts), level})
	}
	return slog.New(levelled{slog.NewTextHandler(w, opts), level})
}

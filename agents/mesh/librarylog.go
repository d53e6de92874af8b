package mesh

import (
	"context"
	"log/slog"

	"github.com/libp2p/go-libp2p/gologshim"
)

// LibraryLog sends libp2p's warnings and errors to a handler at level debug, because
// libp2p reports ordinary events as errors, such as a closed listener. Without it libp2p
// writes to standard error. Call it before the first Listen of the process.
func LibraryLog(to slog.Handler) { gologshim.SetDefaultHandler(library{to}) }

type library struct{ slog.Handler }

// Enabled drops records below a warning.
func (l library) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && l.Handler.Enabled(ctx, slog.LevelDebug)
}

// Handle handles r as a record of level debug.
func (l library) Handle(ctx context.Context, r slog.Record) error {
	r.Level = slog.LevelDebug
	return l.Handler.Handle(ctx, r)
}

// WithAttrs keeps the level down.
func (l library) WithAttrs(attrs []slog.Attr) slog.Handler {
	return library{l.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the level down.
func (l library) WithGroup(name string) slog.Handler { return library{l.Handler.WithGroup(name)} }

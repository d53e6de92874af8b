package command

import (
	"context"
	"io"
	"log/slog"
	"time"

	"ramp/agents"
	"ramp/agents/resource"
	"ramp/agents/user"
	"ramp/protocol"
)

// retuneTime is how long the role takes to adopt a configuration at most.
const retuneTime = 10 * time.Second

// retune reads the configuration again and adopts what may change while the agent
// runs: the level of the log, and of its role prices and limits. A configuration
// with a fault changes nothing.
func (n *node) retune() error {
	cfg, err := readConfig(n.file)
	if err != nil {
		return err
	}
	if err := cfg.check(); err != nil {
		return err
	}
	if n.adopt != nil {
		if err := n.adopt(cfg); err != nil {
			return err
		}
	}
	if h, ok := n.log.Handler().(levelled); ok {
		h.level.Set(cfg.Log.level())
	}
	n.log.Info("configuration read again", "file", n.file)
	return nil
}

// inRole calls f in the goroutine that owns the role.
func (n *node) inRole(f func(r agents.Role) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), retuneTime)
	defer cancel()
	var failed error
	err := n.runner.Do(ctx, func(_ time.Time, r agents.Role) protocol.Output {
		failed = f(r)
		return protocol.Output{}
	})
	if err != nil {
		return err
	}
	return failed
}

// adoptResource takes a site's prices and limits; role is what the agent is made
// from again after a failed write, in the same goroutine.
func (r *resourceNode) adoptResource(cfg *config, role *resource.Config) error {
	if cfg.Resource == nil {
		return fail(exitUsage, "", "configuration %s is not a resource's any more", r.file)
	}
	next, err := cfg.Resource.role(r.cred, r.driver.cores, cfg.Heartbeat)
	if err != nil {
		return err
	}
	return r.inRole(func(a agents.Role) error {
		kept := a.(*resource.Role).Retune(next)
		*role = kept
		return nil
	})
}

// adoptUser takes a user's banks and limits.
func (n *node) adoptUser(cfg *config, role *user.Config) error {
	next, err := cfg.userRole(n.cred, n.trust)
	if err != nil {
		return err
	}
	return n.inRole(func(a agents.Role) error {
		a.(*user.Role).Retune(next)
		*role = next
		return nil
	})
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

// WithGroup is the handler's.
func (l levelled) WithGroup(name string) slog.Handler {
	return levelled{l.Handler.WithGroup(name), l.level}
}

// logConfig is what a daemon logs, and how.
type logConfig struct {
	Level  string `yaml:"level,omitempty"`  // debug, info, warn or error
	Format string `yaml:"format,omitempty"` // text or json
}

func (c logConfig) check() error {
	var l slog.Level
	if c.Level != "" && l.UnmarshalText([]byte(c.Level)) != nil {
		return fail(exitUsage, "", "configuration: log.level: %q: want debug, info, warn or error", c.Level)
	}
	if c.Format != "" && c.Format != "text" && c.Format != "json" {
		return fail(exitUsage, "", "configuration: log.format: %q: want text or json", c.Format)
	}
	return nil
}

func (c logConfig) level() slog.Level {
	l := slog.LevelInfo
	_ = l.UnmarshalText([]byte(c.Level)) // checked before; none: info
	return l
}

// daemonLog tells an operator what happens, as the configuration says; one that
// cannot be read is told about by who reads it next.
func daemonLog(w io.Writer, path string) *slog.Logger {
	var c logConfig
	if cfg, err := readConfig(path); err == nil && cfg.Log.check() == nil {
		c = cfg.Log
	}
	level := &slog.LevelVar{}
	level.Set(c.level())
	opts := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(levelled{slog.NewJSONHandler(w, opts), level})
	}
	return slog.New(levelled{slog.NewTextHandler(w, opts), level})
}

package config

import (
	"log/slog"
	"net/netip"

	"ramp/agents/exit"
)

// checkMonitor refuses an address that other machines can reach: the metrics show who trades
// with whom, and have no password.
func checkMonitor(address string) error {
	if address == "" {
		return nil
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().IsLoopback() {
		return exit.Fail(exit.Usage, "", "configuration: monitor: %q: want a loopback address and a port, such as 127.0.0.1:9301", address)
	}
	return nil
}

// Log configures a daemon's log.
type Log struct {
	Level  string `yaml:"level,omitempty" live:""` // debug, info, warn or error
	Format string `yaml:"format,omitempty"`        // text or json
}

func (c Log) Check() error {
	var l slog.Level
	if c.Level != "" && l.UnmarshalText([]byte(c.Level)) != nil {
		return exit.Fail(exit.Usage, "", "configuration: log.level: %q: want debug, info, warn or error", c.Level)
	}
	if c.Format != "" && c.Format != "text" && c.Format != "json" {
		return exit.Fail(exit.Usage, "", "configuration: log.format: %q: want text or json", c.Format)
	}
	return nil
}

func (c Log) SlogLevel() slog.Level {
	l := slog.LevelInfo
	_ = l.UnmarshalText([]byte(c.Level)) // checked before; empty: info
	return l
}

package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ramp/agents/config"
)

// A daemon adopts some keys while it runs; every other one that was changed is named.
func TestChangedKeysThatNeedARestartAreNamed(t *testing.T) {
	const was = "listen: [/ip4/127.0.0.1/tcp/0]\nlog: {level: info}\n" +
		"resource:\n  driver: swf\n  swf: {log: a.swf, base: 5}\n  start_price: \"4\"\n  minimum_price: \"2\"\n  pay: []\n  lead: 1m\n"
	for name, c := range map[string]struct{ old, new, want string }{
		"nothing":                         {"", "", ""},
		"a price is adopted":              {`start_price: "4"`, `start_price: "5"`, ""},
		"the level of the log is adopted": {"level: info", "level: debug", ""},
		"its form is not":                 {"{level: info}", "{level: info, format: json}", "log.format"},
		"an address":                      {"tcp/0", "tcp/7", "listen"},
		"a key within a key":              {"base: 5", "base: 6", "resource.swf.base"},
		"a time":                          {"base: 5", "base: 5, start: 2026-11-22T18:00:00Z", "resource.swf.start"},
		"a new section":                   {"  lead: 1m\n", "  lead: 1m\n  jobs: {keep: 1h}\n", "resource.jobs"},
		"a key that is left out":          {"  lead: 1m\n", "", ""},
		"several, in order":               {"tcp/0]\n", "tcp/7]\nmdns: true\nmonitor: 127.0.0.1:1\n", "listen, mdns, monitor"},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := read(t, was), read(t, strings.Replace(was, c.old, c.new, 1))
			if got := strings.Join(before.NeedsRestart(after), ", "); got != c.want {
				t.Errorf("told %q, want %q", got, c.want)
			}
		})
	}
}

func read(t *testing.T, text string) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), config.Name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

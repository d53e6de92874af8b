package command_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ramp/cmd/ramp/command"
)

// FuzzConfig: a configuration is good, or refused in one line as bad input.
func FuzzConfig(f *testing.F) {
	f.Add([]byte("bank: {currencies: [CPU]}\n"))
	f.Add([]byte("listen: [/ip4/127.0.0.1/tcp/0]\nlog: {level: debug}\nmonitor: 127.0.0.1:1\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("heartbeat: -1s\n---\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errOut bytes.Buffer
		if code := command.Main([]string{"bank", "config", "check", file}, strings.NewReader(""), &out, &errOut); code != 2 {
			t.Fatalf("ended with %d: %s", code, errOut.String())
		}
		lines := strings.Split(strings.TrimSpace(errOut.String()), "\n")
		if len(lines) > 2 || !strings.HasPrefix(lines[0], "ramp: ") {
			t.Fatalf("%d lines: %q", len(lines), errOut.String())
		}
	})
}

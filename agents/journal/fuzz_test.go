package journal_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ramp/agents/journal"
	"ramp/protocol"
)

// FuzzDamage overwrites any part of a journal: opening and reading it may fail,
// and must neither end the process nor go on for ever.
func FuzzDamage(f *testing.F) {
	path := filepath.Join(f.TempDir(), "j")
	j, err := journal.Open(path, 0)
	if err != nil {
		f.Fatal(err)
	}
	for i := range 40 {
		j.Trace(time.Unix(1, 0), "in", "c", []byte(strings.Repeat("m", 50)))
		if err := j.Append([]protocol.Record{rec(strings.Repeat("k", i+1), strings.Repeat("v", 300))}); err != nil {
			f.Fatal(err)
		}
	}
	_ = j.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	whole = whole[:128<<10] // the rest was set aside for growth
	for at := uint32(0); at < 128<<10; at += 2048 {
		f.Add(at, []byte{1, 2, 3, 4}, false)
		f.Add(at+24, []byte{0xff}, false)
		f.Add(at, []byte{}, true)
	}
	f.Fuzz(func(t *testing.T, at uint32, with []byte, cut bool) {
		b := append([]byte(nil), whole...)
		n := int(at) % len(b)
		copy(b[n:], with)
		if cut {
			b = b[:n]
		}
		path := filepath.Join(t.TempDir(), "j")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		use(path)
	})
}

// use reads all of a journal.
func use(path string) {
	j, err := journal.Open(path, 1000)
	if err != nil {
		return
	}
	defer j.Close()
	_ = j.Each("a", func(string, []byte) error { return nil })
	_, _ = j.Conversation("c")
}

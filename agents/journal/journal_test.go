package journal_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"ramp/agents/journal"
	"ramp/agents/storetest"
	"ramp/bank/boltfile"
	"ramp/protocol"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(path string) (storetest.Store, error) { return journal.Open(path, 0) })
}

func TestEveryFaultOfTheDisk(t *testing.T) {
	storetest.Faults(t, func(path string) (storetest.Store, error) { return journal.Open(path, 0) })
}

func open(t *testing.T, path string, traceBytes int64) *journal.Journal {
	t.Helper()
	j, err := journal.Open(path, traceBytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func rec(key, value string) protocol.Record {
	return protocol.Record{Table: "a", Key: key, Value: []byte(value)}
}

// traced is a conversation in words.
func traced(t *testing.T, j *journal.Journal, conversation string) string {
	t.Helper()
	ms, err := j.Conversation(conversation)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, m := range ms {
		words = append(words, fmt.Sprintf("%d %s %s", m.At.Unix(), m.Dir, m.Encoded))
	}
	return strings.Join(words, ", ")
}

func TestTraceIsReadByConversation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := open(t, path, 0)
	encoded := []byte("cfp")
	j.Trace(time.Unix(1, 0), "out", "c1", encoded)
	copy(encoded, "xxx")
	j.Trace(time.Unix(2, 0), "out", "c10", []byte("other"))
	j.Trace(time.Unix(3, 0), "in", "c1", []byte("propose"))
	for range 2 {
		if got, want := traced(t, j, "c1"), "1 out cfp, 3 in propose"; got != want {
			t.Fatalf("c1: %q, want %q", got, want)
		}
		if got := traced(t, j, "c"); got != "" {
			t.Fatalf("c: %q, want nothing", got)
		}
		_ = j.Close()
		j = open(t, path, 0)
	}
}

// TestTraceIsDurableWithAppend looks at a copy of the file, as a crash would
// leave it.
func TestTraceIsDurableWithAppend(t *testing.T) {
	dir := t.TempDir()
	j := open(t, filepath.Join(dir, "j"), 0)
	after := func(name string) string {
		b, err := os.ReadFile(j.Path())
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return traced(t, open(t, path, 0), "c")
	}
	j.Trace(time.Unix(1, 0), "in", "c", []byte("a"))
	if got := after("before"); got != "" {
		t.Fatalf("before the append: %q", got)
	}
	if err := j.Append([]protocol.Record{rec("k", "v")}); err != nil {
		t.Fatal(err)
	}
	if got := after("append"); got != "1 in a" {
		t.Fatalf("after the append: %q", got)
	}
	j.Trace(time.Unix(2, 0), "in", "c", []byte("b"))
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := after("flush"); got != "1 in a, 2 in b" {
		t.Fatalf("after the flush: %q", got)
	}
}

// Whoever flushes is woken by the first message after each flush, not by a clock.
func TestATracedMessageAsksForAFlush(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "j"), 0)
	for range 3 {
		select {
		case <-j.Traced():
			t.Fatal("nothing waits, and a flush is asked for")
		default:
		}
		j.Trace(time.Unix(1, 0), "in", "c", []byte("a"))
		j.Trace(time.Unix(2, 0), "in", "c", []byte("b"))
		<-j.Traced()
		if err := j.Flush(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnAppendDoesNotWaitForALongTrace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := open(t, path, 0)
	const long = 1000
	var all []string
	for i := range long {
		j.Trace(time.Unix(int64(i), 0), "in", "c", []byte("m"))
		all = append(all, fmt.Sprintf("%d in m", i))
	}
	if err := j.Append([]protocol.Record{rec("k", "v")}); err != nil {
		t.Fatal(err)
	}
	onDisk := func() []string {
		copied := filepath.Join(t.TempDir(), "copy")
		for _, end := range []string{"", boltfile.LogEnd} {
			b, err := os.ReadFile(path + end)
			if err == nil {
				err = os.WriteFile(copied+end, b, 0o600)
			}
			if err != nil && !(end != "" && errors.Is(err, fs.ErrNotExist)) {
				t.Fatal(err)
			}
		}
		return strings.Split(traced(t, open(t, copied, 0), "c"), ", ")
	}
	if got := onDisk(); len(got) == 0 || len(got) >= long/10 || !slices.Equal(got, all[:len(got)]) {
		t.Errorf("the append took %d messages along, want a few of the oldest: %v", len(got), got)
	}
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := onDisk(); !slices.Equal(got, all) {
		t.Errorf("%d messages after the flush, want %d in order", len(got), long)
	}
}

func TestTraceKeepsTheNewest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := open(t, path, 50_000)
	big := []byte(strings.Repeat("x", 1000))
	for i := range 500 {
		j.Trace(time.Unix(int64(i), 0), "in", fmt.Sprint("c", i%2), big)
		if i%100 == 0 {
			if err := j.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	ms, err := j.Conversation("c1")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(ms); n < 20 || n > 25 || ms[n-1].At.Unix() != 499 || ms[0].At.Unix() != int64(499-2*(n-1)) {
		t.Fatalf("%d messages from %v to %v", n, ms[0].At, ms[n-1].At)
	}
	var info syscall.Stat_t // the file is sparse: what counts is blocks of 512 bytes
	if err := syscall.Stat(path, &info); err != nil || info.Blocks > 2048 {
		t.Fatalf("the file has %d blocks, %v", info.Blocks, err)
	}
}

func TestTraceBufferIsBounded(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "j"), 0)
	for range 5000 {
		j.Trace(time.Unix(1, 0), "in", "c", []byte("x"))
	}
	ms, err := j.Conversation("c")
	if err != nil || len(ms) != journal.MaxTraced || j.Lost() != 0 {
		t.Fatalf("%d messages, %d lost, %v", len(ms), j.Lost(), err)
	}
}

func TestSecondOpenerIsToldWho(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := open(t, path, 0)
	_, err := journal.Open(path, 0)
	var busy *boltfile.InUseError
	if !errors.As(err, &busy) || busy.PID != os.Getpid() || busy.Path != path {
		t.Fatalf("second opener: %v", err)
	}
	want := fmt.Sprintf("journal %s is in use by pid %d (%s", path, os.Getpid(), filepath.Base(os.Args[0])) // and its arguments
	if !strings.HasPrefix(err.Error(), want) {
		t.Fatalf("got %q, want %q", err, want)
	}
	_ = j.Close()
	open(t, path, 0)
}

func TestFileIsTheOwners(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	open(t, path, 0)
	for _, p := range []string{path, path + ".lock"} {
		if info, err := os.Stat(p); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", p, info.Mode(), err)
		}
	}
}

// TestDamage: whatever a file went through, opening and reading it ends with
// the state as it was or with one line that says what is wrong.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "j")
	j := open(t, path, 0)
	for i := range 300 {
		r := rec(fmt.Sprintf("%04d", i), strings.Repeat("v", 200))
		if err := j.Append([]protocol.Record{r}); err != nil {
			t.Fatal(err)
		}
	}
	_ = j.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	used := len(bytes.TrimRight(whole, "\x00"))
	whole = whole[:(used+page-1)/page*page] // the rest was set aside for growth
	zero := func(from, to int) func(b []byte) []byte {
		return func(b []byte) []byte { clear(b[from:to]); return b }
	}
	cut := func(n int) func(b []byte) []byte { return func(b []byte) []byte { return b[:n] } }
	tests := []struct {
		name  string
		spoil func(b []byte) []byte
	}{
		{"a file of something else", func([]byte) []byte { return []byte(strings.Repeat("hello\n", 3000)) }},
		{"a short file of something else", func([]byte) []byte { return []byte("hello") }},
		{"only the first page is left", cut(page)},
		{"three pages are left", cut(3 * page)},
		{"half is left", cut(len(whole) / 2 / page * page)},
		{"both heads are gone", zero(0, 2*page)},
		{"all but the heads is gone", zero(2*page, len(whole))},
		{"the second half is gone", zero(len(whole)/2, len(whole))},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(dir, fmt.Sprint("damaged", i))
			if err := os.WriteFile(path, tt.spoil(append([]byte(nil), whole...)), 0o600); err != nil {
				t.Fatal(err)
			}
			err := readAll(path)
			if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), path) {
				t.Fatalf("got %v, want one line with the path", err)
			}
			t.Log(err)
		})
	}
}

func readAll(path string) error {
	j, err := journal.Open(path, 0)
	if err != nil {
		return err
	}
	defer j.Close()
	return j.Each("a", func(string, []byte) error { return nil })
}

// TestEmptyFileIsRefused: a journal that lost all its octets is not a new one.
func TestEmptyFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := readAll(path); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Fatalf("an empty file: %v", err)
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	_ = open(t, path, 0).Close()
	patch(t, path, "schema", []byte{0, 0, 0, 9})
	if err := readAll(path); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("written by a newer ramp (form 9; this one reads up to %d): install", journal.Schema)) {
		t.Fatalf("schema 9: %v", err)
	}
	patch(t, path, "schema", []byte{0, 0, 0, 1})
	patch(t, path, "format", []byte("ramp ledger"))
	if err := readAll(path); err == nil || !strings.Contains(err.Error(), "not a journal") {
		t.Fatalf("a ledger: %v", err)
	}
}

func patch(t *testing.T, path, key string, value []byte) {
	t.Helper()
	b, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = b.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("meta")).Put([]byte(key), value) })
	if err = errors.Join(err, b.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestPanicOfTheCallerPasses: only the file's faults become errors.
func TestPanicOfTheCallerPasses(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "j"), 0)
	if err := j.Append([]protocol.Record{rec("k", "v")}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if r := recover(); r != "mine" {
			t.Fatalf("recovered %v", r)
		}
	}()
	_ = j.Each("a", func(string, []byte) error { panic("mine") })
}

// victimEnv names the directory in which a copy of this test runs out of space.
const victimEnv = "RAMP_JOURNAL_FULL"

// TestFullDisk runs out of space in a process of its own, once where files must
// not grow, once in a file system of 2 MB, once with a log.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv(victimEnv); dir != "" {
		runFull(t, dir)
		return
	}
	for _, how := range []string{"limit", "tmpfs", "log"} {
		t.Run(how, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
			cmd.Env = append(os.Environ(), victimEnv+"="+how+":"+t.TempDir())
			if how != "limit" {
				cmd.SysProcAttr = ownMounts()
			}
			out, err := cmd.CombinedOutput()
			if errors.Is(err, os.ErrPermission) || strings.Contains(string(out), noMount) {
				t.Skipf("this system lets us mount nothing: %v %s", err, out)
			}
			if err != nil || !strings.Contains(string(out), "was full and had space again") {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}

// TestAWayThatDoesNotEndIsFoundWhenAJournalIsOpened damages one number: followed,
// the branch would take all memory that there is.
func TestAWayThatDoesNotEndIsFoundWhenAJournalIsOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := open(t, path, 0)
	for i := range 100 {
		if err := j.Append([]protocol.Record{rec(fmt.Sprint(i), strings.Repeat("v", 300))}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page, branches := os.Getpagesize(), 0
	for at := 2 * page; at < len(b); at += page {
		if binary.LittleEndian.Uint16(b[at+8:]) == 1 { // a branch: its first child is itself
			binary.LittleEndian.PutUint64(b[at+16+8:], uint64(at/page))
			branches++
		}
	}
	if branches == 0 {
		t.Fatal("no branches")
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Open(path, 0); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("opened with %v", err)
	}
}

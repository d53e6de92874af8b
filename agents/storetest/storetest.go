// Package storetest is the contract test of stores: records come back in order of key, an append is
// stored wholly or not at all, and an acknowledged one survives the death of the process.
package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"ramp/agents"
	"ramp/protocol"
)

// Store is a store that can be closed and opened again.
type Store interface {
	agents.Store
	Close() error
}

// Open opens the store at path, or begins a new one there.
type Open func(path string) (Store, error)

// Run holds a store to its contract. It must be called once, directly from a
// test function, because it starts that test again in processes that it kills.
func Run(t *testing.T, open Open) {
	if path := os.Getenv(victimEnv); path != "" {
		appendUntilKilled(t, open, path)
		return
	}
	tests := []struct {
		name string
		run  func(t *testing.T, open Open)
	}{
		{"a new store has nothing", testEmpty},
		{"records come back in order of key, and each by its key", testOrder},
		{"a later record replaces an earlier one, also within one append", testReplace},
		{"a record without a value deletes", testDelete},
		{"an empty value is a value", testEmptyValue},
		{"the caller may reuse its memory", testMemory},
		{"an append with a record that cannot be stored changes nothing", testAllOrNothing},
		{"each stops when the callback fails, with its error", testStop},
		{"random appends equal a map, before and after every reopening", testModel},
		{"a reader sees whole appends", testReaders},
		{"only one process can have it open", testExclusive},
		{"an acknowledged append survives a kill", testKill},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, open) })
	}
}

func fresh(t *testing.T, open Open) (Store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store")
	return reopen(t, open, path), path
}

func reopen(t *testing.T, open Open, path string) Store {
	t.Helper()
	s, err := open(path)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func mustAppend(t *testing.T, s Store, records ...protocol.Record) {
	t.Helper()
	if err := s.Append(records); err != nil {
		t.Fatalf("append: %v", err)
	}
}

func rec(table, key, value string) protocol.Record {
	return protocol.Record{Table: table, Key: key, Value: []byte(value)}
}

// dump is a table as lines "key=value". Get must find the same, and nothing else.
func dump(t *testing.T, s protocol.Tables, table string) (got []string) {
	t.Helper()
	var keys []string
	err := s.Each(table, func(key string, value []byte) error {
		keys, got = append(keys, key), append(got, key+"="+string(value))
		return nil
	})
	if err != nil {
		t.Fatalf("each %s: %v", table, err)
	}
	for i, key := range keys {
		if v, err := s.Get(table, key); err != nil || v == nil || key+"="+string(v) != got[i] {
			t.Fatalf("get %q from %s: %.80q, %v; want %.80q", key, table, v, err, got[i])
		}
	}
	for _, absent := range []string{"", "absent", "k.deleted"} {
		if v, err := s.Get(table, absent); err != nil || v != nil {
			t.Fatalf("get %q from %s, where it is not: %.80q, %v", absent, table, v, err)
		}
	}
	return got
}

func want(t *testing.T, s protocol.Tables, table string, lines ...string) {
	t.Helper()
	got := dump(t, s, table)
	for i := range max(len(got), len(lines)) {
		if g, w := at(got, i), at(lines, i); g != w {
			t.Fatalf("table %s has %d records, want %d; record %d is %.80q, want %.80q", table, len(got), len(lines), i, g, w)
		}
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(none)"
}

func testEmpty(t *testing.T, open Open) {
	s, _ := fresh(t, open)
	want(t, s, "a")
	mustAppend(t, s)
	want(t, s, "a")
}

func testOrder(t *testing.T, open Open) {
	s, path := fresh(t, open)
	mustAppend(t, s, rec("a", "\xff", "4"), rec("a", "b", "2"), rec("b", "a", "x"))
	mustAppend(t, s, rec("a", "a\x00z", "1"), rec("a", "ba", "3"))
	for range 2 {
		want(t, s, "a", "a\x00z=1", "b=2", "ba=3", "\xff=4")
		want(t, s, "b", "a=x")
		_ = s.Close()
		s = reopen(t, open, path)
	}
}

func testReplace(t *testing.T, open Open) {
	s, _ := fresh(t, open)
	mustAppend(t, s, rec("a", "k", "1"), rec("a", "k", "2"))
	want(t, s, "a", "k=2")
	mustAppend(t, s, rec("a", "k", "3"), protocol.Record{Table: "a", Key: "k"}, rec("a", "k", "4"))
	want(t, s, "a", "k=4")
	mustAppend(t, s, rec("a", "k", "5"), protocol.Record{Table: "a", Key: "k"})
	want(t, s, "a")
}

func testDelete(t *testing.T, open Open) {
	s, path := fresh(t, open)
	mustAppend(t, s, rec("a", "k.deleted", "1"), rec("a", "l", "1"))
	mustAppend(t, s, protocol.Record{Table: "a", Key: "k.deleted"}, protocol.Record{Table: "none", Key: "k"})
	want(t, s, "a", "l=1")
	_ = s.Close()
	s = reopen(t, open, path)
	want(t, s, "a", "l=1")
	want(t, s, "none")
}

func testEmptyValue(t *testing.T, open Open) {
	s, _ := fresh(t, open)
	mustAppend(t, s, protocol.Record{Table: "a", Key: "k", Value: []byte{}})
	want(t, s, "a", "k=")
}

func testMemory(t *testing.T, open Open) {
	s, _ := fresh(t, open)
	value := []byte("before")
	records := []protocol.Record{{Table: "a", Key: "k", Value: value}}
	mustAppend(t, s, records...)
	copy(value, "xxxxxx")
	records[0].Key = "other"
	mustAppend(t, s, rec("a", "l", "1"))
	want(t, s, "a", "k=before", "l=1")
	got, _ := s.Get("a", "k")
	mustAppend(t, s, rec("a", "k", "after!"))
	if string(got) != "before" {
		t.Fatalf("a later append changed a value to %q", got)
	}
}

// testAllOrNothing uses a record that every store rejects: one without a table.
func testAllOrNothing(t *testing.T, open Open) {
	s, path := fresh(t, open)
	mustAppend(t, s, rec("a", "k", "1"))
	bad := []protocol.Record{rec("a", "k", "2"), rec("a", "l", "2"), rec("new", "k", "2"), {Table: "", Key: "k", Value: []byte("2")}}
	if err := s.Append(bad); err == nil {
		t.Fatal("a record without a table was taken")
	}
	for range 2 {
		want(t, s, "a", "k=1")
		want(t, s, "new")
		mustAppend(t, s, rec("b", "k", "1"))
		_ = s.Close()
		s = reopen(t, open, path)
	}
}

func testStop(t *testing.T, open Open) {
	s, _ := fresh(t, open)
	mustAppend(t, s, rec("a", "k", "1"), rec("a", "l", "1"))
	stop, calls := errors.New("stop"), 0
	err := s.Each("a", func(string, []byte) error { calls++; return stop })
	if !errors.Is(err, stop) || calls != 1 {
		t.Fatalf("each made %d calls and returned %v", calls, err)
	}
}

func testModel(t *testing.T, open Open) {
	s, path := fresh(t, open)
	rng := rand.New(rand.NewPCG(1, 2))
	model := map[string]map[string]string{"a": {}, "b": {}}
	for i := range 60 {
		var batch []protocol.Record
		for range 1 + rng.IntN(40) {
			r := rec([]string{"a", "b"}[rng.IntN(2)], fmt.Sprint("k", rng.IntN(200)), fmt.Sprint(rng.Uint64()))
			if rng.IntN(4) == 0 {
				r.Value = nil
				delete(model[r.Table], r.Key)
			} else {
				model[r.Table][r.Key] = string(r.Value)
			}
			batch = append(batch, r)
		}
		mustAppend(t, s, batch...)
		if i%20 == 19 {
			_ = s.Close()
			s = reopen(t, open, path)
		}
	}
	for table, rows := range model {
		var lines []string
		for _, key := range slices.Sorted(maps.Keys(rows)) {
			lines = append(lines, key+"="+rows[key])
		}
		want(t, s, table, lines...)
	}
}

func testReaders(t *testing.T, open Open) {
	s, _ := fresh(t, open)
	const keys = 50
	mustAppend(t, s, rec("a", "000", "0"))
	done := make(chan error)
	go func() { done <- rewrite(s, keys) }()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
			oneVersion(t, s, keys)
		}
	}
}

func rewrite(s Store, keys int) error {
	for version := range 60 {
		var batch []protocol.Record
		for k := range keys {
			batch = append(batch, rec("a", fmt.Sprintf("%03d", k), fmt.Sprint(version)))
		}
		if err := s.Append(batch); err != nil {
			return err
		}
	}
	return nil
}

func oneVersion(t *testing.T, s Store, keys int) {
	t.Helper()
	var first []byte
	n := 0
	err := s.Each("a", func(_ string, value []byte) error {
		if n++; first == nil {
			first = bytes.Clone(value)
		}
		if !bytes.Equal(first, value) {
			return fmt.Errorf("one reading has versions %s and %s", first, value)
		}
		return nil
	})
	if err != nil || n != keys && n != 1 {
		t.Fatalf("%d keys, %v", n, err)
	}
}

func testExclusive(t *testing.T, open Open) {
	s, path := fresh(t, open)
	if other, err := open(path); err == nil {
		_ = other.Close()
		t.Fatal("two have it open")
	}
	mustAppend(t, s, rec("a", "k", "1"))
	inherit(t, path)
	_ = s.Close()
	want(t, reopen(t, open, path), "a", "k=1")
}

// inherit keeps the store's files open after it is closed, as a new process does
// before it becomes another program.
func inherit(t *testing.T, path string) {
	t.Helper()
	const files = "/proc/self/fd"
	list, _ := os.ReadDir(files) // on a system without it nothing stays open
	for _, f := range list {
		to, err := os.Readlink(filepath.Join(files, f.Name()))
		if err != nil || !strings.HasPrefix(to, path) {
			continue
		}
		n, err := strconv.Atoi(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if n, err = syscall.Dup(n); err == nil {
			t.Cleanup(func() { _ = syscall.Close(n) })
		}
	}
}

package journal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ramp/agents/journal"
	"ramp/bank/boltfile"
	"ramp/protocol"
)

const noMount = "cannot mount"

// ownMounts gives a process mounts of its own, with or without root.
func ownMounts() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
}

// full is a place whose space can be taken and given back.
type full struct {
	take, free func() error
}

// fileLimit lets no file grow beyond 512 KiB.
func fileLimit() full {
	var old syscall.Rlimit
	_ = syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old)
	return full{
		take: func() error {
			return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 512 << 10, Max: old.Max})
		},
		free: func() error { return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old) },
	}
}

// smallDisk is a file system of so many MB, most of it taken by another file.
func smallDisk(t *testing.T, dir string, size int) full {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", size)); err != nil {
		t.Fatalf("%s: %v", noMount, err)
	}
	other := filepath.Join(dir, "other")
	return full{
		take: func() error {
			err := os.WriteFile(other, make([]byte, (size-1)<<20), 0o600)
			if size > 2 && errors.Is(err, syscall.ENOSPC) {
				return nil // the log has some of it
			}
			return err
		},
		free: func() error { return os.Remove(other) },
	}
}

// runFull fills a journal until it refuses, and looks that it never lies: what
// it took is there, what it refused is not, and with space again it goes on. With "log" it has
// begun its log, and is opened again while the disk is full.
func runFull(t *testing.T, where string) {
	how, dir, _ := strings.Cut(where, ":")
	disk, before := fileLimit(), 0
	switch how {
	case "tmpfs":
		disk = smallDisk(t, dir, 2)
	case "log":
		disk, before = smallDisk(t, dir, 4), 5
	}
	path := filepath.Join(dir, "j")
	j := open(t, path, 0)
	for i := range before {
		if err := j.Append(pair(i, 4000)); err != nil {
			t.Fatal(err)
		}
	}
	if err := disk.take(); err != nil {
		t.Fatal(err)
	}
	taken, lost := fill(t, j, before), j.Lost()
	if how == "log" {
		if _, err := os.Stat(path + boltfile.LogEnd); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		j = open(t, path, 0)
		look(t, j, taken)
	}
	for range 3 { // it stays refused, and what is there stays
		if err := j.Append(pair(taken, 100_000)); err == nil {
			t.Fatal("a full disk took an append")
		}
		look(t, j, taken)
	}
	for range 300 { // more than one write
		j.Trace(time.Unix(2, 0), "in", "c", make([]byte, 4000))
	}
	<-j.Traced()
	if err := j.Flush(); err == nil {
		t.Fatal("a full disk took a trace")
	}
	select {
	case <-j.Traced():
	default:
		t.Fatal("the rest of the trace asks for no other flush")
	}
	if err := disk.free(); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(pair(taken, 100_000)); err != nil {
		t.Fatalf("with space again: %v", err)
	}
	look(t, j, taken+1)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	look(t, open(t, path, 0), taken+1)
	t.Logf("was full and had space again; %d traced messages given up", lost)
}

// fill appends until there is no space; the trace is what must go first.
func fill(t *testing.T, j *journal.Journal, i int) int {
	t.Helper()
	for ; i < 1000; i++ {
		j.Trace(time.Unix(1, 0), "in", "c", make([]byte, 1000))
		if err := j.Append(pair(i, 4000)); err != nil {
			t.Logf("append %d: %v", i, err)
			if i < 20 || j.Lost() == 0 {
				t.Fatalf("full after %d appends, %d messages lost", i, j.Lost())
			}
			return i
		}
	}
	t.Fatal("the disk is never full")
	return 0
}

func pair(i, size int) []protocol.Record {
	value := strings.Repeat("v", size)
	return []protocol.Record{rec(fmt.Sprintf("%04d.1", i), value), rec(fmt.Sprintf("%04d.2", i), value)}
}

// look finds both records of every append, and nothing else.
func look(t *testing.T, j *journal.Journal, appends int) {
	t.Helper()
	n := 0
	err := j.Each("a", func(key string, _ []byte) error {
		if want := fmt.Sprintf("%04d.%d", n/2, n%2+1); key != want {
			return fmt.Errorf("key %q, want %q", key, want)
		}
		n++
		if v, err := j.Get("a", key); err != nil || v == nil {
			return fmt.Errorf("key %q: %d octets, %w", key, len(v), err)
		}
		return nil
	})
	if err != nil || n != 2*appends {
		t.Fatalf("%d records of %d appends, %v", n, appends, err)
	}
}

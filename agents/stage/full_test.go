package stage_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"ramp/agents/stage"
	"ramp/agents/storetest"
)

// A real disk that is full: one line says so, nothing half-written is seen, and
// when there is room again the same file comes.
func TestRealDiskIsFull(t *testing.T) {
	in := source(t, t.TempDir(), "a", make([]byte, 2<<20))
	p := newPlace(t, in.File)
	p.stop()
	if err := syscall.Mount("tmpfs", p.root, "tmpfs", 0, "size=1m"); err != nil {
		p.start()
		t.Skipf("no file system can be mounted here: %v", err)
	}
	defer func() { _ = syscall.Unmount(p.root, syscall.MNT_DETACH) }()
	p.free.Store(1 << 40) // the system's word comes too late: the write itself fails
	p.start()
	if err := p.put(in); err == nil {
		t.Fatal("2 MiB are on a disk of 1 MiB")
	}
	onlyIn(t, filepath.Join(p.root, "j1", "work"))
	if err := syscall.Mount("tmpfs", p.root, "tmpfs", syscall.MS_REMOUNT, "size=8m"); err != nil {
		t.Fatal(err)
	}
	s, end := p.link(ann, 0, 0)
	defer func() { _ = end() }()
	if err := stage.Put(s, key, in); err != nil {
		t.Fatalf("with room again: %v", err)
	}
}

// A disk that fails while an input is flushed keeps nothing of it: a second flush would
// succeed without the bytes. The input is brought again.
func TestAnInputThatWasNotFlushedIsBroughtAgain(t *testing.T) {
	storetest.OnFaultyDisk(t, func(t *testing.T, d *storetest.FaultyDisk) {
		in := source(t, t.TempDir(), "a", make([]byte, 1<<10))
		p := newPlace(t, in.File)
		d.Fail(1, syscall.EIO)
		if err := p.put(in); err == nil || d.Failed() == 0 {
			t.Fatalf("call %d failed, and the input: %v", d.Failed(), err)
		}
		onlyIn(t, filepath.Join(p.root, "j1", "work"))
		onlyIn(t, filepath.Join(p.root, "j1", "part"))
		s, end := p.link(ann, 0, 0)
		defer func() { _ = end() }()
		if err := stage.Put(s, key, in); err != nil {
			t.Fatalf("when the disk works again: %v", err)
		}
		onlyIn(t, filepath.Join(p.root, "j1", "work"), "a")
	})
}

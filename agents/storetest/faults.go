package storetest

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"ramp/protocol"
)

// A FaultyDisk has one write, flush or truncation of a file of this process fail, as a disk
// does that dies or is full. The kernel asks it about each.
type FaultyDisk struct {
	listener int

	mu     sync.Mutex
	left   int // calls until the one that fails; 0: none does
	errno  syscall.Errno
	failed int32 // the system call that failed; 0: none has

	slow time.Duration // added to each flush
}

// NewFaultyDisk puts itself between this process and its disk, for as long as it lives.
func NewFaultyDisk() (*FaultyDisk, error) {
	return newDisk(0, unix.SYS_PWRITE64, unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_FTRUNCATE)
}

// SlowDisk makes each flush of this process take longer, for as long as it lives.
func SlowDisk(flush time.Duration) error {
	_, err := newDisk(flush, unix.SYS_FSYNC, unix.SYS_FDATASYNC)
	return err
}

func newDisk(slow time.Duration, calls ...uint32) (*FaultyDisk, error) {
	rules := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}} // the number of the system call
	for i, call := range calls {
		rules = append(rules, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jt: uint8(len(calls) - i)})
	}
	rules = append(rules,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0x7fff0000}, // SECCOMP_RET_ALLOW
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
	prog := unix.SockFprog{Len: uint16(len(rules)), Filter: &rules[0]}
	const flags = unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH | unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	runtime.LockOSThread() // the filter is then given to all others
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, err
	}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return nil, errno
	}
	d := &FaultyDisk{listener: int(fd), slow: slow}
	go d.decide() // until the process ends
	return d, nil
}

// Fail has the nth call from now on fail; n = 0: none.
func (d *FaultyDisk) Fail(n int, errno syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left, d.errno, d.failed = n, errno, 0
}

// Failed is the system call that failed, or 0.
func (d *FaultyDisk) Failed() int32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed
}

// notice and verdict are struct seccomp_notif and seccomp_notif_resp of the kernel.
type notice struct {
	id         uint64
	pid, flags uint32
	call       int32
	arch       uint32
	at         uint64
	args       [6]uint64
}

type verdict struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

func (d *FaultyDisk) decide() {
	for {
		var n notice
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(d.listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); errno != 0 {
			continue // interrupted
		}
		v := verdict{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		d.mu.Lock()
		if d.left > 0 {
			if d.left--; d.left == 0 {
				v.flags, v.errno, d.failed = 0, -int32(d.errno), n.call
			}
		}
		d.mu.Unlock()
		if d.slow == 0 {
			d.answer(v)
			continue
		}
		time.AfterFunc(d.slow, func() { d.answer(v) })
	}
}

func (d *FaultyDisk) answer(v verdict) {
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(d.listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&v)))
}

const faultsEnv = "RAMP_STORETEST_FAULTS"

// OnFaultyDisk runs a test again in a process of its own, with a disk that fails when the
// test asks. It must be called once, directly from a test function.
func OnFaultyDisk(t *testing.T, test func(t *testing.T, d *FaultyDisk)) {
	if os.Getenv(faultsEnv) != "" {
		d, err := NewFaultyDisk()
		if err != nil {
			t.Skipf("this kernel lets no process fail its own calls: %v", err)
		}
		test(t, d)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), faultsEnv+"=1")
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("%s", out)
	}
}

// Faults has every write and flush of some appends fail, one at a time. An append is then
// refused wholly, and a later one accepted; or the store returns protocol.ErrDisk, and accepts
// nothing before it is opened again. Every acknowledged append is still there.
func Faults(t *testing.T, open Open) {
	OnFaultyDisk(t, func(t *testing.T, d *FaultyDisk) {
		for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOSPC} {
			n := 1
			for ; failAt(t, open, d, n, errno); n++ {
			}
			if n < 8 {
				t.Errorf("%v: only %d calls failed", errno, n-1)
			}
		}
	})
}

// failAt fails one call, and reports whether there was one.
func failAt(t *testing.T, open Open, d *FaultyDisk, n int, errno syscall.Errno) bool {
	t.Helper()
	s, path := fresh(t, open)
	i, err := 0, error(nil)
	for err == nil && i < 8 {
		if i++; i == 4 {
			d.Fail(n, errno)
		}
		err = s.Append(numbered(i))
	}
	call := d.Failed()
	d.Fail(0, 0)
	switch dead := errors.Is(err, protocol.ErrDisk); {
	case call == 0:
		return false
	case err == nil:
		t.Fatalf("call %d (%d) failed with %v, and the append was acknowledged", n, call, errno)
	case !dead && errno == syscall.EIO && call != unix.SYS_FTRUNCATE:
		t.Errorf("call %d (%d) failed with %v, and the store goes on: %v", n, call, errno, err)
	case !dead:
		if last := survived(t, s); last != i-1 {
			t.Errorf("call %d (%d): %d appends are there, %d were acknowledged", n, call, last, i-1)
		}
		if err := s.Append(numbered(i)); err != nil {
			t.Errorf("call %d (%d): refused for ever: %v", n, call, err)
		}
	default:
		if err := s.Append(numbered(i)); !errors.Is(err, protocol.ErrDisk) {
			t.Errorf("call %d (%d): after the disk failed, an append says %v", n, call, err)
		}
		if _, err := os.Stat(path + ".failed"); err != nil {
			t.Errorf("call %d (%d): nothing marks the failure: %v", n, call, err)
		}
	}
	_ = s.Close()
	if last := survived(t, reopen(t, open, path)); last < i-1 || last > i {
		t.Errorf("call %d (%d): opened again, %d appends are there, %d were acknowledged", n, call, last, i-1)
	}
	return true
}

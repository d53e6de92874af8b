package escape

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// targets are what a job tries to reach.
type targets struct {
	Files map[string]string `json:"files"` // to open or connect to, by the attempt's name
	PIDs  map[string]int    `json:"pids"`  // of processes to disturb
	Space string            `json:"space"` // the pid namespace in which they have these numbers
	TCP   string            `json:"tcp"`   // where the machine listens on its loopback
	Mark  string            `json:"mark"`  // the name of files to leave, and of an abstract socket of the machine
	Look  bool              `json:"look"`  // look for the files that an earlier job has left, and try nothing else
}

// The attempts that a site with a network for jobs allows.
const (
	loopback = "connect to the machine's loopback"
	abstract = "connect to an abstract socket of the machine"
)

// attempts are what a job must not be able to do; nil: it succeeded.
type attempts map[string]func() error

// Try makes the attempts of a job. It is the program of the suite's jobs: its argument has
// the targets, and it prints a Result per line.
func Try(w io.Writer, arg string) error {
	if arg == foreignABI {
		return tryForeignABI()
	}
	var t targets
	if err := json.Unmarshal([]byte(arg), &t); err != nil {
		return fmt.Errorf("targets: %w", err)
	}
	out, all := json.NewEncoder(w), t.attempts()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		r := Result{Attempt: name, Succeeded: true}
		if err := all[name](); err != nil {
			r.Succeeded, r.StoppedBy = false, reason(err)
		}
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// reason is an error without its operands, which the attempt's name has.
func reason(err error) string {
	var inner syscall.Errno
	if errors.As(err, &inner) {
		return inner.Error()
	}
	return err.Error()
}

func (t targets) attempts() attempts {
	all := attempts{}
	if t.Look {
		for _, path := range t.marks() {
			all["find what an earlier job left in "+filepath.Dir(path)] = func() error { return opens(path, os.O_RDONLY) }
		}
		return all
	}
	all = kernel()
	for name, path := range t.Files {
		all[name] = func() error { return opens(path, os.O_RDONLY) }
	}
	for what, pid := range t.PIDs {
		all["signal "+what] = func() error { return t.inSpace(syscall.Kill(pid, 0)) }
		all["trace "+what] = func() error { return t.inSpace(traces(pid)) }
		all["open the memory of "+what] = func() error { return t.inSpace(opens(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDONLY)) }
	}
	all[loopback] = func() error { return dials("tcp", t.TCP) }
	all[abstract] = func() error { return dials("unix", "@"+t.Mark) }
	for _, path := range t.marks() {
		_ = errors.Join(os.WriteFile(path, []byte("left by a job\n"), 0o644), os.Chmod(path, 0o644)) // whether they are found decides
	}
	return all
}

// marks are the files that a job leaves behind: in a shared HOME they run in later jobs.
func (t targets) marks() (list []string) {
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm", os.Getenv("HOME")} {
		list = append(list, filepath.Join(dir, t.Mark))
	}
	return list
}

// inSpace is the result of an attempt on a process, whose number may be another's here.
func (t targets) inSpace(err error) error {
	if space, _ := os.Readlink("/proc/self/ns/pid"); space != t.Space {
		return errors.New("its own pid namespace")
	}
	return err
}

// opens opens a file, or connects to a socket, and writes nothing.
func opens(path string, flag int) error {
	f, err := os.OpenFile(path, flag, 0)
	if errors.Is(err, unix.ENXIO) {
		return dials("unix", path)
	}
	if err != nil {
		return err
	}
	return f.Close()
}

func dials(network, address string) error {
	c, err := net.DialTimeout(network, address, 2*time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}

func traces(pid int) error {
	runtime.LockOSThread() // never unlocked: its end ends the tracing
	return unix.PtraceSeize(pid)
}

// runs starts a program with attributes that need privileges.
func runs(attr *syscall.SysProcAttr) error {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = attr
	return cmd.Run()
}

func kernel() attempts {
	all := attempts{
		"mount a file system": func() error {
			here, err := os.Getwd()
			if err == nil {
				err = unix.Mount("none", here, "tmpfs", 0, "")
			}
			if err != nil {
				return err
			}
			return unix.Unmount(here, 0)
		},
		"make a user namespace":     func() error { return runs(&syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}) },
		"change the root directory": func() error { return runs(&syscall.SysProcAttr{Chroot: "/"}) },
		"become root":               func() error { return runs(&syscall.SysProcAttr{Credential: &syscall.Credential{}}) },
		"gain privileges by a setuid program": func() error {
			if n, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err == nil && n == 1 {
				return errors.New("no_new_privs")
			}
			return nil
		},
		"make a file that runs as its owner": setsUID,
		"lock the agent out of its output":   func() error { _, err := unix.FcntlInt(1, unix.F_SETLEASE, unix.F_WRLCK); return err },
		"inherit a file of the agent":        inherits,
		"join a namespace": func() error {
			f, err := os.Open("/proc/1/ns/uts")
			if err != nil {
				return err
			}
			defer f.Close() //nolint:errcheck // only read
			return unix.Setns(int(f.Fd()), 0)
		},
		"make a device":               func() error { return unix.Mknod("device", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) },
		"write /proc/sys":             func() error { return opens("/proc/sys/kernel/core_pattern", os.O_WRONLY) },
		"write /sys":                  func() error { return opens("/sys/kernel/mm/ksm/run", os.O_WRONLY) },
		"write the system's programs": func() error { return unix.Access("/usr/bin", unix.W_OK) },
		"read the kernel's log":       func() error { return opens("/dev/kmsg", os.O_RDONLY) },
		"make a session keyring":      func() error { _, err := unix.KeyctlJoinSessionKeyring(""); return err },
		"call the kernel by a foreign ABI": func() error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			return exec.Command(self, append(slices.Clone(os.Args[1:len(os.Args)-1]), foreignABI)...).Run()
		},
	}
	maps.Copy(all, calls())
	return all
}

// setsUID makes files with the bits that let other accounts of the machine, who may reach
// them, take the job's uid or the agent's.
func setsUID() error {
	const mode = 0o4711
	name, err := unix.BytePtrFromString("owned")
	if err != nil {
		return err
	}
	f, err := os.Create("owned")
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	path, here := uintptr(unsafe.Pointer(name)), uintptr(0)
	here -= -unix.AT_FDCWD
	tries := [][5]uintptr{
		{unix.SYS_FCHMOD, f.Fd(), mode}, {unix.SYS_FCHMODAT, here, path, mode}, {unix.SYS_FCHMODAT2, here, path, mode},
		{unix.SYS_MKNODAT, here, path, mode | unix.S_IFREG}, {unix.SYS_OPENAT, here, path, unix.O_CREAT, mode},
		{unix.SYS_OPENAT, here, path, unix.O_TMPFILE | unix.O_RDWR, mode},
	}
	if runtime.GOARCH == "amd64" { // open, creat, chmod, mknod
		tries = append(tries, [][5]uintptr{{2, path, unix.O_CREAT, mode}, {85, path, mode}, {90, path, mode}, {133, path, mode | unix.S_IFREG}}...)
	}
	for i, c := range tries {
		if i > 2 {
			_ = os.Remove("owned") // for those that make it
		}
		_, _, e := unix.Syscall6(c[0], c[1], c[2], c[3], c[4], 0, 0)
		info, gone := os.Stat("owned")
		if e == 0 && gone == nil && info.Mode()&os.ModeSetuid != 0 {
			return nil
		}
		err = e
	}
	return err
}

// inherits looks for open files besides input, output and errors that it has not opened itself.
func inherits() error {
	list, err := os.ReadDir("/proc/self/fd")
	for _, e := range list {
		if n, _ := strconv.Atoi(e.Name()); n > 2 {
			if flags, err := unix.FcntlInt(uintptr(n), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
				return nil
			}
		}
	}
	return cmp.Or(err, errors.New("no file of the agent is open"))
}

// calls are the attempts that are one system call.
func calls() attempts {
	all := attempts{}
	const none = ^uintptr(0) // no file descriptor, or any processor
	for name, c := range map[string][6]uintptr{
		"open a raw socket":                    {unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP},
		"open a packet socket":                 {unix.SYS_SOCKET, unix.AF_PACKET, unix.SOCK_RAW},
		"open a socket to the hypervisor":      {unix.SYS_SOCKET, unix.AF_VSOCK, unix.SOCK_STREAM},
		"load a program into the kernel (bpf)": {unix.SYS_BPF},
		"watch the machine (perf_event_open)":  {unix.SYS_PERF_EVENT_OPEN, 0, 0, none, none},
		"use io_uring":                         {unix.SYS_IO_URING_SETUP, 1},
		"handle page faults (userfaultfd)":     {unix.SYS_USERFAULTFD, 1},
		"open files by handle":                 {unix.SYS_OPEN_BY_HANDLE_AT, none},
		"take another process's file":          {unix.SYS_PIDFD_GETFD, none},
	} {
		all[name] = func() error {
			fd, _, e := unix.Syscall6(c[0], c[1], c[2], c[3], c[4], c[5], 0)
			if e != 0 {
				return e
			}
			return unix.Close(int(fd))
		}
	}
	return all
}

// foreignABI makes this program call the kernel with a number of x32, which filters of
// system calls may overlook.
const foreignABI = "foreign-abi"

func tryForeignABI() error {
	if runtime.GOARCH != "amd64" {
		return errors.New("this processor has none")
	}
	if _, _, e := unix.RawSyscall(unix.SYS_GETPID|0x40000000, 0, 0, 0); e != 0 {
		return e
	}
	return nil
}

// floods are the attempts on the machine's room, as scripts: they take little more than
// their jobs may, which is floodMemory and floodDisk, and keep it until a busy machine finds out.
func floods() map[string]string {
	return map[string]string{
		"start more processes than allowed":   "i=0; while [ $i -lt 700 ]; do sleep 60 & i=$((i+1)); done",
		"use more memory than allowed":        "for i in 1 2 3 4; do head -c 100000000 /dev/zero | tail -c 100000000 | sleep 60 & done; wait",
		"write more to the disk than allowed": "for i in 1 2 3 4 5 6; do dd if=/dev/zero of=f$i bs=1M count=16 2>/dev/null || exit 1; done; sleep 60",
	}
}

const (
	floodMemory = 256 << 20
	floodDisk   = 64 << 20
)

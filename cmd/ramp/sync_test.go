package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// failingSync runs a program in whose process every flush of a file fails with EIO, as on a
// disk that dies: the kernel says so once it has the filter of system calls.
func failingSync() {
	runtime.LockOSThread()
	const load, equal, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	const fail, allow = 0x00050000 | uint32(unix.EIO), 0x7fff0000 // SECCOMP_RET_ERRNO, SECCOMP_RET_ALLOW
	rules := []unix.SockFilter{
		{Code: load}, // the number of the system call comes first
		{Code: equal, Jt: 1, K: unix.SYS_FSYNC},
		{Code: equal, Jf: 1, K: unix.SYS_FDATASYNC},
		{Code: ret, K: fail},
		{Code: ret, K: allow},
	}
	prog := unix.SockFprog{Len: uint16(len(rules)), Filter: &rules[0]}
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0)
	}
	path, missing := exec.LookPath(os.Args[1])
	if err == nil && missing == nil {
		err = syscall.Exec(path, os.Args[1:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, "cannot run it with a failing disk:", err, missing)
	os.Exit(1)
}

package local

import (
	"bytes"
	"encoding/binary"
	"runtime"

	"golang.org/x/sys/unix"
)

// Offsets of struct seccomp_data. Of an argument the lower half counts; both
// architectures are little-endian.
const (
	dataNumber = 0
	dataArch   = 4
	dataArg0   = 16
	dataArg1   = 24
	dataArg2   = 32
	dataArg3   = 40
)

// x32 marks system calls of the x32 ABI, which has other numbers.
const x32 = 0x40000000

// auditArch is the kernel's name of this architecture; 0: no filter is written for it.
func auditArch() uint32 {
	return map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
}

// denied are the system calls that fail in a job: those that change mounts and namespaces, read or
// change other processes, load code into the kernel, or have large attack surfaces and few users.
func denied() []uint32 {
	return []uint32{
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
		unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
		unix.SYS_UNSHARE, unix.SYS_SETNS,
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT,
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
		unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_REBOOT, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
		unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME,
		unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_PERSONALITY,
	}
}

// cloneFlags are the flags of clone that make a namespace.
const cloneFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// special are the bits that let others run a file as its owner. A job that sets them on a
// copy of a shell leaves its uid, which may be the agent's, to any account of the machine
// that reaches the file.
const special = unix.S_ISUID | unix.S_ISGID

// modes are the system calls that set a file's mode, with the offsets of the mode and, of
// those that may ignore it, of the flags.
func modes() [][3]uint32 {
	list := [][3]uint32{
		{unix.SYS_FCHMOD, dataArg1}, {unix.SYS_FCHMODAT, dataArg2}, {unix.SYS_FCHMODAT2, dataArg2},
		{unix.SYS_MKNODAT, dataArg2}, {unix.SYS_OPENAT, dataArg3, dataArg2},
	}
	if auditArch() == unix.AUDIT_ARCH_X86_64 { // open, creat, chmod, mknod
		list = append(list, [][3]uint32{{2, dataArg2, dataArg1}, {85, dataArg1}, {90, dataArg1}, {133, dataArg1}}...)
	}
	return list
}

// program is a filter in classic BPF.
type program []unix.SockFilter

func (p *program) load(at uint32) {
	*p = append(*p, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at})
}

// when returns an action if a comparison with the loaded word holds, or unless it does.
func (p *program) when(compare uint16, k uint32, holds bool, action uint32) {
	i := unix.SockFilter{Code: unix.BPF_JMP | compare | unix.BPF_K, Jf: 1, K: k}
	if !holds {
		i.Jt, i.Jf = 1, 0
	}
	*p = append(*p, i, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action})
}

// call begins rules for the arguments of one system call; its number is loaded. The
// returned function ends them.
func (p *program) call(number uint32) (end func()) {
	at := len(*p)
	*p = append(*p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number})
	return func() {
		(*p)[at].Jf = uint8(len(*p) - at - 1)
		p.load(dataNumber)
	}
}

func fails(errno uint32) uint32 { return unix.SECCOMP_RET_ERRNO | errno }

// filter is the filter of jobs' system calls as bubblewrap reads it.
func filter() []byte {
	var p program
	p.load(dataArch)
	p.when(unix.BPF_JEQ, auditArch(), false, unix.SECCOMP_RET_KILL_PROCESS)
	p.load(dataNumber)
	if auditArch() == unix.AUDIT_ARCH_X86_64 {
		p.when(unix.BPF_JGE, x32, true, unix.SECCOMP_RET_KILL_PROCESS)
	}
	for _, number := range denied() {
		p.when(unix.BPF_JEQ, number, true, fails(uint32(unix.EPERM)))
	}
	// Their flags are in memory, which a filter cannot read; libraries then use clone and openat.
	p.when(unix.BPF_JEQ, unix.SYS_CLONE3, true, fails(uint32(unix.ENOSYS)))
	p.when(unix.BPF_JEQ, unix.SYS_OPENAT2, true, fails(uint32(unix.ENOSYS)))
	for _, m := range modes() {
		end := p.call(m[0])
		if m[2] > 0 {
			p.load(m[2])
			p.when(unix.BPF_JSET, unix.O_CREAT|unix.O_TMPFILE&^unix.O_DIRECTORY, false, unix.SECCOMP_RET_ALLOW)
		}
		p.load(m[1])
		p.when(unix.BPF_JSET, special, true, fails(uint32(unix.EPERM)))
		end()
	}
	end := p.call(unix.SYS_CLONE)
	p.load(dataArg0)
	p.when(unix.BPF_JSET, cloneFlags, true, fails(uint32(unix.EPERM)))
	end()
	end = p.call(unix.SYS_IOCTL)
	p.load(dataArg1)
	p.when(unix.BPF_JEQ, unix.TIOCSTI, true, fails(uint32(unix.EPERM)))
	end()
	end = p.call(unix.SYS_FCNTL) // a lease on its output would hold up the agent, who reads it
	p.load(dataArg1)
	p.when(unix.BPF_JEQ, unix.F_SETLEASE, true, fails(uint32(unix.EPERM)))
	end()
	end = p.call(unix.SYS_SOCKET)
	p.load(dataArg0)
	for _, family := range []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK} {
		p.when(unix.BPF_JEQ, family, true, unix.SECCOMP_RET_ALLOW)
	}
	p = append(p, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: fails(uint32(unix.EAFNOSUPPORT))})
	end()
	p = append(p, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, p) // of fixed size, into memory
	return b.Bytes()
}

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ramp/agents/queue"
	"ramp/protocol/message"
)

// The protections of a job. A machine that lacks one runs no jobs, unless its site
// accepts that by name.
const (
	Namespaces = "namespaces" // bubblewrap: own user, mount, pid, ipc, uts, network and cgroup namespaces
	Seccomp    = "seccomp"    // no system calls that jobs do not need
	Cgroup     = "cgroup"     // bounds of processes, memory and cores for the job as a whole
	UIDs       = "uids"       // a uid that no other job has, or a user namespace for the agent's own
)

// Protections lists all protections.
func Protections() []string { return []string{Namespaces, Seccomp, Cgroup, UIDs} }

// Containment says how jobs are kept from the machine and from each other.
type Containment struct {
	Network bool     // jobs share the machine's network; else they have none
	Read    []string // directories that jobs may read besides the system's
	Image   string   // directory with the system that jobs see; empty: the machine's
	First   int      // of the range of uids for jobs, in which no two run at a time under one;
	Last    int      // 0: there is no range
	Named   bool     // the site names the range: jobs run under its uids or not at all
	Accept  []string // protections that may be missing
	Bwrap   string   // the path of bubblewrap; empty: where programs usually are
}

// plan is what this machine can do of a Containment. Its keeper fails rather than do less.
type plan struct {
	Bwrap   string   `json:"bwrap,omitempty"` // empty: without namespaces
	Seccomp bool     `json:"seccomp,omitempty"`
	Cgroup  bool     `json:"cgroup,omitempty"`
	Network bool     `json:"network,omitempty"`
	Read    []string `json:"read,omitempty"`
	Image   string   `json:"image,omitempty"`
	First   int      `json:"first,omitempty"`
	Last    int      `json:"last,omitempty"`
	Mapped  bool     `json:"mapped,omitempty"` // the agent is not root: the keeper and its job have a user namespace with the range
	Locks   string   `json:"locks,omitempty"`  // directory with a lock for each uid
	lacks   []Lack
}

// Lack is a protection that this machine does not have, and why.
type Lack struct{ Protection, Why string }

// Try returns why no job may run on this machine, or "" if they may, and what it lacks, accepted or not.
func (c Containment) Try() (refusal string, lacks []Lack) {
	p, refusal := c.plan("")
	return refusal, p.lacks
}

// plan tries what this machine can do. It also returns why no job may run.
func (c Containment) plan(locks string) (p plan, refusal string) {
	lack := func(name, why string) {
		if why == "" {
			return
		}
		p.lacks = append(p.lacks, Lack{name, why})
		if refusal == "" && !slices.Contains(c.Accept, name) {
			refusal = name + ": " + why
		}
	}
	p = plan{Network: c.Network, Read: c.Read, Image: c.Image, Locks: locks}
	root := os.Geteuid() == 0
	if root {
		p.First, p.Last = c.First, c.Last
	}
	path := c.Bwrap
	if path == "" {
		path, _ = lookUp("bwrap", "") // without it the path is empty
	}
	lack(Namespaces, p.namespaces(path))
	if !root && c.First > 0 && p.Bwrap != "" {
		if why := p.mapped(c.First, c.Last); c.Named {
			lack(UIDs, why)
		}
	}
	if p.Image != "" && p.Bwrap == "" && refusal == "" {
		refusal = "image: only contained jobs can have one" // though the site accepts to have no container
	}
	if p.Bwrap != "" && !p.Seccomp {
		lack(Seccomp, "the kernel does not filter system calls (seccomp)")
	}
	why := delegated()
	p.Cgroup = why == ""
	lack(Cgroup, why)
	switch {
	case root && p.First == 0:
		lack(UIDs, "root has no range of uids for jobs: set resource.jobs.uids, or name root in /etc/subuid")
	case !root && p.Bwrap == "":
		lack(UIDs, "jobs would run as the agent itself")
	}
	return p, refusal
}

// probeTime bounds the attempt to contain a program.
const probeTime = 20 * time.Second

// namespaces runs a program that does nothing in a container, and says why that failed.
func (p *plan) namespaces(bwrap string) string {
	if bwrap == "" {
		return "bubblewrap (bwrap) is not installed"
	}
	full := *p
	full.Bwrap, full.Read = bwrap, nil
	why := ""
	for _, full.Seccomp = range []bool{auditArch() != 0, false} {
		if why = full.try(); why == "" {
			p.Bwrap, p.Seccomp = bwrap, full.Seccomp
			return ""
		}
	}
	return why
}

// try runs a program in a container without a job's directory.
func (p plan) try() string {
	who := queue.Account{UID: os.Geteuid(), GID: os.Getegid()}
	if p.First > 0 {
		who = jobAccount(p.First)
	}
	argv, files, err := p.wrap(message.Job{Argv: []string{"true"}}, who, "true")
	if err != nil {
		return err.Error()
	}
	defer closeAll(files)
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	argv[0] = p.Bwrap
	argv = append(p.enter(), argv...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.ExtraFiles, cmd.Dir, cmd.Env = files, "/", []string{"PATH=" + queue.UsualPath}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.credential(who), Pdeathsig: syscall.SIGKILL}
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Sprintf("%s fails: %v: %s", p.Bwrap, err, queue.OneLine(said))
	}
	return ""
}

// jobAccount is the account of a uid of the range.
func jobAccount(uid int) queue.Account {
	return queue.Account{
		Name: "job", Home: home, UID: uid, GID: uid,
		Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid), Groups: []uint32{}},
	}
}

const (
	home    = "/home/job" // of a contained job
	tmpDir  = "tmp"       // of a job's directory: what it may write besides work
	workDir = "work"
)

// private are the directories below tmp that a contained job has at another place.
func private() [][2]string {
	return [][2]string{{"tmp", "/tmp"}, {"var", "/var/tmp"}, {"home", home}, {"shm", "/dev/shm"}}
}

// makeDirs makes the directories that a job may write, and gives them to its account.
func makeDirs(dir string, who queue.Account) error {
	errs := []error{os.MkdirAll(filepath.Join(dir, workDir), 0o700)}
	for _, p := range private() {
		errs = append(errs, os.MkdirAll(filepath.Join(dir, tmpDir, p[0]), 0o700))
	}
	return errors.Join(append(errs, who.Own(dir, workDir, tmpDir))...)
}

// wrap is the command that runs a program in a container, and the files that it inherits
// as descriptors from 3. With a job's directory bubblewrap writes its status to the next one.
func (p plan) wrap(job message.Job, who queue.Account, path string) (argv []string, files []*os.File, err error) {
	argv = p.apart()
	system, err := p.system(job)
	if err != nil {
		return nil, nil, err
	}
	argv = append(argv, system...)
	argv = append(argv, "--proc", "/proc", "--dev", "/dev")
	texts := [][]byte{
		fmt.Appendf(nil, "job:x:%d:%d::%s:/bin/sh\n", who.UID, who.GID, home),
		fmt.Appendf(nil, "job:x:%d:\n", who.GID),
	}
	if job.Dir != "" {
		work := filepath.Join(job.Dir, workDir)
		// Without --dir, the directory above each mount would have its mode, and keep the job out.
		for _, d := range private() {
			argv = append(argv, "--dir", filepath.Dir(d[1]), "--bind", filepath.Join(job.Dir, tmpDir, d[0]), d[1])
		}
		for _, dir := range p.Read {
			argv = append(argv, "--ro-bind", dir, dir)
		}
		argv = append(argv, "--dir", job.Dir, "--bind", work, work, "--chdir", work)
	}
	argv = append(argv, "--perms", "0644", "--ro-bind-data", "3", "/etc/passwd", "--perms", "0644", "--ro-bind-data", "4", "/etc/group", "--remount-ro", "/dev", "--remount-ro", "/")
	if p.Seccomp {
		argv, texts = append(argv, "--seccomp", "5"), append(texts, filter())
	}
	for _, text := range texts {
		f, err := memory(text)
		if err != nil {
			closeAll(files)
			return nil, nil, err
		}
		files = append(files, f)
	}
	if job.Dir != "" {
		argv = append(argv, "--json-status-fd", strconv.Itoa(3+len(files)))
	}
	return append(append(append(argv, "--"), p.become(who)...), p.bounded(job, path)...), files, nil
}

// apart is the beginning of bubblewrap's command: the namespaces of a job.
func (p plan) apart() []string {
	argv := []string{
		"bwrap", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent", "--new-session", "--hostname", "job",
	}
	if !p.Network {
		argv = append(argv, "--unshare-net")
	}
	if p.Mapped { // it has its own namespace already, in which bubblewrap reaches what the agent does
		return append(argv, "--cap-drop", "ALL", "--cap-add", "CAP_DAC_OVERRIDE", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
	}
	return append(argv, "--unshare-user")
}

// systemDirs mounts what programs need of the system besides /usr. Files of /etc are named one by
// one, since an agent that shares its uid with its jobs may keep secrets there.
func systemDirs() (argv []string) {
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		if to, err := os.Readlink(dir); err == nil {
			argv = append(argv, "--symlink", to, dir)
		} else {
			argv = append(argv, "--ro-bind-try", dir, dir)
		}
	}
	argv = append(argv, "--ro-bind", "/usr", "/usr", "--dir", "/etc", "--dir", "/etc/ssl", "--dir", "/etc/pki/tls")
	for _, name := range strings.Fields("alternatives ca-certificates fonts hosts ld.so.cache ld.so.conf ld.so.conf.d localtime mime.types nsswitch.conf pki/tls/certs protocols resolv.conf services ssl/certs ssl/openssl.cnf terminfo timezone") {
		argv = append(argv, "--ro-bind-try", "/etc/"+name, "/etc/"+name)
	}
	return argv
}

// memory is a file without a name.
func memory(text []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("ramp", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "ramp")
	if _, err = f.Write(text); err == nil {
		_, err = f.Seek(0, 0)
	}
	return f, err
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // the program has its own
	}
}

// pidsPerCore bounds the processes and threads of a job.
const pidsPerCore = 512

func mostPIDs(job message.Job) int { return pidsPerCore * max(job.Slot.Cores, 1) }

// bounded starts a program through a shell that first bounds its processes, if its uid is
// its own, and its address space. Bounds set from outside would be too late, and for
// another account need a privilege that root in a container lacks.
func (p plan) bounded(job message.Job, path string) []string {
	pids := 0
	if job.Dir != "" && (p.Bwrap != "" || p.First > 0) { // without a job: others of its uid may run
		pids = mostPIDs(job)
	}
	const script = `if [ "$1" -gt 0 ]; then if (ulimit -u "$1") 2>/dev/null; then ulimit -u "$1"; else ulimit -p "$1"; fi; fi || exit 126
if [ "$2" -gt 0 ]; then ulimit -v "$2"; fi || exit 126
shift 2; exec "$@"`
	return append([]string{"/bin/sh", "-c", script, "sh", strconv.Itoa(pids), strconv.FormatInt(job.Memory>>10, 10), path}, job.Argv[1:]...)
}

package local

import (
	"bytes"
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

	"ramp/agents/queue"
)

// markOf is in the environment of every process of a job, so that a detached process is found.
func markOf(dir string) string { return queue.JobVariable + "=" + dir }

// begin starts the program of a job in its directory, as its account, with its limits,
// and without the agent's environment.
func (k *keeper) begin() error {
	work := filepath.Join(k.job.Dir, workDir)
	who, err := k.account()
	if err != nil {
		return err
	}
	if err := makeDirs(k.job.Dir, who); err != nil {
		return err
	}
	path, err := lookUp(k.job.Argv[0], work)
	if err == nil {
		err = k.runs(path)
	}
	if err != nil {
		return unrunnable{err}
	}
	files, err := k.open()
	defer func() { closeAll(files) }()
	if err != nil {
		return err
	}
	if err := k.limit(); err != nil {
		return err
	}
	used, err := k.diskUse()
	if err != nil {
		return err
	}
	k.diskMost = used + k.job.FileSize
	env := who.Environment(k.job.Dir)
	argv := k.plan.bounded(k.job, path)
	if k.plan.Bwrap != "" {
		var more []*os.File
		if argv, more, err = k.plan.wrap(k.job, who, path); err != nil {
			return err
		}
		says, said, err := os.Pipe()
		if err != nil {
			return err
		}
		k.setUp, files = says, append(append(files, more...), said)
		env = append(slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, "TMPDIR=") }), "TMPDIR=/tmp")
	}
	return k.start(argv, &os.ProcAttr{
		Dir: work, Env: append(append(env, k.job.Env...), markOf(k.job.Dir)), Files: files,
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: k.plan.credential(who)},
	})
}

// start starts the program in the control group of its job. Without bounds of the group
// it does so without a group if there is none or the kernel refuses.
func (k *keeper) start(argv []string, attr *os.ProcAttr) error {
	program := argv[0]
	if k.plan.Bwrap != "" {
		program = k.plan.Bwrap
	}
	g, err := newGroup(k.job)
	if err == nil {
		err = g.bound(k.job)
	}
	if k.plan.Cgroup && err != nil {
		return fmt.Errorf("control group: %w", err)
	}
	if dir := g.open(); dir != nil {
		defer dir.Close() //nolint:errcheck // nothing was written
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(dir.Fd())
		if k.process, err = os.StartProcess(program, argv, attr); err == nil || k.plan.Cgroup {
			return err
		}
		attr.Sys.UseCgroupFD = false
		g.remove()
	}
	k.process, err = os.StartProcess(program, argv, attr)
	return err
}

func (k *keeper) open() ([]*os.File, error) {
	in, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	files := []*os.File{in}
	for _, name := range []string{"stdout", "stderr"} {
		f, err := os.OpenFile(filepath.Join(k.job.Dir, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return files, err
		}
		files = append(files, f)
	}
	return files, nil
}

// lookUp finds a program: a name in the usual directories, or a path from the working directory.
func lookUp(name, work string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(work, name)
		}
		return name, nil
	}
	for _, dir := range filepath.SplitList(queue.UsualPath) {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("program %q: %w in %s", name, os.ErrNotExist, queue.UsualPath)
}

// runs says why a file cannot be executed. A contained program learns that itself, from where
// it sees no more than it may.
func (k *keeper) runs(path string) error {
	if k.plan.Bwrap != "" {
		return nil
	}
	info, err := os.Stat(path)
	if err == nil && (info.IsDir() || info.Mode()&0o111 == 0) {
		err = &os.PathError{Op: "exec", Path: path, Err: syscall.EACCES}
	}
	return err
}

// limit bounds the keeper as well: the size of files, and no core dumps.
func (k *keeper) limit() error {
	if n := k.job.FileSize; n > 0 {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: uint64(n), Max: uint64(n)}); err != nil {
			return fmt.Errorf("limit of files: %w", err)
		}
	}
	return syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
}

// reap waits for every child and adopted orphan until the program itself has ended.
func reap(pid int, ended chan<- syscall.WaitStatus) {
	for {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			ended <- 0xff00 // no child is left, and the program's end was not seen: impossible
			return
		case got == pid && (status.Exited() || status.Signaled()):
			ended <- status
			return
		}
	}
}

// bury kills the processes that a job has left, and waits for them.
func bury(dir string) {
	for range 100 {
		signalAll(dir, syscall.SIGKILL, 0)
		var status syscall.WaitStatus
		for { // killed processes, and orphans that they leave
			got, err := syscall.Wait4(-1, &status, 0, nil)
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if err != nil || got <= 0 {
				break
			}
		}
		if len(members(dir)) == 0 {
			groupOf(dir).remove()
			return
		}
	}
}

// signalAll signals every process of a job except one until it finds no new one.
func signalAll(dir string, sig syscall.Signal, except int) {
	if sig == syscall.SIGKILL {
		groupOf(dir).kill()
	}
	seen := map[int]bool{}
	for range 50 { // faster forks meet the next signal
		fresh := false
		for _, pid := range members(dir) {
			if pid != except && (!seen[pid] || sig == syscall.SIGKILL) {
				fresh = fresh || !seen[pid]
				seen[pid] = true
				_ = syscall.Kill(pid, sig) // it may be gone
			}
		}
		if !fresh {
			return
		}
	}
}

// members returns the processes of a job: the descendants of this keeper, which adopts their
// orphans, and the processes in the job's control group. Dead ones do not count. The mark does
// not count either: another job may bear it.
func members(dir string) []int {
	all := processes()
	own := family(all, os.Getpid())
	var list []int
	grouped := groupOf(dir).members()
	for pid, p := range all {
		if pid != os.Getpid() && !p.dead && (own[pid] || grouped[pid]) {
			list = append(list, pid)
		}
	}
	slices.Sort(list)
	return list
}

// killStrays kills the processes with a job's mark after its keeper has died.
func killStrays(dir string) error {
	g := groupOf(dir)
	g.kill()
	grouped := g.members()
	err := killAll(func(pid int) bool { return grouped[pid] || marked(pid, dir) })
	if err == nil {
		g.remove()
	}
	return err
}

// killAll kills processes until none of them is left. Faster forks meet the next signal.
func killAll(ours func(pid int) bool) error {
	for range 50 {
		left := 0
		for pid, p := range processes() {
			if !p.dead && pid != os.Getpid() && ours(pid) {
				left = pid
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone
			}
		}
		if left == 0 {
			return nil
		}
	}
	return errors.New("some processes of the job do not end")
}

type process struct {
	parent   int
	dead     bool          // and not waited for yet
	running  bool          // or runnable
	started  uint64        // in ticks since the machine began
	cpu      time.Duration // its own
	waited   time.Duration // of the descendants that it has waited for
	resident int64         // bytes
}

func processes() map[int]process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	all := map[int]process{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := readProcess(pid); ok {
			all[pid] = p
		}
	}
	return all
}

func readProcess(pid int) (process, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	return parseStat(b)
}

// marked reports whether a process has a job's mark.
func marked(pid int, dir string) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && slices.ContainsFunc(bytes.Split(b, []byte{0}), func(v []byte) bool { return string(v) == markOf(dir) })
}

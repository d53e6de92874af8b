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

// markOf is in the environment of every process of a job, so that none gets lost
// however it detaches itself.
func markOf(dir string) string { return queue.JobVariable + "=" + dir }

// begin starts the program of a job: in its directory, as its account, with its
// limits, and with nothing of the agent's environment.
func (k *keeper) begin() error {
	work := filepath.Join(k.job.Dir, "work")
	who, err := queue.AccountOf(k.job.User)
	if err != nil {
		return err
	}
	if err := errors.Join(os.MkdirAll(work, 0o700), os.MkdirAll(filepath.Join(k.job.Dir, "tmp"), 0o700), who.Own(k.job.Dir, "work", "tmp")); err != nil {
		return err
	}
	env := append(who.Environment(k.job.Dir), k.job.Env...)
	env = append(env, markOf(k.job.Dir))
	path, err := lookUp(k.job.Argv[0], work)
	if err != nil {
		return err
	}
	if err := runs(path); err != nil {
		return err
	}
	files, err := k.open()
	if err != nil {
		return err
	}
	defer func() {
		for _, f := range files {
			_ = f.Close() // the program has its own
		}
	}()
	if err := k.limit(); err != nil {
		return err
	}
	attr := &os.ProcAttr{
		Dir: work, Env: env, Files: files,
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: who.Credential},
	}
	return k.start(path, attr)
}

// start starts the program in the control group of its job; without one, if there
// is none or the kernel does not let it be born there.
func (k *keeper) start(path string, attr *os.ProcAttr) (err error) {
	g := newGroup(k.job)
	path, argv := k.bounded(path)
	if dir := g.open(); dir != nil {
		defer dir.Close() //nolint:errcheck // nothing was written
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(dir.Fd())
		if k.process, err = os.StartProcess(path, argv, attr); err == nil {
			return nil
		}
		attr.Sys.UseCgroupFD = false
		g.remove()
	}
	k.process, err = os.StartProcess(path, argv, attr)
	return err
}

// open opens what the program reads and prints to.
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

// lookUp finds a program: a name in the usual directories, a path from where it
// runs.
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

// runs reports why a file is no program; a shell would say it in its own words.
func runs(path string) error {
	info, err := os.Stat(path)
	if err == nil && (info.IsDir() || info.Mode()&0o111 == 0) {
		err = &os.PathError{Op: "exec", Path: path, Err: syscall.EACCES}
	}
	return err
}

// limit bounds what the keeper itself may do as well: files, and no core dumps.
func (k *keeper) limit() error {
	if n := k.job.FileSize; n > 0 {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: uint64(n), Max: uint64(n)}); err != nil {
			return fmt.Errorf("limit of files: %w", err)
		}
	}
	return syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
}

// bounded is how a program is started whose address space has a bound: by a shell that
// sets it first. From outside it would come when the program runs already, and over
// another account's needs a privilege that root in a container lacks.
func (k *keeper) bounded(path string) (program string, argv []string) {
	if k.job.Memory <= 0 {
		return path, k.job.Argv
	}
	argv = []string{"sh", "-c", `ulimit -v "$1" && shift && exec "$@"`, "sh", strconv.FormatInt(k.job.Memory>>10, 10), path}
	return "/bin/sh", append(argv, k.job.Argv[1:]...)
}

// reap waits for every child, and for every orphan that became one, until the
// program itself has ended.
func reap(pid int, ended chan<- syscall.WaitStatus) {
	for {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			ended <- 0xff00 // no child, and it was not seen to end: it cannot be
			return
		case got == pid && (status.Exited() || status.Signaled()):
			ended <- status
			return
		}
	}
}

// bury kills what a job has left running, and waits for it.
func bury(dir string) {
	for range 100 {
		signalAll(dir, syscall.SIGKILL)
		var status syscall.WaitStatus
		for { // what was killed, and orphans that come of it
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

// signalAll signals every process of a job until no new one is found.
func signalAll(dir string, sig syscall.Signal) {
	if sig == syscall.SIGKILL {
		groupOf(dir).kill()
	}
	seen := map[int]bool{}
	for range 50 { // what forks faster is met again at the next signal
		fresh := false
		for _, pid := range members(dir) {
			if !seen[pid] || sig == syscall.SIGKILL {
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

// members are the processes of a job: the descendants of this keeper, those in the
// job's control group, and those that bear its mark wherever they are. Dead ones
// are none.
func members(dir string) []int {
	all := processes()
	own := family(all, os.Getpid())
	var list []int
	grouped := groupOf(dir).members()
	for pid, p := range all {
		if pid != os.Getpid() && !p.dead && (own[pid] || grouped[pid] || marked(pid, dir)) {
			list = append(list, pid)
		}
	}
	slices.Sort(list)
	return list
}

// killStrays kills what bears a job's mark, when its keeper is no more.
func killStrays(dir string) error {
	g := groupOf(dir)
	for range 50 {
		g.kill()
		grouped, strays := g.members(), 0
		for pid, p := range processes() {
			if !p.dead && pid != os.Getpid() && (grouped[pid] || marked(pid, dir)) {
				strays++
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone
			}
		}
		if strays == 0 {
			g.remove()
			return nil
		}
	}
	return fmt.Errorf("processes of the job in %s do not end", dir)
}

// process is one process of this machine.
type process struct {
	parent   int
	dead     bool          // but not waited for yet
	running  bool          // or wants to
	started  uint64        // in ticks since the machine began
	cpu      time.Duration // its own
	waited   time.Duration // of the descendants that it has waited for
	resident int64         // bytes
}

// processes is what runs on this machine.
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

// readProcess reads what runs under a number.
func readProcess(pid int) (process, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	return parseStat(b)
}

// marked reports whether a process bears a job's mark.
func marked(pid int, dir string) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && slices.ContainsFunc(bytes.Split(b, []byte{0}), func(v []byte) bool { return string(v) == markOf(dir) })
}

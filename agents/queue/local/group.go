package local

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"ramp/agents/queue"
	"ramp/protocol/message"
)

// groupFile has the control group of a job, so that it is found after its keeper
// has died.
const groupFile = "group"

// group is the control group (version 2) of a job, by its directory; "": there is
// none, since the keeper may not make one. Whatever a job starts is born in it and
// cannot leave it, unless it has the rights of the agent itself.
type group string

// newGroup makes the group of a job below the keeper's own, if that can be, and
// writes down where it is.
func newGroup(job message.Job) group {
	own := ownGroup()
	if own == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(job.Dir))
	g := group(filepath.Join(own, "ramp-job-"+hex.EncodeToString(sum[:8])))
	if err := os.Mkdir(string(g), 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return ""
	}
	if _, err := os.Stat(g.file("cgroup.kill")); err != nil { // before Linux 5.14
		g.remove()
		return ""
	}
	if err := queue.WriteFile(control(job, groupFile), string(g)); err != nil {
		g.remove()
		return ""
	}
	if job.Memory > 0 { // beside the limit of address space, where the kernel counts memory by group
		_ = g.write("memory.max", strconv.FormatInt(job.Memory, 10))
		_ = g.write("memory.oom.group", "1")
	}
	return g
}

// groupOf is the group that a job's keeper has made.
func groupOf(dir string) group {
	var g group
	if err := queue.ReadFile(control(message.Job{Dir: dir}, groupFile), &g); err != nil {
		return ""
	}
	return g
}

// ownGroup is the directory of this process's group; "" if it has none.
func ownGroup() string {
	mount, path := "", ""
	for _, f := range fieldsOf("/proc/self/mounts", " ") {
		if len(f) > 2 && f[2] == "cgroup2" {
			mount = f[1]
		}
	}
	for _, f := range fieldsOf("/proc/self/cgroup", ":") {
		if len(f) == 3 && f[0] == "0" {
			path = f[2]
		}
	}
	if mount == "" || path == "" || strings.Contains(path, "..") {
		return ""
	}
	return filepath.Join(mount, path)
}

func fieldsOf(path, by string) [][]string {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var list [][]string
	for line := range strings.Lines(string(b)) {
		list = append(list, strings.Split(strings.TrimSuffix(line, "\n"), by))
	}
	return list
}

func (g group) file(name string) string { return filepath.Join(string(g), name) }

// write sets a file of the group; one that is not there is an error.
func (g group) write(name, value string) error {
	f, err := os.OpenFile(g.file(name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// open opens the group, so that a process can be born in it; nil if there is none.
func (g group) open() *os.File {
	if g == "" {
		return nil
	}
	f, err := os.Open(string(g))
	if err != nil {
		return nil
	}
	return f
}

// kill kills all that is in the group at once, also what is being forked.
func (g group) kill() {
	if g != "" {
		_ = g.write("cgroup.kill", "1") // a group that is gone has nobody in it
	}
}

// members are the processes of the group. Those that are dead and not waited for
// are among them.
func (g group) members() map[int]bool {
	if g == "" {
		return nil
	}
	list := map[int]bool{}
	for _, f := range fieldsOf(g.file("cgroup.procs"), " ") {
		if pid, err := strconv.Atoi(f[0]); err == nil && pid > 0 {
			list[pid] = true
		}
	}
	return list
}

// remove takes the group away, if nobody is in it.
func (g group) remove() {
	if g != "" {
		_ = os.Remove(string(g))
	}
}

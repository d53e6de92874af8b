package local

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ramp/agents/queue"
	"ramp/protocol/message"
)

// groupFile names the control group of a job, so that it is found after its keeper has died.
const groupFile = "group"

// group is the directory of a job's control group (version 2), or "" if the keeper may
// not make one. All processes of the job are born in it, and cannot leave it without
// the rights of the agent itself.
type group string

// leaf is the group of the agent below the one that systemd delegates to it
// (DelegateSubgroup): a group with processes cannot bound groups below it.
const leaf = "ramp-agent"

// controllers bound a job's group.
const controllers = "+cpu +memory +pids"

// baseGroup is the group below which jobs get theirs, or "".
func baseGroup() group {
	own := ownGroup()
	if filepath.Base(own) == leaf {
		return group(filepath.Dir(own))
	}
	return group(own)
}

// delegated says why groups of jobs would bound nothing; "" if they would.
func delegated() string {
	g := baseGroup()
	if g == "" {
		return "this machine has no control groups of version 2"
	}
	_ = g.write("cgroup.subtree_control", controllers) // read back below
	b, err := os.ReadFile(g.file("cgroup.subtree_control"))
	if err != nil {
		return err.Error()
	}
	for _, c := range strings.Fields(strings.ReplaceAll(controllers, "+", "")) {
		if !slices.Contains(strings.Fields(string(b)), c) {
			return fmt.Sprintf("%s does not let groups below it bound %s; with systemd 254 or later, run the agent in a unit with Delegate=yes and DelegateSubgroup=%s", g, c, leaf)
		}
	}
	return ""
}

// newGroup makes the group of a job and records its path.
func newGroup(job message.Job) (group, error) {
	base := baseGroup()
	if base == "" {
		return "", os.ErrNotExist
	}
	sum := sha256.Sum256([]byte(job.Dir))
	g := group(base.file("ramp-job-" + hex.EncodeToString(sum[:8])))
	if err := os.Mkdir(string(g), 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	_, err := os.Stat(g.file("cgroup.kill")) // from Linux 5.14
	if err == nil {
		err = queue.WriteFile(control(job, groupFile), string(g))
	}
	if err != nil {
		g.remove()
		return "", err
	}
	return g, nil
}

// bound bounds the processes, memory and cores of a job. It tries all of them.
func (g group) bound(job message.Job) error {
	cores := max(job.Slot.Cores, 1)
	errs := []error{
		g.write("pids.max", strconv.Itoa(mostPIDs(job))),
		g.write("cpu.max", fmt.Sprintf("%d 100000", cores*100_000)),
	}
	if most := memoryOf(job); most > 0 {
		errs = append(errs, g.write("memory.max", strconv.FormatInt(most, 10)), g.write("memory.oom.group", "1"))
		_ = g.write("memory.swap.max", "0") // absent without swap
	}
	return errors.Join(errs...)
}

// groupOf is the group that a job's keeper has made.
func groupOf(dir string) group {
	var g group
	if err := queue.ReadFile(control(message.Job{Dir: dir}, groupFile), &g); err != nil {
		return ""
	}
	return g
}

// ownGroup is the directory of this process's group, or "".
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

// write sets a file of the group; a missing one is an error.
func (g group) write(name, value string) error {
	f, err := os.OpenFile(g.file(name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// open opens the group, so that a process can be born in it, or returns nil.
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

// freeze stops all processes of the group, or lets them go on: also those that are forked
// meanwhile, which signals may miss.
func (g group) freeze(on bool) {
	if g != "" {
		value := "0"
		if on {
			value = "1"
		}
		_ = g.write("cgroup.freeze", value) // from Linux 5.2; SIGSTOP does it without
	}
}

// kill kills all processes of the group at once, and those that they fork meanwhile.
func (g group) kill() {
	if g != "" {
		_ = g.write("cgroup.kill", "1") // a removed group has no processes
	}
}

// members are the processes of the group, including dead ones that nobody has waited for.
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

func (g group) remove() {
	if g != "" {
		_ = os.Remove(string(g))
	}
}

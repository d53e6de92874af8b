package local_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ramp/agents/queue"
	"ramp/agents/queue/escape"
	"ramp/agents/queue/local"
	"ramp/agents/queue/queuetest"
	"ramp/protocol"
	"ramp/protocol/message"
)

// containments counts the ranges of uids: each driver kills what else runs under its own.
var containments atomic.Int32

// contained is a Containment that this machine can do, but for the bounds of control
// groups. It skips the test where bubblewrap is missing.
func contained(t *testing.T) local.Containment {
	t.Helper()
	c := local.Containment{Accept: []string{local.Cgroup}}
	n := int(containments.Add(1)) * 10
	if os.Geteuid() == 0 {
		c.First, c.Last = 200_000+n, 200_009+n
	} else if os.Getenv(ranged) != "" {
		c.First, c.Last, c.Named = 300_000+n, 300_009+n, true
	}
	if why, _ := c.Try(); why != "" {
		t.Skip("jobs cannot be contained here: " + why)
	}
	return c
}

// passable lets accounts of jobs pass through directories that the test has made, where
// the driver needs that.
func passable(t *testing.T, dir string) {
	t.Helper()
	for d := dir; os.Geteuid() == 0 && d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// suite runs the attempts under a containment.
func suite(t *testing.T, c local.Containment) (list []escape.Result) {
	t.Helper()
	dir := t.TempDir()
	passable(t, dir)
	secret, socket := filepath.Join(dir, "agent.key"), filepath.Join(dir, "sock")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Open(secret, syscall.O_RDONLY, 0) // as agents inherit files from a shell
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd) //nolint:errcheck // only read
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing was accepted
	d, err := local.Open(local.Config{
		Agent: queuetest.Agent, Dir: filepath.Join(dir, "claims"), Now: time.Now, Slog: slog.New(slog.DiscardHandler),
		Keeper: []string{os.Args[0], keeps}, Contain: c,
	})
	if err != nil {
		t.Fatal(err)
	}
	list, err = escape.Run(context.Background(), d, escape.Site{
		Agent: queuetest.Agent, Root: filepath.Join(dir, "jobs"), Program: []string{os.Args[0], tries}, Network: c.Network,
		Files: map[string]string{"read the agent's key": secret, "connect to the agent's control socket": socket},
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestNothingEscapesFromAContainer(t *testing.T) {
	t.Parallel()
	list := suite(t, contained(t))
	for _, r := range list {
		t.Logf("%-60s %s", r.Attempt, r.StoppedBy)
		if r.Succeeded {
			t.Errorf("%s: it succeeded", r.Attempt)
		}
	}
	if len(list) < 40 {
		t.Errorf("%d attempts were made", len(list))
	}
}

// Without namespaces the same attempts reach the machine: what holds above is the
// container's work. Only harmless ones are looked at.
func TestAnUncontainedJobReachesTheMachine(t *testing.T) {
	t.Parallel()
	c := local.Containment{Accept: local.Protections(), Bwrap: "/nonexistent"}
	if os.Geteuid() == 0 {
		c.First, c.Last = 209_000, 209_099
	}
	open := map[string]bool{}
	for _, r := range suite(t, c) {
		open[r.Attempt] = r.Succeeded
	}
	for _, name := range []string{
		"connect to the machine's loopback", "connect to an abstract socket of the machine", "open a socket to the hypervisor",
		"gain privileges by a setuid program", "find what an earlier job left in /tmp",
	} {
		if !open[name] {
			t.Errorf("%s: it did not succeed", name)
		}
	}
}

// ranged is the variable that lets jobs of an agent that is not root have their own uids.
const ranged = "RAMP_TEST_RANGE"

// An agent that is not root contains its jobs in a user namespace, with its own uid or
// those that /etc/subuid gives to it. Others cannot enter its directory.
func TestNothingEscapesFromAnOrdinaryAgent(t *testing.T) {
	t.Parallel()
	who := queuetest.Nobody(t)
	contained(t)
	for name, script := range map[string]string{
		"under its own uid":     `exec "$@"`,
		"under uids of its own": `mount --bind subuid /etc/subuid && mount --bind subuid /etc/subgid && ` + ranged + `=yes exec "$@"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asOrdinary(t, who, script, "^Test(NothingEscapesFromAContainer|WhatAJobLeaves|AKeeperThatDies|JobsSeeAnImage|UIDsOfOthersAreRefused)$")
		})
	}
}

// asOrdinary runs tests of this program as an account, by a script that may change mounts.
func asOrdinary(t *testing.T, who queue.Account, script, tests string) {
	t.Helper()
	tmp, err := os.MkdirTemp("", "own") // short: paths of sockets are bounded
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(tmp) })
	program, err := os.ReadFile(os.Args[0])
	err = errors.Join(err, os.WriteFile(filepath.Join(tmp, "local.test"), program, 0o755), os.Chmod(tmp, 0o700), os.Chown(tmp, who.UID, who.GID),
		os.WriteFile(filepath.Join(tmp, "subuid"), fmt.Appendf(nil, "%s:300000:1000\n", who.Name), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("newuidmap"); err != nil && script != `exec "$@"` {
		t.Skip(err)
	}
	cmd := exec.Command("unshare", "--mount", "sh", "-c", script, "sh", "setpriv", fmt.Sprint("--reuid=", who.UID), fmt.Sprint("--regid=", who.GID), "--clear-groups",
		filepath.Join(tmp, "local.test"), "-test.run", tests, "-test.v")
	cmd.Dir, cmd.Env = tmp, []string{"PATH=" + queue.UsualPath, "TMPDIR=" + tmp, "HOME=" + tmp}
	said, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(said), "--- PASS") {
		t.Fatalf("%v\n%s", err, said)
	}
	t.Logf("%s", said)
}

// A machine that cannot contain jobs refuses them, and says why, unless its site accepts it.
func TestJobsThatCannotBeContainedAreRefused(t *testing.T) {
	for _, name := range local.Protections() {
		c := local.Containment{Bwrap: "/nonexistent", First: 200_000, Last: 200_001}
		for _, other := range local.Protections() {
			if other != name {
				c.Accept = append(c.Accept, other)
			}
		}
		why, _ := c.Try()
		if name == local.Namespaces && !strings.Contains(why, "namespaces: ") {
			t.Errorf("without namespaces: %q", why)
		}
		if why != "" && !strings.HasPrefix(why, name+": ") {
			t.Errorf("without %s: %q", name, why)
		}
	}
	d, err := local.Open(local.Config{
		Agent: queuetest.Agent, Dir: t.TempDir(), Now: time.Now, Slog: slog.New(slog.DiscardHandler),
		Keeper: []string{os.Args[0], keeps}, Contain: local.Containment{Bwrap: "/nonexistent"},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = escape.Run(t.Context(), d, escape.Site{Agent: queuetest.Agent, Root: t.TempDir(), Files: map[string]string{}})
	if err == nil || !strings.Contains(err.Error(), "cannot contain jobs: namespaces: ") {
		t.Errorf("a job without a container: %v", err)
	}
	if d, err = local.Open(local.Config{Agent: queuetest.Agent, Dir: t.TempDir(), Cores: 1, Now: time.Now, Slog: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	_, err = escape.Run(t.Context(), d, escape.Site{Agent: queuetest.Agent, Root: t.TempDir(), Files: map[string]string{}})
	if err == nil || !strings.HasPrefix(err.Error(), "the attempts need two free cores: ") || !strings.Contains(err.Error(), "repeat this when") {
		t.Errorf("only one core is free: %v", err)
	}
}

// run runs a script as a contained job, and returns how it ended and its directory.
func run(t *testing.T, c local.Containment, script string, spoil func(job message.Job)) (protocol.JobStatus, string) {
	t.Helper()
	dir := t.TempDir()
	passable(t, dir)
	d, err := local.Open(local.Config{
		Agent: queuetest.Agent, Dir: filepath.Join(dir, "claims"), Now: time.Now, Slog: slog.New(slog.DiscardHandler),
		Keeper: []string{os.Args[0], keeps}, Contain: c,
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := asks(t, queuetest.Agent, d)
	slot := protocol.Slot{Start: time.Now().UTC(), End: time.Now().UTC().Add(10 * time.Minute), Cores: 1}
	if r := ask(message.Reserve{ID: "r", Slot: slot}).(message.Reserved); !r.OK {
		t.Fatalf("%+v", r)
	}
	job := message.Job{ID: "r.1", Reservation: "r", Slot: slot, Dir: filepath.Join(dir, "job"), Argv: []string{"/bin/sh", "-c", script}}
	if err := os.Mkdir(job.Dir, 0o711); err != nil {
		t.Fatal(err)
	}
	body := ask(message.Submit{Job: job})
	if spoil != nil {
		spoil(job)
	}
	for ; ; body = ask(message.JobQuery{Job: job}) {
		q, ok := body.(message.JobChanged)
		if !ok {
			t.Fatalf("%+v", body)
		}
		if q.Status.State.Over() {
			return q.Status, job.Dir
		}
	}
}

// leaves is a job that uses what it may write, prints its uid, and forbids all access to
// what it leaves behind.
const leaves = `set -e
cat /etc/hosts /etc/passwd >/dev/null
for d in "$HOME" /tmp /var/tmp /dev/shm; do echo mine >$d/f; done
mkdir -p a/b && echo out >a/b/file && ln -s /etc/passwd link && mkfifo pipe && chmod 0 a/b/file a/b a
chmod 777 .
id -u`

// The agent can read and remove what a job leaves, whatever its uid and the files' modes.
func TestWhatAJobLeaves(t *testing.T) {
	t.Parallel()
	c := contained(t)
	status, dir := run(t, c, leaves, nil)
	said, err := os.ReadFile(filepath.Join(dir, "stdout"))
	if err != nil || !status.Success() {
		words, _ := os.ReadFile(filepath.Join(dir, "stderr")) // for the message
		t.Fatalf("%+v, %v\n%s", status, err, words)
	}
	uid, err := strconv.Atoi(strings.TrimSpace(string(said)))
	if first, last := c.First, c.Last; err != nil || first > 0 && (uid < first || uid > last) || first == 0 && uid != os.Geteuid() {
		t.Errorf("it ran as %q; the range is %d-%d", said, first, last)
	}
	belongsToTheAgent(t, dir)
}

// belongsToTheAgent holds that the agent alone can enter a job's working directory, and
// can read and remove all of it.
func belongsToTheAgent(t *testing.T, dir string) {
	t.Helper()
	work := filepath.Join(dir, "work")
	if os.Geteuid() == 0 || os.Getenv(ranged) != "" {
		if info, err := os.Stat(work); err != nil || info.Mode().Perm() != 0o700 || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
			t.Errorf("%v, %v", info, err)
		}
		if b, err := os.ReadFile(filepath.Join(work, "a/b/file")); err != nil || string(b) != "out\n" {
			t.Errorf("%q, %v", b, err)
		}
	}
	if said, err := exec.Command("sh", "-c", `chmod -R u+rwx "$0" && rm -r "$0"`, dir).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, said)
	}
}

// If a keeper dies, the agent takes back what the job has left.
func TestAKeeperThatDies(t *testing.T) {
	t.Parallel()
	status, dir := run(t, contained(t), leaves+"; sleep 600", func(job message.Job) {
		for said := ""; said == ""; time.Sleep(time.Millisecond) {
			b, err := os.ReadFile(filepath.Join(job.Dir, "stdout"))
			if s, failed := local.Status(job); err != nil || failed != nil || s.State.Over() {
				t.Errorf("%+v, %v, %v", s, err, failed)
				return
			}
			said = string(b)
		}
		if err := syscall.Kill(keeperOf(t, job), syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	})
	if status.State != protocol.JobLost {
		t.Errorf("%+v", status)
	}
	belongsToTheAgent(t, dir)
}

// A site's image is all that jobs see of a system: here one with nothing but a shell, and
// with a link where the container mounts something.
func TestJobsSeeAnImage(t *testing.T) {
	t.Parallel()
	c := contained(t)
	c.Named = false // the image has no setpriv: the agent keeps its uid
	c.Image = filepath.Join(t.TempDir(), "image")
	passable(t, c.Image[:len(c.Image)-len("/image")])
	said, err := exec.Command("sh", "-ec", `mkdir -p "$0/bin" "$0/etc/conf" "$0/var/lib" "$0/usr/share"
ln -s /etc "$0/tmp"; ln -s usr/share "$0/share"; echo theirs >"$0/etc/passwd"; echo image >"$0/etc/conf/name"; echo deep >"$0/usr/share/file"
cp "$(command -v busybox)" "$0/bin/busybox"; for f in sh cat ls id mkdir chmod ln mkfifo true; do ln -s busybox "$0/bin/$f"; done
ldd "$0/bin/busybox" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do cp -L --parents "$library" "$0"; done; chmod -R go+rX "$0"`, c.Image).CombinedOutput()
	if err != nil {
		t.Skipf("no image can be made: %v: %s", err, said)
	}
	status, dir := run(t, c, "set -e; cat /etc/conf/name /share/file; ls /usr /etc /var; echo x >/tmp/x; ls /tmp/x; ! echo x >/etc/conf/x; id -un", nil)
	out, err := os.ReadFile(filepath.Join(dir, "stdout"))
	if want := "image\ndeep\n/etc:\nconf\ngroup\npasswd\n\n/usr:\nshare\n\n/var:\nlib\ntmp\n/tmp/x\njob\n"; err != nil || !status.Success() || string(out) != want {
		words, _ := os.ReadFile(filepath.Join(dir, "stderr")) // for the message
		t.Errorf("%+v, %v: %q\n%s", status, err, out, words)
	}
	c.Bwrap, c.Accept = "/nonexistent", local.Protections()
	if why, _ := c.Try(); !strings.HasPrefix(why, "image: ") {
		t.Errorf("without a container: %q", why)
	}
}

// A site that names a range gets it or runs nothing, even if a container would do.
func TestUIDsOfOthersAreRefused(t *testing.T) {
	c := contained(t)
	if os.Geteuid() == 0 {
		t.Skip("root has all uids")
	}
	c.First, c.Last, c.Named = 400_000, 400_009, true
	if why, _ := c.Try(); !strings.HasPrefix(why, "uids: ") {
		t.Errorf("a range of others: %q", why)
	}
}

// A program that its site could not start is lost, and its buyer owes nothing; what a
// program cannot do itself is its own failure.
func TestAContainerThatCannotBeSetUpIsNotTheBuyers(t *testing.T) {
	t.Parallel()
	gone := contained(t)
	gone.Read = []string{"/nonexistent-directory"}
	for _, c := range []struct {
		contain local.Containment
		script  string
		want    protocol.JobState
	}{
		{gone, "true", protocol.JobLost},
		{contained(t), "exec /nonexistent-program", protocol.JobExited},
		{contained(t), "echo '\"exit-code\"'; kill -9 $PPID; exit 1", protocol.JobExited},
	} {
		status, dir := run(t, c.contain, c.script, nil)
		if lost := c.want == protocol.JobLost; status.State != c.want || status.Started.IsZero() != lost || status.Delivered() == lost || (status.Usage == protocol.Usage{}) != lost {
			words, _ := os.ReadFile(filepath.Join(dir, "stderr")) // for the message
			t.Errorf("%q: %+v: %s", c.script, status, words)
		}
	}
}

// Package etcdtest starts a real etcd cluster of three members on loopback
// addresses, each a process that a test can kill, freeze and start again.
package etcdtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ramp/agents/porttest"
)

// Members of a cluster: one may fail.
const Members = 3

// Demanded is the environment variable that makes a missing etcd a failure.
const Demanded = "RAMP_TEST_ETCD"

const startTime = 30 * time.Second

// Cluster is a running cluster.
type Cluster struct {
	t         testing.TB
	bin       string
	dir       string
	Peers     []string // where members find each other
	Listens   []string // where they listen for each other
	flags     []string
	Endpoints []string // of the clients' side
	mu        sync.Mutex
	running   []*exec.Cmd
}

// Start runs a cluster until the test ends. Without the program etcd the test is
// skipped, unless the variable Demanded is set. flags are given to each member.
func Start(t testing.TB, flags ...string) *Cluster {
	t.Helper()
	c := found(t, flags)
	c.Listens = c.Peers
	c.start()
	return c
}

// StartLinked starts a cluster whose members reach each other as link arranges.
func StartLinked(t testing.TB, link func(c *Cluster)) *Cluster {
	t.Helper()
	c := found(t, nil)
	for range Members {
		c.Listens = append(c.Listens, freeAddress(t))
	}
	link(c)
	c.start()
	return c
}

func (c *Cluster) start() {
	c.t.Helper()
	c.t.Cleanup(c.stop)
	for i := range Members {
		c.Restart(i)
	}
	c.await()
}

// found prepares a cluster that does not run yet.
func found(t testing.TB, flags []string) *Cluster {
	t.Helper()
	bin, err := exec.LookPath("etcd")
	if err != nil {
		if os.Getenv(Demanded) != "" {
			t.Fatal(err)
		}
		t.Skip("no program etcd here (Debian's package etcd-server); make test-etcd installs it")
	}
	c := &Cluster{t: t, bin: bin, flags: flags, dir: memory(t), running: make([]*exec.Cmd, Members)}
	for i := range 2 * Members {
		a := freeAddress(t)
		if i%2 == 0 {
			c.Peers = append(c.Peers, a)
		} else {
			c.Endpoints = append(c.Endpoints, a)
		}
	}
	return c
}

// memory is a directory in memory, if there is enough: a disk that stands still for seconds
// deposes leaders. Only processes are killed here, so nothing is lost.
func memory(t testing.TB) string {
	var free syscall.Statfs_t
	if syscall.Statfs("/dev/shm", &free) == nil && free.Bavail*uint64(free.Bsize) > 2<<30 {
		if dir, err := os.MkdirTemp("/dev/shm", "etcd"); err == nil {
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			return dir
		}
	}
	return t.TempDir()
}

// Version is the program's version.
func Version(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("etcd", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimPrefix(line, "etcd Version: ")
}

// freeAddress is an address without a listener.
func freeAddress(t testing.TB) string {
	t.Helper()
	port, err := porttest.Free()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// Restart starts a member that does not run.
func (c *Cluster) Restart(i int) {
	c.t.Helper()
	var all []string
	for j, p := range c.Peers {
		all = append(all, fmt.Sprintf("m%d=http://%s", j, p))
	}
	args := append(slices.Clone(c.flags), "--name", fmt.Sprintf("m%d", i), "--data-dir", filepath.Join(c.dir, fmt.Sprint(i)),
		"--listen-peer-urls", "http://"+c.Listens[i], "--initial-advertise-peer-urls", "http://"+c.Peers[i],
		"--listen-client-urls", "http://"+c.Endpoints[i], "--advertise-client-urls", "http://"+c.Endpoints[i],
		"--initial-cluster", strings.Join(all, ","), "--initial-cluster-token", "ramp-test", "--logger", "zap", "--log-outputs",
		filepath.Join(c.dir, fmt.Sprintf("%d.log", i)))
	cmd := exec.Command(c.bin, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.set(i, cmd)
}

func (c *Cluster) set(i int, cmd *exec.Cmd) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[i] = cmd
}

// pids are the processes of the members; 0: stopped.
func (c *Cluster) PIDs() (list [Members]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, cmd := range c.running {
		if cmd != nil {
			list[i] = cmd.Process.Pid
		}
	}
	return list
}

// Kill ends a member at once.
func (c *Cluster) Kill(i int) {
	if c.running[i] != nil {
		_ = c.running[i].Process.Kill()
		_ = c.running[i].Wait()
		c.set(i, nil)
	}
}

// Freeze stops a member without closing its connections; Thaw lets it go on.
func (c *Cluster) Freeze(i int) { _ = c.running[i].Process.Signal(syscall.SIGSTOP) }

// Thaw is the end of Freeze.
func (c *Cluster) Thaw(i int) { _ = c.running[i].Process.Signal(syscall.SIGCONT) }

// Leader is the member that leads the cluster.
func (c *Cluster) Leader() int {
	c.t.Helper()
	for end := time.Now().Add(startTime); time.Now().Before(end); {
		for i := range Members {
			if s, err := c.status(i); err == nil && s.Leader == s.Header.Member {
				return i
			}
		}
	}
	c.t.Fatal("the etcd cluster has no leader")
	return 0
}

// status is a member's status; numbers are strings in JSON.
type status struct {
	Header struct {
		Member string `json:"member_id"`
	} `json:"header"`
	Leader string `json:"leader"`
}

func (c *Cluster) status(i int) (s status, err error) {
	client := http.Client{Timeout: time.Second}
	resp, err := client.Post("http://"+c.Endpoints[i]+"/v3/maintenance/status", "application/json", strings.NewReader("{}"))
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	return s, json.NewDecoder(resp.Body).Decode(&s)
}

// await waits until all members answer.
func (c *Cluster) await() {
	c.t.Helper()
	end := time.Now().Add(startTime)
	for i := 0; i < Members; {
		if s, err := c.status(i); err == nil && s.Leader != "" {
			i++
		} else if time.Now().After(end) {
			c.t.Fatalf("etcd member %d does not start: %v", i, err)
		}
	}
}

func (c *Cluster) stop() {
	for i := range Members {
		c.Kill(i)
	}
}

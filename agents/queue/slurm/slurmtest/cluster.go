// Package slurmtest runs a real Slurm cluster on one machine for tests: munged, slurmctld and a
// slurmd for each simulated node, all below one directory, without systemd or cgroups. It needs
// root and the packages munge, slurm-client, slurmctld, slurmd and slurm-wlm-basic-plugins.
//
// The daemons are children of the test, and die with it.
package slurmtest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ramp/agents/porttest"
)

// Options are the cluster's size.
type Options struct {
	Dir     string // created if missing; removed by Down
	Nodes   int    // 4 if 0
	Cores   int    // of each node, 16 if 0
	Threads int    // of each core, 1 if 0
	// Enter is a prefix of every command but munged, such as nsenter --net=PATH, so that the
	// cluster has its own network namespace, which needs an address besides the loopback's.
	Enter []string
}

// Partition is the cluster's only partition.
const Partition = "batch"

// Cluster is a running cluster.
type Cluster struct {
	Options
	ports   []int // slurmctld's, then one per node
	starter *starter
	munged  *exec.Cmd
	control *exec.Cmd
	nodes   []*exec.Cmd
}

// upLimit bounds every wait of this package.
const upLimit = 60 * time.Second

// Missing says why this machine cannot run a cluster; nil: it can.
func Missing() error {
	if os.Getuid() != 0 {
		return errors.New("slurmd needs root")
	}
	for _, p := range []string{"munged", "munge", "slurmctld", "slurmd", "scontrol", "squeue", "sinfo", "sbatch", "scancel"} {
		if _, err := exec.LookPath(p); err != nil {
			return fmt.Errorf("%s is not installed", p)
		}
	}
	return nil
}

// Up starts a cluster and waits for its nodes to be idle.
func Up(o Options) (*Cluster, error) {
	if err := Missing(); err != nil {
		return nil, err
	}
	c := &Cluster{Options: o.filled(), starter: newStarter()}
	steps := []func() error{c.layOut, c.startMunge, c.configure, c.StartController, c.startNodes, c.AwaitNodes}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, errors.Join(err, c.Down())
		}
	}
	return c, nil
}

func (o Options) filled() Options {
	or := func(n, otherwise int) int {
		if n == 0 {
			return otherwise
		}
		return n
	}
	o.Nodes, o.Cores, o.Threads = or(o.Nodes, 4), or(o.Cores, 16), or(o.Threads, 1)
	return o
}

// Conf is the path of slurm.conf.
func (c *Cluster) Conf() string { return filepath.Join(c.Dir, "slurm.conf") }

func (c *Cluster) socket() string { return filepath.Join(c.Dir, "munge", "socket") }

// layOut makes the directories and picks free ports.
func (c *Cluster) layOut() error {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	if err := os.Chmod(c.Dir, 0o755); err != nil { // munge and slurm are other users
		return err
	}
	for dir, owner := range map[string]string{"munge": "munge", "state": "slurm", "log": "slurm", "run": "slurm", "spool": "root"} {
		path := filepath.Join(c.Dir, dir)
		uid, gid, err := account(owner)
		if err == nil {
			err = errors.Join(os.MkdirAll(path, 0o755), os.Chown(path, uid, gid))
		}
		if err != nil {
			return err
		}
	}
	for range c.Nodes + 1 {
		port, err := porttest.Free()
		if err != nil {
			return err
		}
		c.ports = append(c.ports, port)
	}
	return nil
}

func account(name string) (uid, gid int, err error) {
	u, err := user.Lookup(name)
	if err != nil {
		return 0, 0, err
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	return uid, gid, errors.Join(err1, err2)
}

func (c *Cluster) startMunge() error {
	uid, gid, err := account("munge")
	if err != nil {
		return err
	}
	key := make([]byte, 128)
	if _, err := rand.Read(key); err != nil {
		return err
	}
	path := func(f string) string { return filepath.Join(c.Dir, "munge", f) }
	if err := errors.Join(os.WriteFile(path("key"), key, 0o600), os.Chown(path("key"), uid, gid)); err != nil {
		return err
	}
	c.munged = exec.Command("munged", "--foreground", "--key-file="+path("key"), "--socket="+c.socket(),
		"--pid-file="+path("pid"), "--log-file="+path("log"), "--seed-file="+path("seed"), "--num-threads=2")
	c.munged.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	if err := c.start(c.munged); err != nil {
		return err
	}
	return c.await("munged", func() error { return exec.Command("munge", "-n", "-S", c.socket()).Run() })
}

// configure writes slurm.conf.
func (c *Cluster) configure() error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	host, _, _ = strings.Cut(host, ".")
	var b strings.Builder
	fmt.Fprintf(&b, form, host, c.ports[0], c.socket(), c.Dir)
	for i := range c.Nodes {
		fmt.Fprintf(&b, "NodeName=node%d NodeHostname=%s NodeAddr=127.0.0.1 Port=%d Sockets=1 CoresPerSocket=%d ThreadsPerCore=%d RealMemory=64000 State=UNKNOWN\n",
			i+1, host, c.ports[i+1], c.Cores, c.Threads)
	}
	fmt.Fprintf(&b, "PartitionName=%s Nodes=ALL Default=YES MaxTime=7-00:00:00 DefaultTime=01:00:00 State=UP\n", Partition)
	return os.WriteFile(c.Conf(), []byte(b.String()), 0o644)
}

// form is slurm.conf with placeholders for host, port, munge's socket and directory.
const form = `ClusterName=test
SlurmctldHost=%[1]s(127.0.0.1)
SlurmctldPort=%[2]d
SlurmUser=slurm
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=%[3]s
CredType=cred/munge
StateSaveLocation=%[4]s/state
SlurmdSpoolDir=%[4]s/spool/%%n
SlurmctldPidFile=%[4]s/run/slurmctld.pid
SlurmdPidFile=%[4]s/run/slurmd.%%n.pid
SlurmctldLogFile=%[4]s/log/slurmctld.log
SlurmdLogFile=%[4]s/log/slurmd.%%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=5,bf_interval=5,sched_min_interval=100000
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MailProg=/bin/true
SlurmctldTimeout=30
SlurmdTimeout=30
KillWait=3
InactiveLimit=0
Waittime=0
ResvOverRun=0
AccountingStorageType=accounting_storage/none
`

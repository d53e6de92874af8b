// Package slurm sells a partition of a Slurm cluster. It uses Slurm's commands, like an
// administrator, and needs no plug-in: squeue and sinfo show the state, scontrol makes
// reservations. It stores no reservations: their names carry the agent's mark and their
// ID, so that Slurm is the only memory, and a loss is noticed.
//
// Slurm has surprises, which the driver handles as follows:
//
//   - NodeCnt may succeed with fewer nodes than requested, or with nodes whose cores
//     are reserved already. The driver requests cores by CoreCnt, and whole nodes by
//     their names, and reads the grant back; if it has too few cores, exceeds the
//     partition in total, or shares a whole node, the driver deletes it at once and
//     refuses.
//   - An acknowledged reservation is lost if slurmctld dies within seconds. Every
//     Keep reads it back from Slurm, and the driver polls the state, so that the agent
//     learns of the loss and asks again. A deleted reservation may come back in the
//     same way: the agent releases it again.
//   - Jobs end up to half a minute after their time. The driver counts a running job
//     for Late longer, and cancels the jobs in a slot at the slot's end.
//   - "sbatch --test-only" predicts starts that do not happen. The driver uses the
//     running and waiting jobs and the reservations instead.
//   - A reservation with a running job cannot be deleted. The driver cancels the job
//     first, and retries the deletion until it succeeds.
//   - A cut-off output must not look like lost reservations: the driver accepts only
//     complete lists.
//
// Where the agent's account may not reserve, a job that waits for the slot's start
// holds it (HoldJob). This is weaker, since Slurm guarantees nothing then. Programs run
// inside that job, as its account (hold.sh).
package slurm

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
)

// Hold is how a slot is held.
type Hold string

// The ways to hold a slot.
const (
	HoldReservation Hold = "reservation" // by scontrol; needs an operator's rights
	HoldJob         Hold = "job"         // by a placeholder job; needs no rights
)

// Config describes the partition that an agent sells.
type Config struct {
	Agent     protocol.AgentID
	Partition string
	Users     []string // accounts that may use reservations; empty: the agent's
	Hold      Hold     // empty: HoldReservation
	Jobs      string   // directory of the jobs' files, shared with the nodes; empty: placeholders run no programs
	Dir       string   // directory for the records of jobs in slots; empty: they are in memory only
	Conf      string   // path of slurm.conf; empty: SLURM_CONF, or Slurm's own default
	Bin       string   // directory of Slurm's commands; empty: search PATH
	Prefix    []string // before every command, such as sudo -n -u slurm
	Limit     time.Duration
	Poll      time.Duration // pause between two polls while the state changes
	PollMost  time.Duration // pause after a long time without changes
	Now       func() time.Time
	Slog      *slog.Logger
}

// Bounds and times.
const (
	DefaultLimit    = 20 * time.Second // for one command
	DefaultPoll     = 2 * time.Second
	DefaultPollMost = 30 * time.Second
	// Late is how long after its time limit a job may still have its cores: Slurm checks
	// limits every 30 s.
	Late = 30 * time.Second
	// startGrace is how long after its start, or after its submission, a placeholder may
	// still wait.
	startGrace = time.Minute
	// maxOutput bounds the output of a command, in bytes: 36,000 jobs of 22.05, 12,000 of 24.11.
	maxOutput = 128 << 20
)

// maxWord bounds the name of a partition or an account, in bytes.
const maxWord = 64

// named reports whether a word can name a partition or an account: letters, digits, and
// after the first also '_', '.' and '-'.
func named(s string) bool {
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '_' && c != '.' && c != '-') {
			return false
		}
	}
	return s != "" && len(s) <= maxWord
}

// filled adds the defaults. Errors name the field.
func (c Config) filled() (Config, error) {
	if !named(c.Partition) {
		return c, fmt.Errorf("slurm: partition %q: want letters, digits, '_', '.' and '-', at most 64", c.Partition)
	}
	if len(c.Users) == 0 {
		u, err := user.Current()
		if err != nil {
			return c, fmt.Errorf("slurm: users: empty, and the agent's own account has no name: %w", err)
		}
		c.Users = []string{u.Username}
	}
	for _, u := range c.Users {
		if !named(u) {
			return c, fmt.Errorf("slurm: users: %q is not an account name", u)
		}
	}
	c.Hold = cmp.Or(c.Hold, HoldReservation)
	if c.Hold != HoldReservation && c.Hold != HoldJob {
		return c, fmt.Errorf("slurm: hold %q: want %s or %s", c.Hold, HoldReservation, HoldJob)
	}
	c.Limit = cmp.Or(max(c.Limit, 0), DefaultLimit)
	c.Poll = cmp.Or(max(c.Poll, 0), DefaultPoll)
	c.PollMost = max(cmp.Or(max(c.PollMost, 0), DefaultPollMost), c.Poll)
	return c, nil
}

// Validate checks the configuration without asking Slurm.
func (c Config) Validate() error {
	_, err := c.filled()
	return err
}

type cluster struct {
	bin string
	p   queue.Program
}

// newCluster gives the commands a fixed environment: times are in UTC, and no variable
// changes their output.
func newCluster(c Config) cluster {
	path := os.Getenv("PATH")
	if c.Bin != "" { // last: it may contain wrappers with the commands' names
		path += ":" + c.Bin
	}
	env := []string{"PATH=" + path, "TZ=UTC", "LC_ALL=C", "SLURM_TIME_FORMAT=standard"}
	if conf := cmp.Or(c.Conf, os.Getenv("SLURM_CONF")); conf != "" {
		env = append(env, "SLURM_CONF="+conf)
	}
	return cluster{bin: c.Bin, p: queue.Program{Prefix: slices.Clone(c.Prefix), Env: env, Limit: c.Limit, Most: maxOutput}}
}

func (c cluster) run(name string, args ...string) ([]byte, error) { return c.feed(nil, name, args...) }

func (c cluster) feed(input []byte, name string, args ...string) ([]byte, error) {
	return c.p.Run(input, c.path(name), args...)
}

func (c cluster) path(name string) string {
	if c.bin != "" {
		return filepath.Join(c.bin, name)
	}
	return name
}

// list runs a command and reads its JSON. Slurm 22.05 reports that its controller is away
// with exit code 0 and "Unspecified error" in the JSON; the reason is on stderr.
func list[A any](c cluster, read func([]byte) (A, error), name string, args ...string) (all A, err error) {
	b, stderr, err := c.p.Listen(nil, c.path(name), args...)
	if err != nil {
		return all, err
	}
	all, err = read(b)
	if errors.Is(err, errReported) && stderr != "" {
		err = fmt.Errorf("%s: %s", name, stderr)
	} else if errors.Is(err, errReported) {
		err = fmt.Errorf("slurmctld does not answer: %w", err)
	}
	return all, err
}

func (c cluster) nodes(partition string) ([]node, error) {
	all, err := list(c, func(b []byte) ([]node, error) { return readNodes("sinfo", b, partition) }, "sinfo", "--json")
	if err != errAggregated { //nolint:errorlint // never wrapped
		return all, err
	}
	return list(c, func(b []byte) ([]node, error) { return readNodes("scontrol show nodes", b, partition) }, "scontrol", "-a", "show", "nodes", "--json")
}

// jobs are all jobs that Slurm knows: newer versions list ended and hidden ones only if asked.
func (c cluster) jobs() ([]job, error) {
	return list(c, readJobs, "squeue", "--json", "--all", "--states=all")
}

func (c cluster) reservations() ([]reservation, error) {
	b, err := c.run("scontrol", "-o", "show", "reservation")
	if err != nil {
		return nil, err
	}
	return readReservations(b)
}

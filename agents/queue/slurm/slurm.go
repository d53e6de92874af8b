// Package slurm sells a partition of a Slurm cluster. It drives Slurm by its
// commands, as an administrator would by hand, and needs no plug-in: squeue and
// sinfo tell the state, scontrol makes reservations. Nothing is kept here: the
// names of the reservations carry the agent's mark and their ID, so that Slurm is
// the only memory, and what it has lost is seen.
//
// What Slurm does otherwise than one would expect, and what is done about it:
//
//   - NodeCnt grants fewer nodes than asked, or nodes whose cores are reserved
//     already, and calls it success. Reservations are asked for by CoreCnt, and
//     what was granted is read back; if it is less, or more than the partition has
//     in all, it is given back at once and refused.
//   - An acknowledged reservation is lost if slurmctld dies within seconds. Every
//     Keep reads it back from Slurm, and the state is looked at again and again,
//     so the agent hears of the loss and asks for it again. A deleted one may come
//     back in the same way: the agent releases it again.
//   - Jobs end up to half a minute after their time. A running job counts as
//     running for Late longer, and the jobs in a slot are cancelled by the driver
//     at the slot's end.
//   - "sbatch --test-only" promises starts that are not kept. It is never asked:
//     the state is what runs, waits and is reserved.
//   - A reservation in which a job runs cannot be deleted. The job is cancelled
//     first, and the deletion tried until it is done.
//   - An output that is cut off must not look like reservations that are lost: a
//     list is read as a whole or not at all.
//
// Where the agent's account may not reserve, a job that waits for the slot's
// start holds it (HoldJob): weaker, since Slurm then promises nothing. Programs run
// inside that job then, as its account (hold.sh).
package slurm

import (
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
	HoldReservation Hold = "reservation" // by scontrol; takes an operator's rights
	HoldJob         Hold = "job"         // by a placeholder job; anybody may
)

// Config is the partition that an agent sells.
type Config struct {
	Agent     protocol.AgentID
	Partition string
	Users     []string // who may run in what is reserved; none: the account of the agent
	Hold      Hold     // empty: HoldReservation
	Jobs      string   // directory of the jobs' files, which the nodes see; empty: placeholders run no programs
	Dir       string   // the agent's, which remembers what ran in slots; empty: it is in memory only
	Conf      string   // path of slurm.conf; empty: SLURM_CONF, or Slurm's own default
	Bin       string   // directory of Slurm's commands; empty: as PATH says
	Prefix    []string // before every command, such as sudo -n -u slurm
	Limit     time.Duration
	Poll      time.Duration // between two looks at the cluster while it changes
	PollMost  time.Duration // and after a long time without any change
	Now       func() time.Time
	Slog      *slog.Logger
}

// Bounds and times.
const (
	DefaultLimit    = 20 * time.Second // for one command
	DefaultPoll     = 2 * time.Second
	DefaultPollMost = 30 * time.Second
	// Late is how long after its time a job may still have its cores (Slurm looks
	// at limits every 30 s).
	Late = 30 * time.Second
	// startGrace is how long after its start, or after it was submitted, a placeholder
	// may still wait.
	startGrace = time.Minute
	// maxOutput bounds what a command prints, in bytes: about 36,000 jobs of 22.05.
	maxOutput = 128 << 20
)

// maxWord bounds the name of a partition or of an account, in bytes.
const maxWord = 64

// named reports whether a word can be a partition's or an account's name: letters,
// digits, and after the first also '_', '.' and '-'.
func named(s string) bool {
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '_' && c != '.' && c != '-') {
			return false
		}
	}
	return s != "" && len(s) <= maxWord
}

// filled is the configuration with its defaults. Errors name the field.
func (c Config) filled() (Config, error) {
	if !named(c.Partition) {
		return c, fmt.Errorf("slurm: partition %q: want letters, digits, '_', '.' and '-', at most 64", c.Partition)
	}
	if len(c.Users) == 0 {
		u, err := user.Current()
		if err != nil {
			return c, fmt.Errorf("slurm: users: none, and the agent's own account has no name: %w", err)
		}
		c.Users = []string{u.Username}
	}
	for _, u := range c.Users {
		if !named(u) {
			return c, fmt.Errorf("slurm: users: %q is no name of an account", u)
		}
	}
	if c.Hold == "" {
		c.Hold = HoldReservation
	}
	if c.Hold != HoldReservation && c.Hold != HoldJob {
		return c, fmt.Errorf("slurm: hold %q: want %s or %s", c.Hold, HoldReservation, HoldJob)
	}
	c.Limit = orElse(c.Limit, DefaultLimit)
	c.Poll = orElse(c.Poll, DefaultPoll)
	c.PollMost = max(orElse(c.PollMost, DefaultPollMost), c.Poll)
	return c, nil
}

func orElse(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}

// cluster is Slurm's commands.
type cluster struct {
	bin string
	p   queue.Program
}

// newCluster gives the commands an environment that nothing else changes: times
// are UTC, and no variable alters what they print.
func newCluster(c Config) cluster {
	path := os.Getenv("PATH")
	if c.Bin != "" { // last: what is there may be a wrapper of the command of the same name
		path += ":" + c.Bin
	}
	env := []string{"PATH=" + path, "TZ=UTC", "LC_ALL=C", "SLURM_TIME_FORMAT=standard"}
	if conf := orString(c.Conf, os.Getenv("SLURM_CONF")); conf != "" {
		env = append(env, "SLURM_CONF="+conf)
	}
	return cluster{bin: c.Bin, p: queue.Program{Prefix: slices.Clone(c.Prefix), Env: env, Limit: c.Limit, Most: maxOutput}}
}

func orString(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (c cluster) run(name string, args ...string) ([]byte, error) { return c.feed(nil, name, args...) }

func (c cluster) feed(input []byte, name string, args ...string) ([]byte, error) {
	if c.bin != "" {
		name = filepath.Join(c.bin, name)
	}
	return c.p.Run(input, name, args...)
}

// nodes are the nodes of a partition.
func (c cluster) nodes(partition string) ([]node, error) {
	b, err := c.run("sinfo", "--json")
	if err != nil {
		return nil, err
	}
	list, err := readNodes("sinfo", b, partition)
	if err != errAggregated { //nolint:errorlint // never wrapped
		return list, err
	}
	if b, err = c.run("scontrol", "show", "nodes", "--json"); err != nil {
		return nil, err
	}
	return readNodes("scontrol show nodes", b, partition)
}

func (c cluster) jobs() ([]job, error) {
	b, err := c.run("squeue", "--json")
	if err != nil {
		return nil, err
	}
	return readJobs(b)
}

func (c cluster) reservations() ([]reservation, error) {
	b, err := c.run("scontrol", "-o", "show", "reservation")
	if err != nil {
		return nil, err
	}
	return readReservations(b)
}

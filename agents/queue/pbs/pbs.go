// Package pbs sells the nodes of an OpenPBS server, by its commands: pbsnodes and
// qstat show the state, pbs_rstat lists the reservations, pbs_rsub and pbs_rdel make and
// delete them. OpenPBS lets ordinary accounts reserve.
//
// The driver asks for reservations with "-I -10": the server deletes a reservation that its
// scheduler has not confirmed within ten seconds, so that a request whose answer is lost leaves
// nothing behind. Only the list of pbs_rstat counts, not the output of pbs_rsub. OpenPBS allows two
// reservations of one name, so the driver reads the list before each request.
//
// The driver was tested with stand-ins for the commands that follow OpenPBS's
// documentation and sources, but not with a server.
package pbs

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ramp/agents/queue"
	"ramp/agents/queue/script"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Config describes the server whose nodes an agent sells.
type Config struct {
	Agent  protocol.AgentID
	Users  []string // accounts that may use reservations, besides the agent's own
	Conf   string   // path of pbs.conf; empty: PBS_CONF_FILE, or PBS's own default
	Bin    string   // directory of PBS's commands; empty: search PATH
	Prefix []string // before every command, such as sudo -n -u pbs
	Limit  time.Duration
	Poll   time.Duration // pause between two polls while the state changes
	Now    func() time.Time
	Slog   *slog.Logger
}

// Bounds and times.
const (
	DefaultLimit    = 30 * time.Second // for one command; longer than a confirmation may take
	DefaultPoll     = 2 * time.Second
	DefaultPollMost = 30 * time.Second
	// Late is how long after its time a job may still have its cores.
	Late = 30 * time.Second
	// confirm is how long pbs_rsub waits for the scheduler, in seconds.
	confirm   = 10
	maxOutput = 128 << 20 // bytes that a command prints
	maxName   = 230       // bytes of a reservation's name
	maxWord   = 64        // bytes of an account's name
)

// Open makes a driver without asking the server. Errors: a wrong Config.
func Open(cfg Config) (*queue.Loop, error) {
	b, err := open(cfg)
	if err != nil {
		return nil, err
	}
	return queue.NewLoop(cfg.Agent, b, cfg.Now, cfg.Slog), nil
}

// Cores returns the number of usable cores. Errors: PBS cannot be reached.
func Cores(cfg Config) (int, error) {
	b, err := open(cfg)
	if err != nil {
		return 0, err
	}
	q, err := b.read(cfg.Now())
	return q.Capacity, err
}

// Validate checks the configuration without asking PBS.
func (c Config) Validate() error {
	_, err := open(c)
	return err
}

func open(cfg Config) (*batch, error) {
	for _, u := range cfg.Users {
		if u == "" || len(u) > maxWord || strings.Trim(u, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-@") != "" || u[0] == '-' {
			return nil, fmt.Errorf("pbs: users: %q is not an account name", u)
		}
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "TZ=UTC", "LC_ALL=C"}
	cfg.Conf = cmp.Or(cfg.Conf, os.Getenv("PBS_CONF_FILE"))
	if cfg.Conf != "" {
		env = append(env, "PBS_CONF_FILE="+cfg.Conf)
	}
	b := &batch{cfg: cfg, mark: queue.MarkOf(cfg.Agent), jobs: script.NewWatch("PBS", jobLeast, jobMost)}
	b.Polled = queue.Polled{Read: b.read, Pace: queue.Pace{Least: cmp.Or(max(cfg.Poll, 0), DefaultPoll), Most: DefaultPollMost}}
	b.program = queue.Program{Prefix: cfg.Prefix, Env: env, Limit: cmp.Or(max(cfg.Limit, 0), DefaultLimit), Most: maxOutput}
	return b, nil
}

// batch is a server as the Loop drives it.
type batch struct {
	queue.Polled
	cfg     Config
	program queue.Program
	mark    queue.Mark
	jobs    *script.Watch
}

func (b *batch) run(name string, args ...string) ([]byte, error) {
	if b.cfg.Bin != "" {
		name = filepath.Join(b.cfg.Bin, name)
	}
	return b.program.Run(nil, name, args...)
}

func (b *batch) reservations() ([]reservation, error) {
	out, err := b.run("pbs_rstat", "-F")
	if err != nil {
		return nil, err
	}
	return readReservations(out)
}

// mine returns the reservations of a name: more than one if an answer was lost.
func (b *batch) mine(id string) ([]reservation, error) {
	list, err := b.reservations()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(r reservation) bool { return r.name != b.mark.Name(id) }), nil
}

// Reserve makes a reservation and reads it back.
func (b *batch) Reserve(now time.Time, id string, slot protocol.Slot) (protocol.Slot, string, *protocol.Reason) {
	slot = queue.Outward(slot)
	if len(b.mark.Name(id)) > maxName {
		return protocol.Slot{}, "", &protocol.Reason{Code: protocol.CodeLimit, Note: fmt.Sprintf("the name is longer than %d bytes", maxName)}
	}
	got, name, why := b.Find(now, id)
	switch {
	case why == nil && queue.Equal(got, slot):
		return got, name, nil
	case why == nil:
		return protocol.Slot{}, "", &protocol.Reason{Code: protocol.CodeMismatch, Note: "the reservation already exists, with another slot"}
	case why.Code != protocol.CodeUnknown:
		return protocol.Slot{}, "", why
	}
	b.Changed(now)
	if why := b.submit(id, slot); why != nil {
		return protocol.Slot{}, "", why
	}
	got, name, why = b.Find(now, id)
	if why == nil && queue.Equal(got, slot) {
		return got, name, nil
	}
	return protocol.Slot{}, "", b.giveBack(now, id, slot)
}

// submit asks for a reservation of single cores on any nodes.
func (b *batch) submit(id string, slot protocol.Slot) *protocol.Reason {
	const stamp = "200601021504.05"
	args := []string{"-N", b.mark.Name(id), "-R", slot.Start.Format(stamp), "-E", slot.End.Format(stamp),
		"-l", fmt.Sprintf("select=%d:ncpus=1", slot.Cores), "-I", fmt.Sprint(-confirm)}
	if len(b.cfg.Users) > 0 {
		args = append(args, "-U", strings.Join(b.cfg.Users, ","))
	}
	if _, err := b.run("pbs_rsub", args...); err != nil {
		return queue.Unavailable(err)
	}
	return nil
}

// giveBack deletes a reservation that was not confirmed or differs from the request. It
// returns how many cores are free instead.
func (b *batch) giveBack(now time.Time, id string, slot protocol.Slot) *protocol.Reason {
	if why := b.Release(now, id); why != nil {
		return why
	}
	q, err := b.Look(now)
	if err != nil {
		return queue.Unavailable(err)
	}
	if slot.Cores > q.Capacity {
		return &protocol.Reason{Code: protocol.CodeSize, Note: fmt.Sprintf("%d cores wanted, the server has %d", slot.Cores, q.Capacity)}
	}
	free := min(free(q, slot), slot.Cores-1)
	return &protocol.Reason{Code: protocol.CodeBusy, Free: free, Note: fmt.Sprintf("not confirmed: %d cores wanted, %d free", slot.Cores, free)}
}

// free is the number of cores that no running job or reservation occupies over a slot.
func free(q message.QueueChanged, slot protocol.Slot) int {
	var uses []protocol.Slot
	for _, r := range q.Reservations {
		uses = append(uses, r.Slot)
	}
	for _, r := range q.Running {
		uses = append(uses, protocol.Slot{Start: q.At, End: r.End, Cores: r.Cores})
	}
	return max(q.Capacity-queue.Taken(uses, slot), 0)
}

// Find reads a confirmed reservation back.
func (b *batch) Find(now time.Time, id string) (protocol.Slot, string, *protocol.Reason) {
	list, err := b.mine(id)
	if err != nil {
		return protocol.Slot{}, "", queue.Unavailable(err)
	}
	for _, r := range list {
		if r.confirmed() && r.slot.End.After(now) {
			return r.slot, r.id, nil
		}
	}
	return protocol.Slot{}, "", &protocol.Reason{Code: protocol.CodeUnknown, Note: "no such reservation"}
}

// Release deletes a reservation; the server ends the jobs in it.
func (b *batch) Release(now time.Time, id string) *protocol.Reason {
	b.Changed(now)
	list, err := b.mine(id)
	if err != nil {
		return queue.Unavailable(err)
	}
	for _, r := range list {
		if _, err := b.run("pbs_rdel", r.id); err != nil && !strings.Contains(err.Error(), "Unknown Reservation") {
			return queue.Unavailable(err)
		}
	}
	return nil
}

// read reads the nodes and jobs, and then the reservations.
func (b *batch) read(now time.Time) (message.QueueChanged, error) {
	q := message.QueueChanged{At: now}
	out, err := b.run("pbsnodes", "-a", "-F", "json")
	if err == nil {
		q.Capacity, err = readCores(out)
	}
	var jobs []job
	if err == nil {
		if out, err = b.run("qstat", "-t", "-f", "-F", "json"); err == nil {
			jobs, err = readJobs(out)
		}
	}
	var list []reservation
	if err == nil {
		list, err = b.reservations()
	}
	if err != nil {
		return q, err
	}
	b.hold(&q, list)
	take(&q, jobs, list)
	return q, nil
}

// hold lists the confirmed reservations that have not ended.
func (b *batch) hold(q *message.QueueChanged, list []reservation) {
	for _, r := range list {
		if !r.confirmed() || !r.slot.End.After(q.At) || r.slot.Cores == 0 {
			continue
		}
		id, mine := b.mark.ID(r.name)
		if !mine {
			id = r.id
		}
		q.Reservations = append(q.Reservations, message.QueueReservation{ID: id, Slot: r.slot, Mine: mine})
	}
}

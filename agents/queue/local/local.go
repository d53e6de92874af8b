// Package local is a batch system for this machine's own cores. A sold slot is a claim that
// everybody who sells cores of this machine must respect: one file in a shared directory has the
// claims of all agents, and changes only under its lock. So two agents never sell the same cores,
// and a claim survives restarts of the agent and of the machine.
//
// A job is a process in its own control group, with a keeper that outlives the agent
// (Keep). It ends with its slot, with all processes that it has started.
//
// The package does not know about processes outside of slots: a machine that sells its
// cores should run nothing else, or be configured with fewer cores.
package local

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Config is the part of this machine that an agent sells.
type Config struct {
	Agent protocol.AgentID
	Dir   string // shared by all agents that sell cores of this machine
	Cores int    // limit for the claims of all agents; 0: all of the machine's
	// Keeper is the program that runs a job, with its first arguments; the job's
	// directory is the last one, see Keep. Empty: the site runs no jobs.
	Keeper []string
	// Contain says how the jobs are contained.
	Contain Containment
	Now     func() time.Time
	Slog    *slog.Logger
}

const (
	claimsFile = "claims.json"
	lockFile   = "claims.lock"
	// MaxClaims bounds the claims on one machine; more are refused with limit.
	MaxClaims = 1 << 14
	// pollPeriod is how often to read the claims of other agents.
	pollPeriod = 2 * time.Second
	// keepTime is how long a claim stays that is over, since the clock may be ahead; mostOver is how
	// many such claims stay, the last to end.
	keepTime = 24 * time.Hour
	mostOver = 512
	// lateTime is how long after its slot a job may take to end.
	lateTime = 10 * time.Second
)

type claim struct {
	ID    string           `json:"id"`
	Agent protocol.AgentID `json:"agent"`
	Slot  protocol.Slot    `json:"slot"`
	Dir   string           `json:"dir,omitempty"` // of its last job; those of a federation go on in the next claim
}

// late reports whether a claim's job runs though its slot is over: the clock is ahead. Until when it
// has its cores is not known; it is no longer than its whole slot.
func (x claim) late(now time.Time) (until time.Time, ok bool) {
	if x.Dir == "" || x.Slot.End.Add(lateTime).After(now) {
		return time.Time{}, false
	}
	alive, err := keeperLives(message.Job{Dir: x.Dir})
	return now.Add(x.Slot.Wall()), alive && err == nil
}

// cores are the cores of this machine, as one agent sells them.
type cores struct {
	agent    protocol.AgentID
	dir      string
	capacity int
	keeper   []string
	plan     plan
	refused  string        // why no jobs run
	seen     []claim       // at the last look
	ended    chan struct{} // a keeper that this process started has ended
}

// Open makes a driver of this machine's cores.
func Open(cfg Config) (*queue.Loop, error) {
	if err := CheckCores(cfg.Cores); err != nil {
		return nil, fmt.Errorf("local: %w", err)
	}
	c := &cores{agent: cfg.Agent, dir: cfg.Dir, capacity: runtime.NumCPU(), keeper: cfg.Keeper, ended: make(chan struct{}, 1)}
	if cfg.Cores > 0 {
		c.capacity = cfg.Cores
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("local: claims: %w", err)
	}
	if err := c.locked(func(*[]claim) (bool, error) { return false, nil }); err != nil {
		return nil, err
	}
	if len(cfg.Keeper) > 0 {
		c.plan, c.refused = cfg.Contain.plan(filepath.Join(cfg.Dir, "uids"))
	}
	return queue.NewLoop(cfg.Agent, c, cfg.Now, cfg.Slog), nil
}

// CheckCores checks that this machine has so many cores to sell; 0 means all.
func CheckCores(n int) error {
	if have := runtime.NumCPU(); n < 0 || n > have {
		return fmt.Errorf("%d cores: want 1..%d, the cores of this machine, or 0 for all", n, have)
	}
	return nil
}

// locked calls f with the claims while no other agent can change them, and
// saves them durably if f has changed them.
func (c *cores) locked(f func(claims *[]claim) (changed bool, err error)) (err error) {
	lock, err := os.OpenFile(filepath.Join(c.dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("local: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }() // closing unlocks
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("local: lock %s: %w", lock.Name(), err)
	}
	path := filepath.Join(c.dir, claimsFile)
	var claims []claim
	if err := queue.ReadFile(path, &claims); err != nil {
		return err
	}
	changed, err := f(&claims)
	if err != nil {
		return err
	}
	if changed {
		if err := queue.WriteFile(path, claims); err != nil {
			return err
		}
	}
	c.seen = claims
	return nil
}

// Reserve claims cores over a slot, if the claims of all agents leave them.
func (c *cores) Reserve(now time.Time, id string, slot protocol.Slot) (protocol.Slot, string, *protocol.Reason) {
	var why *protocol.Reason
	err := c.locked(func(claims *[]claim) (bool, error) {
		*claims = recent(now, *claims)
		if i := c.index(*claims, id); i >= 0 {
			if !queue.Equal((*claims)[i].Slot, slot) {
				why = &protocol.Reason{Code: protocol.CodeMismatch, Note: "the reservation already exists, with another slot"}
			}
			return false, nil
		}
		if why = c.refusal(now, *claims, slot); why != nil {
			return false, nil
		}
		*claims = append(*claims, claim{ID: id, Agent: c.agent, Slot: slot})
		return true, nil
	})
	if err != nil {
		why = &protocol.Reason{Code: protocol.CodeUnavailable, Note: err.Error()}
	}
	return slot, id, why
}

// Whole: the machine is one node, which can be claimed as a whole.
func (c *cores) Whole() bool { return true }

// recent drops claims that are over, but for those of late jobs, and the last ones.
func recent(now time.Time, claims []claim) []claim {
	var ends []time.Time
	for _, x := range claims {
		if !x.Slot.End.After(now) {
			ends = append(ends, x.Slot.End)
		}
	}
	slices.SortFunc(ends, time.Time.Compare)
	last := now.Add(-keepTime)
	if n := len(ends) - mostOver; n > 0 {
		last = protocol.Later(last, ends[n-1])
	}
	return slices.DeleteFunc(claims, func(x claim) bool {
		_, late := x.late(now)
		return !late && !x.Slot.End.After(last)
	})
}

// refusal says why a slot does not fit beside the claims; nil if it does.
func (c *cores) refusal(now time.Time, claims []claim, slot protocol.Slot) *protocol.Reason {
	free := c.capacity - queue.Taken(slots(now, claims), slot)
	switch {
	case slot.Cores > c.capacity:
		return &protocol.Reason{Code: protocol.CodeSize, Note: fmt.Sprintf("%d cores wanted, the machine has %d", slot.Cores, c.capacity)}
	case slot.Nodes > 1 || slot.Nodes == 1 && slot.Cores != c.capacity:
		return &protocol.Reason{Code: protocol.CodeSize, Note: fmt.Sprintf("%d nodes of %d cores wanted; this machine is one node of %d cores", slot.Nodes, slot.Cores/slot.Nodes, c.capacity)}
	case len(claims) >= MaxClaims:
		return &protocol.Reason{Code: protocol.CodeLimit, Note: fmt.Sprintf("the machine has %d claims, at most %d are allowed", len(claims), MaxClaims)}
	case slot.Cores > free:
		return &protocol.Reason{Code: protocol.CodeBusy, Free: max(free, 0), Note: fmt.Sprintf("%d cores wanted, %d free", slot.Cores, free)}
	}
	return nil
}

func (c *cores) index(claims []claim, id string) int {
	return slices.IndexFunc(claims, func(x claim) bool { return x.ID == id && x.Agent == c.agent })
}

// slots are the times of claims; that of a late job begins now.
func slots(now time.Time, claims []claim) []protocol.Slot {
	list := make([]protocol.Slot, len(claims))
	for i, x := range claims {
		list[i] = x.Slot
		if until, ok := x.late(now); ok {
			list[i].Start, list[i].End = now, until
		}
	}
	return list
}

func (c *cores) Find(now time.Time, id string) (protocol.Slot, string, *protocol.Reason) {
	if err := c.look(); err != nil {
		return protocol.Slot{}, "", &protocol.Reason{Code: protocol.CodeUnavailable, Note: err.Error()}
	}
	i := c.index(c.seen, id)
	if i < 0 || !c.seen[i].Slot.End.After(now) {
		return protocol.Slot{}, "", &protocol.Reason{Code: protocol.CodeUnknown, Note: "no such claim"}
	}
	return c.seen[i].Slot, id, nil
}

func (c *cores) Release(_ time.Time, id string) *protocol.Reason {
	err := c.locked(func(claims *[]claim) (bool, error) {
		i := c.index(*claims, id)
		if i >= 0 {
			*claims = slices.Delete(*claims, i, i+1)
		}
		return i >= 0, nil
	})
	if err != nil {
		return &protocol.Reason{Code: protocol.CodeUnavailable, Unit: protocol.AllUnits, Note: err.Error()}
	}
	return nil
}

func (c *cores) look() error { return c.locked(func(*[]claim) (bool, error) { return false, nil }) }

// State lists every claim on the machine; those of other agents are not Mine. Late jobs run.
func (c *cores) State(now time.Time) (message.QueueChanged, error) {
	if err := c.look(); err != nil {
		return message.QueueChanged{}, err
	}
	q := message.QueueChanged{At: now, Capacity: c.capacity, NodeCores: c.capacity}
	for _, x := range c.seen {
		if x.Slot.End.After(now) {
			q.Reservations = append(q.Reservations, message.QueueReservation{ID: x.ID, Slot: x.Slot, Mine: x.Agent == c.agent})
		} else if until, ok := x.late(now); ok {
			q.Running = append(q.Running, message.RunningJob{Cores: x.Slot.Cores, End: until})
		}
	}
	q.Whole = c.whole(now)
	return q, nil
}

// whole is when the machine, a single node, is free.
func (c *cores) whole(now time.Time) []protocol.Span {
	machine := []string{"machine"}
	uses := make([]queue.Use, len(c.seen))
	for i, slot := range slots(now, c.seen) {
		uses[i] = queue.Use{Start: slot.Start, End: slot.End, Nodes: machine}
	}
	return queue.Whole(now, machine, uses)
}

// Advance looks for new and released claims of other agents.
func (c *cores) Advance(now time.Time) (changed bool, next time.Time) {
	before := c.seen
	if err := c.look(); err != nil {
		return false, now.Add(pollPeriod) // the next request reports the error
	}
	return !slices.EqualFunc(before, c.seen, func(a, b claim) bool { return a.ID == b.ID && a.Agent == b.Agent }), now.Add(pollPeriod)
}

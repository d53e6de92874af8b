package real

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"ramp/agents/sim/wan"
	"ramp/protocol"
)

// Bounds of a soak.
const (
	MaxResources = 100
	MaxUsers     = 50
	MaxLength    = 7 * 24 * time.Hour
	maxDir       = 60 // bytes of its path, which limits the paths of control sockets
)

// Times of a soak.
const (
	// HealTime is the bound within which everything must be decided after the last fault: an
	// auction of five rounds at their limit (15 s each), two votes, a hold, two of the longest
	// pauses of a party in doubt, and half a minute for daemons to start and meet again.
	HealTime = 5*protocol.DefaultRoundLimit + 2*protocol.VoteTimeout + hold + 2*protocol.RetryMost + 30*time.Second

	hold      = 20 * time.Second
	settle    = 8 * time.Second
	grace     = 10 * time.Second
	heartbeat = 2 * time.Second
	leaveTime = 30 * time.Second // for a process to end after SIGTERM
	meetTime  = 2 * time.Minute  // for all to meet at the start, and to sell again at the end
)

// The WAN: one-way delays per pair, and the loss of every link.
const (
	leastDelay = 20 * time.Millisecond
	mostDelay  = 75 * time.Millisecond
	jitter     = 5 * time.Millisecond
	loss       = 0.01
)

// The market.
const (
	bankName = "bank"
	currency = "CPU"
	cores    = 64                               // of every resource
	credit   = 10_000_000_000 * protocol.Credit // of every user: more than it can spend
	lifetime = MaxLength + 24*time.Hour         // of the certificates
	diskSize = 160 << 20                        // bytes of an agent's disk; a bank's ledger sets 64 MiB aside
	mostDown = 20 * time.Second                 // from a kill to the restart
	mostStop = 15 * time.Second                 // of SIGSTOP
	mostCut  = 45 * time.Second                 // of a cut link
	mostAway = 20 * time.Second                 // of an agent that is cut off from all others
	mostFull = 25 * time.Second                 // of a full disk
)

// Config is one soak.
type Config struct {
	Program   string        // path of the ramp program
	Dir       string        // for all files; it must be empty
	Resources int           // 1..MaxResources
	Users     int           // 1..MaxUsers
	Length    time.Duration // of the period with faults, at most MaxLength
	Every     time.Duration // mean time between faults
	Seed      uint64
	Tell      func(Status) // called once a second; may be nil
}

// Validate names the flag of 'ramp soak-real' that is wrong, and its limits.
func (c Config) Validate() error {
	switch {
	case c.Resources < 1 || c.Resources > MaxResources:
		return fmt.Errorf("--resources %d: want 1..%d", c.Resources, MaxResources)
	case c.Users < 1 || c.Users > MaxUsers:
		return fmt.Errorf("--users %d: want 1..%d", c.Users, MaxUsers)
	case c.Length <= 0 || c.Length > MaxLength:
		return fmt.Errorf("--minutes %g: want more than 0, at most %g", c.Length.Minutes(), MaxLength.Minutes())
	case c.Every < 10*time.Millisecond:
		return fmt.Errorf("--every %s: want 10ms or more", c.Every)
	case len(c.Dir) > maxDir:
		return fmt.Errorf("--dir %s: its path has %d bytes, want at most %d, so that paths of control sockets fit", c.Dir, len(c.Dir), maxDir)
	}
	entries, err := os.ReadDir(c.Dir)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("--dir %s is not empty", c.Dir)
	}
	return nil
}

// Available returns why no soak can run here, or nil.
func Available() error {
	if err := wan.Available(); err != nil {
		return err
	}
	if _, err := exec.LookPath(mkfs); err != nil {
		return fmt.Errorf("install %s (package e2fsprogs), which creates the agents' disks", mkfs)
	}
	if _, err := os.Stat(loopControl); err != nil {
		return errors.Join(errors.New("no loop devices"), err)
	}
	return nil
}

// Status is the progress of a soak.
type Status struct {
	Phase   string // "building", "breaking", "healing", "comparing"
	Left    time.Duration
	Ordered int // purchases that were begun
	Settled int // purchases that the buyer knows are settled
	Faults  map[Kind]int
	Broken  int // faults in progress
}

// Result is the result of a soak.
type Result struct {
	Minutes     float64      `json:"minutes"` // with faults
	Purchases   int          `json:"purchases"`
	Settled     int          `json:"settled"`
	Void        int          `json:"void"`
	Failed      int          `json:"failed"` // nothing was signed
	Faults      map[Kind]int `json:"faults"`
	Violations  []string     `json:"violations"`
	Seed        uint64       `json:"seed"`
	Resources   int          `json:"resources"`
	Users       int          `json:"users"`
	HealSeconds float64      `json:"heal_s"` // from the last fault until all was decided
	Interrupted bool         `json:"interrupted,omitempty"`
}

// names are the agents in a fixed order: the bank first.
func names(resources, users int) []string {
	list := []string{bankName}
	for i := range resources {
		list = append(list, fmt.Sprintf("site%02d", i+1))
	}
	for i := range users {
		list = append(list, fmt.Sprintf("user%02d", i+1))
	}
	return list
}

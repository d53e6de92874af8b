package sweep

import (
	"fmt"
	"slices"
	"time"
)

// State is the state of a task.
type State uint8

// A task waits until it has a site, is assigned until it is dispatched, and may wait again. Its
// outputs are fetched before it is done.
const (
	Waiting State = iota
	Assigned
	Running
	Fetching
	Done
	Failed
)

var states = []string{"waiting", "assigned", "running", "fetching", "done", "failed"}

func (s State) String() string { return states[s] }

// MarshalText writes the name of a state.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the name of a state.
func (s *State) UnmarshalText(b []byte) error {
	i := slices.Index(states, string(b))
	if i < 0 {
		return fmt.Errorf("state %q of a task", b)
	}
	*s = State(i)
	return nil
}

// End is how an attempt ended; empty: it has not.
type End string

const (
	Succeeded End = "succeeded"
	Exited    End = "exited"   // the program failed by itself
	Unproven  End = "unproven" // so it seems, where no task has succeeded: its site may be at fault
	Lost      End = "lost"     // the site failed
	Expired   End = "expired"  // its lease ended first
)

// Attempt is one launch of a task. Times are since the sweep began.
type Attempt struct {
	Lease int           `json:"lease"`
	Site  string        `json:"site"`
	Began time.Duration `json:"began"`
	Ended time.Duration `json:"ended,omitempty"`
	How   End           `json:"how,omitempty"`
	Exit  int           `json:"exit,omitempty"`
	Why   string        `json:"why,omitempty"`
}

// Task is a task and its attempts, numbered from 1.
type Task struct {
	State    State     `json:"state"`
	Attempts []Attempt `json:"attempts,omitempty"`
	Retried  int       `json:"retried,omitempty"` // attempts that do not count any more
}

func (t *Task) last() *Attempt { return &t.Attempts[len(t.Attempts)-1] }

// faults counts the failures of the program, and of sites. A program that exits at a second site,
// too, was at fault at the first.
func (t *Task) faults() (exits, lost int) {
	unproven := map[string]bool{}
	for _, a := range t.Attempts[t.Retried:] {
		switch a.How {
		case Exited:
			exits++
		case Unproven:
			unproven[a.Site] = true
			lost++
		case Lost, Expired:
			lost++
		}
	}
	if n := len(unproven); exits > 0 || n > 1 {
		exits += n
	}
	return exits, lost
}

// failedAt reports whether the program of a task has failed at a site.
func (t *Task) failedAt(site string) bool {
	return slices.ContainsFunc(t.Attempts[t.Retried:], func(a Attempt) bool {
		return a.Site == site && (a.How == Exited || a.How == Unproven)
	})
}

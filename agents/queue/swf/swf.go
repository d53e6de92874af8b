// Package swf simulates a batch system from a workload log in the Standard Workload
// Format (specs §1.3). Jobs arrive and run as the log recorded; sold slots are added,
// and played forward with the jobs.
//
// Its clock is that of the market: t = base + (now − market start). The machine lives in memory; a
// file holds its reservations and its start, so that they survive a restart of the agent.
package swf

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ramp/agents/queue"
	"ramp/agents/workload"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Config is one machine.
type Config struct {
	Agent protocol.AgentID // its owner
	Log   *workload.Log
	Base  int64     // second of the log at which the market starts
	Start time.Time // of the market; zero: when the machine was first opened
	Dir   string    // of its own, for its reservations
	Now   func() time.Time
	Slog  *slog.Logger
	Jobs  queue.Model // simulates the usage of jobs in sold slots
	Over  bool        // slots may lie over jobs
}

// fileName is the machine's file in its directory.
const fileName = "swf-reservations.json"

// saved is the file.
type saved struct {
	Start        time.Time     `json:"start"` // whole seconds
	Base         int64         `json:"base"`
	Reservations []reservation `json:"reservations"`
	// Checked is the second of the log up to which slots were checked as they began,
	// on a machine whose slots may lie over jobs.
	Checked int64 `json:"checked,omitempty"`
}

type reservation struct {
	ID   string        `json:"id"`
	Slot protocol.Slot `json:"slot"`
	Over bool          `json:"over,omitempty"` // it was reserved over jobs
}

// machine is a log under the wall clock.
type machine struct {
	path  string
	state saved
	m     *workload.Machine
	jobs  queue.Model
	over  bool
	plan  *workload.Profile // the scheduler's forecast; nil: out of date
}

// Open makes a driver of a log, with the reservations of its last run.
func Open(cfg Config) (*queue.Loop, error) {
	s := &machine{path: filepath.Join(cfg.Dir, fileName), jobs: cfg.Jobs, over: cfg.Over}
	if err := queue.ReadFile(s.path, &s.state); err != nil {
		return nil, err
	}
	if err := s.settle(cfg); err != nil {
		return nil, err
	}
	if s.over && s.state.Checked == 0 {
		s.state.Checked = s.second(cfg.Now()) // slots that began before are safe
	}
	s.m = workload.NewMachine(cfg.Log, s.state.Base)
	for _, r := range s.state.Reservations {
		if err := s.m.Restore(s.seconds(r.ID, r.Slot)); err != nil && !errors.Is(err, workload.ErrPast) {
			return nil, fmt.Errorf("%s: %w", s.path, err)
		}
	}
	return queue.NewLoop(cfg.Agent, s, cfg.Now, cfg.Slog), nil
}

// Memory is a machine without a file, for simulations. It plays the log from second base on, where
// it stands when the market starts; start has whole seconds. over is as in Config.
func Memory(r *workload.Replay, base int64, start time.Time, over bool) queue.System {
	return &machine{state: saved{Start: start.UTC(), Base: base, Checked: base}, m: r.Machine(base), over: over}
}

// keep saves the reservations, if the machine has a file.
func (s *machine) keep() error {
	if s.path == "" {
		return nil
	}
	return queue.WriteFile(s.path, s.state)
}

// settle sets the market's start: as configured, or as in the first run. Another base
// or start would move sold slots to other jobs.
func (s *machine) settle(cfg Config) error {
	start := cfg.Start
	if start.IsZero() {
		start = cfg.Now()
	}
	if s.state.Start.IsZero() {
		s.state = saved{Start: start.Truncate(time.Second).UTC(), Base: cfg.Base}
		return queue.WriteFile(s.path, s.state)
	}
	if s.state.Base != cfg.Base || !cfg.Start.IsZero() && !s.state.Start.Equal(cfg.Start.Truncate(time.Second)) {
		return fmt.Errorf("%s: the machine started at second %d of its log on %s; want the same base and start, or another directory",
			s.path, s.state.Base, s.state.Start.Format(time.RFC3339))
	}
	return nil
}

// second converts an instant to the log's clock, rounded down; after rounds up.
func (s *machine) second(t time.Time) int64 { return s.state.Base + t.Unix() - s.state.Start.Unix() }

func (s *machine) after(t time.Time) int64 { return s.second(t.Add(time.Second - 1)) }

func (s *machine) wall(second int64) time.Time {
	return time.Unix(second-s.state.Base+s.state.Start.Unix(), 0).UTC()
}

// seconds is a slot in seconds of the log, rounded outward.
func (s *machine) seconds(id string, slot protocol.Slot) workload.Reservation {
	return workload.Reservation{ID: id, Start: s.second(slot.Start), End: s.after(slot.End), Cores: slot.Cores}
}

// Advance plays the machine up to now.
func (s *machine) Advance(now time.Time) (changed bool, next time.Time) {
	changed = s.begin(s.second(now))
	if s.m.Advance(s.second(now)) {
		changed, s.plan = true, nil
	}
	if at, ok := s.m.Next(); ok {
		next = s.wall(at)
	}
	return changed, next
}

// Reserve blocks a slot, if the machine's own plan leaves the cores free.
func (s *machine) Reserve(now time.Time, id string, slot protocol.Slot) (protocol.Slot, string, *protocol.Reason) {
	s.Advance(now)
	return s.reserve(now, reservation{ID: id, Slot: slot}, s.block)
}

// reserve saves a reservation that grant allows.
func (s *machine) reserve(now time.Time, r reservation, grant func(r workload.Reservation, known bool) error) (protocol.Slot, string, *protocol.Reason) {
	i := s.index(r.ID)
	if i >= 0 && !queue.Equal(s.state.Reservations[i].Slot, r.Slot) {
		return protocol.Slot{}, "", &protocol.Reason{Code: protocol.CodeMismatch, Note: "the reservation already exists, with another slot"}
	}
	if err := grant(s.seconds(r.ID, r.Slot), i >= 0); err != nil {
		return protocol.Slot{}, "", reason(err)
	}
	if i >= 0 {
		return r.Slot, r.ID, nil
	}
	s.forget(now)
	s.state.Reservations = append(s.state.Reservations, r)
	if err := s.keep(); err != nil {
		s.state.Reservations = s.state.Reservations[:len(s.state.Reservations)-1]
		s.m.Release(r.ID)
		s.plan = nil
		return protocol.Slot{}, "", &protocol.Reason{Code: protocol.CodeUnavailable, Note: err.Error()}
	}
	return r.Slot, r.ID, nil
}

// block takes the cores out of the plan, if they are free in it. The remaining plan
// still keeps every promise, so it need not be played anew.
func (s *machine) block(r workload.Reservation, known bool) error {
	begin := max(r.Start, s.m.Now())
	if !known && r.Cores <= s.m.Capacity() && r.End > begin {
		if free := s.foresee().Free(begin, r.End); free < r.Cores {
			return busyError{max(free, 0), r.Cores}
		}
		if err := s.m.Restore(r); err != nil {
			return err
		}
		s.plan.Add(begin, r.End, -r.Cores)
		return nil
	}
	return s.m.Reserve(r) // known already, or invalid: the error says which
}

// foresee plays the queue forward, at most once per change of the machine.
func (s *machine) foresee() *workload.Profile {
	if s.plan == nil {
		s.plan = s.m.Snapshot().Project()
	}
	return s.plan
}

// busyError says how many cores are free over a whole slot.
type busyError struct{ free, wanted int }

func (e busyError) Error() string { return fmt.Sprintf("%d cores wanted, %d free", e.wanted, e.free) }

func reason(err error) *protocol.Reason {
	why := &protocol.Reason{Code: protocol.CodeMalformed, Note: err.Error()}
	var busy busyError
	switch {
	case errors.As(err, &busy):
		why.Code, why.Free = protocol.CodeBusy, busy.free
	case errors.Is(err, workload.ErrBusy):
		why.Code = protocol.CodeBusy
	case errors.Is(err, workload.ErrSize):
		why.Code = protocol.CodeSize
	case errors.Is(err, workload.ErrPast):
		why.Code = protocol.CodeWindow
	case errors.Is(err, workload.ErrFull):
		why.Code = protocol.CodeLimit
	case errors.Is(err, workload.ErrID):
		why.Code = protocol.CodeMismatch
	}
	return why
}

func (s *machine) index(id string) int {
	return slices.IndexFunc(s.state.Reservations, func(r reservation) bool { return r.ID == id })
}

func (s *machine) forget(now time.Time) {
	s.state.Reservations = slices.DeleteFunc(s.state.Reservations, func(r reservation) bool { return !r.Slot.End.After(now) })
}

func (s *machine) Find(now time.Time, id string) (protocol.Slot, string, *protocol.Reason) {
	i := s.index(id)
	if i < 0 || !s.state.Reservations[i].Slot.End.After(now) {
		return protocol.Slot{}, "", &protocol.Reason{Code: protocol.CodeUnknown, Note: "no such reservation"}
	}
	return s.state.Reservations[i].Slot, id, nil
}

func (s *machine) Release(now time.Time, id string) *protocol.Reason {
	s.Advance(now)
	i := s.index(id)
	if i < 0 {
		return nil
	}
	old := s.state.Reservations
	s.state.Reservations = slices.Concat(old[:i], old[i+1:])
	if err := s.keep(); err != nil {
		s.state.Reservations = old
		return &protocol.Reason{Code: protocol.CodeUnavailable, Unit: protocol.AllUnits, Note: err.Error()}
	}
	s.m.Release(id)
	s.plan = nil // waiting jobs may move up
	return nil
}

// Used simulates the usage of a slot's job.
func (s *machine) Used(now time.Time, id string, slot protocol.Slot) (protocol.JobStatus, protocol.Measured, *protocol.Reason) {
	return s.jobs.Status(now, id, slot), "", nil
}

// State is the forecast of the machine's scheduler, on the wall clock.
func (s *machine) State(now time.Time) (message.QueueChanged, error) {
	s.Advance(now)
	q := message.QueueChanged{At: now, Capacity: s.m.Capacity()}
	for step := range s.foresee().Steps(s.m.Now(), workload.Forever) {
		at := s.wall(step.At)
		if n := len(q.Foreseen); n > 0 {
			q.Foreseen[n-1].End = at
		}
		q.Foreseen = append(q.Foreseen, protocol.Span{Start: at, Cores: step.Free})
	}
	for _, r := range s.state.Reservations {
		if r.Slot.End.After(now) {
			q.Reservations = append(q.Reservations, message.QueueReservation{ID: r.ID, Slot: r.Slot, Mine: true})
		}
	}
	if s.over {
		s.addJobs(&q)
		return q, nil
	}
	q.Runs, q.Waits = s.m.Jobs()
	return q, nil
}

// Load reads a log from a file, which may be compressed with gzip. It accepts logs that
// workload.Examine finds usable, and returns their oddities; otherwise the error names
// the file and the first wrong line.
func Load(path string) (*workload.Log, []workload.Note, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("workload log: %w", err)
	}
	defer f.Close()
	log, report := workload.Examine(f)
	if report.Usable() {
		return log, report.Notes, nil
	}
	return nil, nil, fault(path, report)
}

// fault describes the first fault, and counts the others.
func fault(path string, r workload.Report) error {
	first, more := r.Faults[0], ""
	if n := len(r.Faults) - 1 + r.More; n > 0 {
		more = fmt.Sprintf(" (and %d more invalid lines)", n)
	}
	if first.Line == 0 {
		return fmt.Errorf("workload log %s: %s%s", path, first.What, more)
	}
	return fmt.Errorf("workload log %s: line %d: %s%s", path, first.Line, first.What, more)
}

// Told describes a log's oddities, and how the reader treats them, in one line; empty without any.
func Told(notes []workload.Note) string {
	var list []string
	for _, n := range notes {
		list = append(list, n.String())
	}
	return strings.Join(list, "; ")
}

// Package command is a batch system behind a program of the site's own. For each
// request the program is run once: it reads one JSON object from its standard
// input, writes one to its standard output, and ends. docs/DRIVERS.md has the
// forms and a whole program of 30 lines.
//
// What the program prints is checked like what comes from the network: one
// object, of known fields, in bounded size and time. Anything else counts as a
// batch system that cannot be asked.
package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"ramp/agents/queue"
	jobs "ramp/agents/queue/script"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Config is the program.
type Config struct {
	Agent    protocol.AgentID
	Program  string   // absolute path
	Args     []string // of every run
	Dir      string   // in which it runs
	Limit    time.Duration
	Poll     time.Duration // between two looks at the state while it changes
	PollMost time.Duration // and after a long time without any change
	Now      func() time.Time
	Slog     *slog.Logger
}

// Bounds and times.
const (
	DefaultLimit    = 20 * time.Second // of one request
	DefaultPoll     = 5 * time.Second
	DefaultPollMost = time.Minute
	maxAnswer       = 16 << 20 // bytes
	maxListed       = 1 << 16  // jobs or reservations of a state
)

// Open makes a driver of a program, which is not run yet. Errors: a path that is
// not absolute, or not that of a program.
func Open(cfg Config) (*queue.Loop, error) {
	s, err := open(cfg)
	if err != nil {
		return nil, err
	}
	return queue.NewLoop(cfg.Agent, s, cfg.Now, cfg.Slog), nil
}

// Cores is how many cores the program's state tells now.
func Cores(cfg Config) (int, error) {
	s, err := open(cfg)
	if err != nil {
		return 0, err
	}
	q, err := s.look(cfg.Now())
	return q.Capacity, err
}

func open(cfg Config) (*script, error) {
	if !filepath.IsAbs(cfg.Program) {
		return nil, fmt.Errorf("command: program %q: want an absolute path", cfg.Program)
	}
	info, err := os.Stat(cfg.Program)
	if err != nil {
		return nil, fmt.Errorf("command: program: %w", err)
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return nil, fmt.Errorf("command: program %s: want a file that may be executed", cfg.Program)
	}
	s := &script{cfg: cfg, jobs: jobs.NewWatch("the program", jobLeast, jobMost), pace: queue.Pace{Least: orElse(cfg.Poll, DefaultPoll), Most: orElse(cfg.PollMost, DefaultPollMost)}}
	s.program = queue.Program{
		Dir: cfg.Dir, Limit: orElse(cfg.Limit, DefaultLimit), Most: maxAnswer,
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LC_ALL=C.UTF-8", "RAMP_AGENT=" + string(cfg.Agent)},
	}
	return s, nil
}

func orElse(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}

// script is a program as the Loop drives it.
type script struct {
	cfg     Config
	program queue.Program
	pace    queue.Pace
	last    message.QueueChanged
	jobs    *jobs.Watch
	fresh   bool // last is younger than the last request that changed something
}

// request is what the program reads. Times are Unix seconds.
type request struct {
	Do   string      `json:"do"` // reserve, find, release, state, submit, signal or jobs
	Now  int64       `json:"now"`
	ID   string      `json:"id,omitempty"`
	Slot *slot       `json:"slot,omitempty"`
	Job  *submission `json:"job,omitempty"`  // to submit
	Verb string      `json:"verb,omitempty"` // of signal: suspend, resume or kill
	IDs  []string    `json:"ids,omitempty"`  // of jobs
}

type slot struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
	Cores int   `json:"cores"`
}

// answer is what the program writes.
type answer struct {
	OK   bool          `json:"ok"`
	Code protocol.Code `json:"code"` // why not
	Free int           `json:"free"` // cores over the slot, if busy
	Note string        `json:"note"` // words for people

	Slot *slot  `json:"slot"` // of reserve and find
	Name string `json:"name"` // the batch system's own, if it has one

	Capacity     int           `json:"capacity"` // of state
	Running      []running     `json:"running"`
	Queued       []queued      `json:"queued"`
	Reservations []reservation `json:"reservations"`

	Jobs []stand `json:"jobs"` // of jobs, those that it knows
}

type running struct {
	Cores int   `json:"cores"`
	End   int64 `json:"end"`
}

type queued struct {
	Cores int   `json:"cores"`
	Wall  int64 `json:"wall"` // seconds
}

type reservation struct {
	ID   string `json:"id"`
	Mine bool   `json:"mine"`
	Slot slot   `json:"slot"`
}

// ask runs the program.
func (s *script) ask(now time.Time, r request) (answer, error) {
	r.Now = now.Unix()
	in, err := json.Marshal(r)
	if err != nil {
		return answer{}, err
	}
	out, err := s.program.Run(append(in, '\n'), s.cfg.Program, s.cfg.Args...)
	if err != nil {
		return answer{}, err
	}
	a, err := read(out)
	if err != nil {
		return a, fmt.Errorf("%s: %s: %w", s.cfg.Program, r.Do, err)
	}
	return a, nil
}

// read checks an answer.
func read(out []byte) (answer, error) {
	if len(bytes.TrimSpace(out)) == 0 {
		return answer{}, errors.New("it printed nothing")
	}
	var a answer
	d := json.NewDecoder(bytes.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return answer{}, fmt.Errorf("it printed %q, which is no answer: %w", queue.OneLine(out[:min(len(out), 80)]), err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return answer{}, errors.New("it printed something after its answer")
	}
	return a, a.validate()
}

// validate holds the answer's figures to their ranges.
func (a answer) validate() error {
	switch {
	case a.OK && a.Code != "":
		return fmt.Errorf("it says ok, and code %q", a.Code)
	case !a.OK && !known(a.Code):
		return fmt.Errorf("code %.40q: want busy, size, limit, window, mismatch, unknown, forbidden, malformed or unavailable", string(a.Code))
	case a.Free < 0 || a.Capacity < 0 || a.Capacity > protocol.MaxCores:
		return fmt.Errorf("%d cores of %d free: want 0..%d", a.Free, a.Capacity, protocol.MaxCores)
	case len(a.Running) > maxListed || len(a.Queued) > maxListed || len(a.Reservations) > maxListed || len(a.Jobs) > maxListed:
		return fmt.Errorf("more than %d jobs or reservations", maxListed)
	case len(a.Name) > queue.MaxID:
		return fmt.Errorf("a name of %d bytes, at most %d", len(a.Name), queue.MaxID)
	}
	return nil
}

// known reports whether a program may give a code.
func known(c protocol.Code) bool {
	switch c {
	case protocol.CodeBusy, protocol.CodeSize, protocol.CodeLimit, protocol.CodeWindow, protocol.CodeMismatch,
		protocol.CodeUnknown, protocol.CodeForbidden, protocol.CodeMalformed, protocol.CodeUnavailable:
		return true
	}
	return false
}

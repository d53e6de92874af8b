// Package command is a driver for a program of the site's own. It runs the program once for each
// request: the program reads one JSON object from its standard input, writes one to its standard
// output, and exits. docs/DRIVERS.md has the formats and a complete program of 30 lines.
//
// The driver checks the program's output like a message from the network: one object, known fields,
// bounded size and time. Any other output means that the batch system cannot be reached.
package command

import (
	"bytes"
	"cmp"
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
)

// Config describes the program.
type Config struct {
	Agent   protocol.AgentID
	Program string   // absolute path
	Args    []string // first arguments of every run
	Dir     string   // working directory
	Limit   time.Duration
	Poll    time.Duration // pause between two polls while the state changes
	Now     func() time.Time
	Slog    *slog.Logger
}

// Bounds and times.
const (
	DefaultLimit    = 20 * time.Second // of one request
	DefaultPoll     = 5 * time.Second
	DefaultPollMost = time.Minute
	maxAnswer       = 16 << 20 // bytes
	maxListed       = 1 << 16  // jobs or reservations of a state
)

// Open makes a driver without running the program. Errors: the path is not absolute, or
// not of an executable file.
func Open(cfg Config) (*queue.Loop, error) {
	s, err := open(cfg)
	if err != nil {
		return nil, err
	}
	return queue.NewLoop(cfg.Agent, s, cfg.Now, cfg.Slog), nil
}

// Cores returns the number of cores in the program's current state.
func Cores(cfg Config) (int, error) {
	s, err := open(cfg)
	if err != nil {
		return 0, err
	}
	q, err := s.read(cfg.Now())
	return q.Capacity, err
}

// Validate checks the configuration without running the program.
func (c Config) Validate() error {
	_, err := open(c)
	return err
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
		return nil, fmt.Errorf("command: program %s: want an executable file", cfg.Program)
	}
	s := &script{cfg: cfg, jobs: jobs.NewWatch("the program", jobLeast, jobMost)}
	s.Polled = queue.Polled{Read: s.read, Pace: queue.Pace{Least: cmp.Or(max(cfg.Poll, 0), DefaultPoll), Most: DefaultPollMost}}
	s.program = queue.Program{
		Dir: cfg.Dir, Limit: cmp.Or(max(cfg.Limit, 0), DefaultLimit), Most: maxAnswer,
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LC_ALL=C.UTF-8", "RAMP_AGENT=" + string(cfg.Agent)},
	}
	return s, nil
}

// script is a program as the Loop drives it.
type script struct {
	queue.Polled
	cfg     Config
	program queue.Program
	jobs    *jobs.Watch
}

// request is the program's input. Times are Unix seconds.
type request struct {
	Do   string      `json:"do"` // reserve, find, release, state, submit, signal or jobs
	Now  int64       `json:"now"`
	ID   string      `json:"id,omitempty"`
	Slot *slot       `json:"slot,omitempty"`
	Job  *submission `json:"job,omitempty"`  // of submit
	Verb string      `json:"verb,omitempty"` // of signal: suspend, resume or kill
	IDs  []string    `json:"ids,omitempty"`  // of jobs
}

type slot struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
	Cores int   `json:"cores"`
}

// answer is the program's output.
type answer struct {
	OK   bool          `json:"ok"`
	Code protocol.Code `json:"code"` // the reason of a refusal
	Free int           `json:"free"` // cores over the slot, if busy
	Note string        `json:"note"` // words for people

	Slot *slot  `json:"slot"` // of reserve and find
	Name string `json:"name"` // the batch system's own, if it has one

	Capacity     int           `json:"capacity"` // of state
	Running      []running     `json:"running"`
	Queued       []queued      `json:"queued"`
	Reservations []reservation `json:"reservations"`

	Jobs []entry `json:"jobs"` // of jobs, without unknown ones
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
	a, err := readAnswer(out)
	if err != nil {
		return a, fmt.Errorf("%s: %s: %w", s.cfg.Program, r.Do, err)
	}
	return a, nil
}

func readAnswer(out []byte) (answer, error) {
	if len(bytes.TrimSpace(out)) == 0 {
		return answer{}, errors.New("it printed nothing")
	}
	var a answer
	d := json.NewDecoder(bytes.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return answer{}, fmt.Errorf("it printed %q, which is not an answer: %w", queue.OneLine(out[:min(len(out), 80)]), err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return answer{}, errors.New("it printed more after its answer")
	}
	return a, a.validate()
}

// validate checks the ranges of the answer's figures.
func (a answer) validate() error {
	switch {
	case a.OK && a.Code != "":
		return fmt.Errorf("the answer is ok, but has the code %q", a.Code)
	case !a.OK && !known(a.Code):
		return fmt.Errorf("code %.40q: want busy, size, limit, window, mismatch, unknown, forbidden, malformed or unavailable", string(a.Code))
	case a.Free < 0 || a.Capacity < 0 || a.Capacity > protocol.MaxCores:
		return fmt.Errorf("%d of %d cores are free: want 0..%d", a.Free, a.Capacity, protocol.MaxCores)
	case len(a.Running) > maxListed || len(a.Queued) > maxListed || len(a.Reservations) > maxListed || len(a.Jobs) > maxListed:
		return fmt.Errorf("more than %d jobs or reservations", maxListed)
	case len(a.Name) > queue.MaxID:
		return fmt.Errorf("a name of %d bytes, at most %d", len(a.Name), queue.MaxID)
	}
	return nil
}

// known reports whether a program may use a code.
func known(c protocol.Code) bool {
	switch c {
	case protocol.CodeBusy, protocol.CodeSize, protocol.CodeLimit, protocol.CodeWindow, protocol.CodeMismatch,
		protocol.CodeUnknown, protocol.CodeForbidden, protocol.CodeMalformed, protocol.CodeUnavailable:
		return true
	}
	return false
}

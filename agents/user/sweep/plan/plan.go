// Package plan reads the plan of a sweep: one program and the values of its parameters, in YAML
// or as a Slurm job array.
//
//	Parse --> Plan --Task(i)--> the words of one task
//
// All that could change afterwards is fixed when a plan is read: ranges, random draws and the rows
// of files become values. So a stored plan has the same tasks on every machine and after every
// restart. The package opens no file and reads no clock; its caller does both.
package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"ramp/agents/user/sweep"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
	"ramp/rfql/jobfile"
)

// Bounds of a plan.
const (
	MaxParameters = 16
	MaxTasks      = 10_000
	maxRetry      = 100
	maxPatterns   = 256 // of inputs, and of outputs
)

// Plan is a sweep as its owner describes it. The strings of a task are templates: ${NAME} is the
// value of a parameter, ${task} the number of the task, and $$ a '$'.
type Plan struct {
	Name string `json:"name"`
	Axes []Axis `json:"axes"`

	Cores      int              `json:"cores"`
	Wall       time.Duration    `json:"wall"`                 // the most for one task
	App        string           `json:"app,omitempty"`        // an application of the site; empty: Command
	Params     []message.Param  `json:"params,omitempty"`     // of the application, in order of name
	Command    []string         `json:"command,omitempty"`    // program and arguments
	Inputs     []string         `json:"inputs,omitempty"`     // PATH, or PATH=NAME
	Outputs    []string         `json:"outputs,omitempty"`    // patterns of the files to fetch; none: all that are new
	Directory  string           `json:"directory,omitempty"`  // for the outputs of a task; empty: task-00001
	AtOnce     int              `json:"at_once,omitempty"`    // tasks that run at once, at most; 0: any number
	Deadline   time.Duration    `json:"deadline,omitempty"`   // since the sweep began; 0: none, or DeadlineAt
	DeadlineAt time.Time        `json:"deadline_at,omitzero"` // zero: none, or Deadline
	Zoneless   bool             `json:"zoneless,omitempty"`   // DeadlineAt was written without a zone: see Due
	Budget     protocol.Credits `json:"budget,omitempty"`     // 0: none
	DFactor    *float64         `json:"d_factor,omitempty"`   // Deadline was made from it; nil: it was not
	BFactor    *float64         `json:"b_factor,omitempty"`   // so was Budget
	Strategy   sweep.Strategy   `json:"strategy"`
	Equal      int              `json:"equal"`      // prices this near form one group, in parts of 10,000
	RetryExit  int              `json:"retry_exit"` // how often a task is tried again after its own failure
	RetrySite  int              `json:"retry_site"` // and after a site's
	// Ignored are the options of a Slurm script that mean nothing in a sweep, each once.
	Ignored []string `json:"ignored,omitempty"`

	file  string
	lines map[string]int // of keys and of inputs, as written
}

// Axis is a parameter with all its values. The last axis varies fastest.
type Axis struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
	// With is the place, from 0, of the axis that it varies with, at the same index: an earlier one,
	// or its own.
	With int `json:"with"`
}

// Task is one task of a plan.
type Task struct {
	Number     int    // from 1
	Directory  string // for its outputs: a name that no other task has
	Parameters []Parameter
	App        string
	Params     []message.Param
	Command    []string
	Inputs     []string // PATH, or PATH=NAME
	Outputs    []string
}

// Parameter is the value of a parameter in a task.
type Parameter struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Input is a file or directory that some task needs.
type Input struct {
	Spec  string // PATH, or PATH=NAME
	Where string // the line of the plan that names it; empty in a stored plan
}

// Len is the number of tasks, 1 to MaxTasks.
func (p *Plan) Len() int {
	n := 1
	for i, a := range p.Axes {
		if a.With == i {
			n *= len(a.Values)
		}
	}
	return n
}

// Task is the task at an index, 0 to Len()-1.
func (p *Plan) Task(i int) Task {
	s := p.substitution(i)
	t := Task{
		Number: i + 1, Directory: cmp.Or(s.expand(p.Directory), fmt.Sprintf("task-%05d", i+1)), App: p.App,
		Command: s.expandAll(p.Command), Inputs: s.expandAll(p.Inputs), Outputs: s.expandAll(p.Outputs),
	}
	for j, a := range p.Axes {
		t.Parameters = append(t.Parameters, Parameter{a.Name, s.values[j]})
	}
	for _, x := range p.Params {
		t.Params = append(t.Params, message.Param{Name: x.Name, Value: s.expand(x.Value)})
	}
	return t
}

func (p *Plan) substitution(i int) substitution {
	s := substitution{task: strconv.Itoa(i + 1), axes: p.Axes, values: make([]string, len(p.Axes))}
	at := make([]int, len(p.Axes))
	for j := len(p.Axes) - 1; j >= 0; j-- {
		if n := len(p.Axes[j].Values); p.Axes[j].With == j {
			at[j], i = i%n, i/n
		}
	}
	for j, a := range p.Axes {
		s.values[j] = a.Values[at[a.With]]
	}
	return s
}

// AllInputs are the inputs of all tasks, each once.
func (p *Plan) AllInputs() []Input {
	var list []Input
	seen := map[string]bool{}
	for _, template := range p.Inputs {
		for i := range p.Len() {
			spec := p.substitution(i).expand(template)
			if !seen[spec] {
				seen[spec] = true
				list = append(list, Input{spec, p.Where(inputKey(template))})
			}
			if names, _ := references(template); len(names) == 0 {
				break
			}
		}
	}
	return list
}

// Where is FILE:LINE of a key of a plan that was just read, such as deadline, or the file if it does
// not have the key.
func (p *Plan) Where(key string) string { return jobfile.Where(p.file, p.lines[key]) }

// Bring adds an input, a template, that a key of the plan needs.
func (p *Plan) Bring(input, key string) {
	p.Inputs = append(p.Inputs, input)
	p.lines[inputKey(input)] = p.lines[key]
}

func inputKey(template string) string { return "input " + template }

// Due is the deadline of a sweep that begins now; zero: no deadline. One without a zone is
// in the zone of now. A deadline that is not after now, or too short for a task, is an error, with
// its line.
func (p *Plan) Due(now time.Time) (time.Time, error) {
	due := p.DeadlineAt
	switch {
	case p.Deadline > 0:
		due = now.Add(p.Deadline).UTC()
	case due.IsZero():
		return due, nil
	case p.Zoneless:
		due = time.Date(due.Year(), due.Month(), due.Day(), due.Hour(), due.Minute(), due.Second(), 0, now.Location()).UTC()
	}
	where := "--deadline"
	if p.lines[keyDeadline] > 0 {
		where = p.Where(keyDeadline) + ": deadline"
	}
	switch {
	case due.Sub(now) < p.Wall && due.After(now):
		return due, fmt.Errorf("%s: a task may take %s: want a later time", where, p.Wall)
	case !due.After(now):
		return due, fmt.Errorf("%s: %s has passed: want a later time", where, due.In(now.Location()).Format(time.RFC3339))
	}
	return due, nil
}

// Check reports why a plan that Parse has not read cannot be a sweep.
func (p *Plan) Check() error {
	tasks := 1
	for i, a := range p.Axes {
		if a.With < 0 || a.With > i || p.Axes[a.With].With != a.With || len(a.Values) != len(p.Axes[a.With].Values) {
			return fmt.Errorf("axis %d, with %d: want its own place, from 0, or that of an earlier one of its own with as many values", i, a.With)
		}
		if a.With == i {
			tasks *= len(a.Values)
		}
		if tasks < 1 || tasks > MaxTasks || i >= MaxParameters {
			return fmt.Errorf("axes: want 1 to %d tasks, and at most %d axes", MaxTasks, MaxParameters)
		}
	}
	for _, x := range []struct {
		key        string
		is, lo, hi int64
	}{
		{keyCores, int64(p.Cores), 1, maxCores}, {keyWall, int64(p.Wall), 1, int64(rfql.MaxWall)}, {keyDeadline, int64(p.Deadline), 0, int64(rfql.MaxWall)},
		{keyBudget, int64(p.Budget), 0, math.MaxInt64}, {"at_once", int64(p.AtOnce), 0, MaxTasks}, {keyEqual, int64(p.Equal), 0, 10_000},
		{keyInputs, int64(len(p.Inputs)), 0, 2 * maxPatterns}, {keyOutputs, int64(len(p.Outputs)), 0, maxPatterns},
		{"retry_exit", int64(p.RetryExit), 0, maxRetry}, {"retry_site", int64(p.RetrySite), 0, maxRetry},
	} {
		if x.is < x.lo || x.is > x.hi {
			return fmt.Errorf("%s %d: want %d to %d", x.key, x.is, x.lo, x.hi)
		}
	}
	if (p.App == "") == (len(p.Command) == 0) || len(p.Command) > 0 && p.Command[0] == "" {
		return errors.New("want command or app")
	}
	if _, err := sweep.ParseStrategy(string(p.Strategy)); err != nil {
		return err
	}
	return p.checkDirectories()
}

// checkDirectories refuses names of tasks that are no names, or that two tasks have.
func (p *Plan) checkDirectories() error {
	tasks := map[string]int{}
	for i := range p.Len() {
		name := p.Task(i).Directory
		if err := checkDirectory(name); err != nil {
			return fmt.Errorf("name: task %d: %w", i+1, err)
		}
		if first, twice := tasks[name]; twice {
			return fmt.Errorf("name: tasks %d and %d would both write to %q: want all that varies in it, such as ${task}", first, i+1, jobfile.Clip(name))
		}
		tasks[name] = i + 1
	}
	return nil
}

// Names beside the tasks' directories: a table of all tasks, and what failed attempts have left.
const (
	ResultsFile = "results.csv"
	FailedDir   = "failed"
)

// checkDirectory refuses what cannot be the name of a task's directory. Some file systems ignore case.
func checkDirectory(name string) error {
	if err := protocol.CheckPath(name); err != nil {
		return err
	}
	if path.Base(name) != name || name[0] == '.' || strings.EqualFold(name, ResultsFile) || strings.EqualFold(name, FailedDir) {
		return fmt.Errorf("%q: want one name without '/', not %s or %s, and no '.' before it", protocol.Clip(name), ResultsFile, FailedDir)
	}
	return nil
}

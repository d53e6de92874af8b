package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"ramp/agents/user/sweep"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql/compose"
	"ramp/rfql/jobfile"
)

// Keys of a plan and of its task.
const (
	keySweep, keyParameters, keyTask, keyDeadline, keyBudget = "sweep", "parameters", "task", "deadline", "budget"
	keyStrategy, keyEqual, keyRetry, keyAtOnce               = "strategy", "equal", "retry", "at-once"
	keyCores, keyWall, keyCommand, keyApp, keyParams         = "cores", "wall", "command", "app", "params"
	keyInputs, keyOutputs, keyDirectory, keyExit, keySite    = "inputs", "outputs", "name", "exit", "site"
	maxCores                                                 = 1 << 20
	defaultWall                                              = 10 * time.Minute
	defaultEqual                                             = 200
	defaultRetrySite                                         = 5
)

// Error is what is wrong with a plan: one line for each fault, FILE:LINE: SUBJECT: what is allowed.
type Error struct {
	File   string
	Faults jobfile.Faults
}

func (e *Error) Error() string { return e.Faults.In(e.File) }

func (e *Error) Unwrap() error { return e.Faults }

type reader struct {
	jobfile.Nodes
	plan      Plan
	read      func(name string) ([]byte, error)
	counts    []*big.Int // of the values of each axis
	zips      []*yaml.Node
	templates []template
}

// template is a string of a task, as written.
type template struct {
	key, text string
	node      *yaml.Node
}

// Parse reads a plan in YAML, or a Slurm job-array script. file names it for people, and read reads the
// files that it names. Its errors are an *Error.
func Parse(file string, doc []byte, read func(name string) ([]byte, error)) (*Plan, error) {
	r := reader{read: read, plan: Plan{Cores: 1, Wall: defaultWall, Strategy: sweep.CostTime, Equal: defaultEqual, RetryExit: 1, RetrySite: defaultRetrySite, file: file, lines: map[string]int{}}}
	if jobfile.IsScript(doc) {
		r.script(doc)
	} else {
		r.document(doc)
	}
	r.plan.Name = cmp.Or(r.plan.Name, strings.TrimSuffix(path.Base(file), path.Ext(file)))
	var faults jobfile.Faults
	if errors.As(r.Err(), &faults) {
		return nil, &Error{file, faults}
	}
	return &r.plan, nil
}

func (r *reader) document(doc []byte) {
	root, fault := jobfile.Root(doc, "sweep: wing", "parameters and task")
	if fault != nil {
		r.Faults = jobfile.Faults{*fault}
		return
	}
	known := []string{keySweep, keyParameters, keyZip, keyTask, keyDeadline, keyBudget, keyStrategy, keyEqual, keyRetry, keyAtOnce}
	nodes := r.keys(root, "sweep: wing", known)
	for _, need := range [][2]string{{keyParameters, "some, such as angle: {values: [1, 2]}"}, {keyTask, "one, with command or app"}} {
		if nodes[need[0]].value == nil {
			r.Fault(root, "%s: missing: want %s", need[0], need[1])
		}
	}
	for _, key := range known {
		if n := nodes[key]; n.value != nil && key != keyZip {
			r.key(n.key, n.value)
		}
	}
	if n := nodes[keyZip].value; n != nil {
		r.zips = append(r.zips, n)
	}
	if len(r.Faults) > 0 { // the rest would only follow from them
		return
	}
	for _, n := range r.zips {
		r.zip(n)
	}
	if r.total(nodes[keyParameters].value); len(r.Faults) == 0 {
		r.tasks()
	}
}

type entry struct{ key, value *yaml.Node }

// keys are the entries of a mapping, whose keys are known ones.
func (r *reader) keys(n *yaml.Node, such string, known []string) map[string]entry {
	entries := map[string]entry{}
	r.Each(n, such, func(key, value *yaml.Node) {
		if !slices.Contains(known, key.Value) {
			r.unknown(key, known)
			return
		}
		entries[key.Value] = entry{key, value}
		r.plan.lines[key.Value] = key.Line
	})
	return entries
}

func (r *reader) unknown(key *yaml.Node, known []string) {
	near := ""
	if k := jobfile.Nearest(key.Value, known); k != "" {
		near = fmt.Sprintf("; did you mean %q?", k)
	}
	r.Fault(key, "unknown key %q: want %s%s", jobfile.Clip(key.Value), strings.Join(known, ", "), near)
}

func (r *reader) key(key, value *yaml.Node) {
	p := &r.plan
	switch key.Value {
	case keySweep:
		p.Name = r.name(key, value)
	case keyParameters:
		r.parameters(value)
	case keyTask:
		r.task(value)
	case keyDeadline:
		r.deadline(key, value)
	case keyBudget:
		s, ok := r.Scalar(key, value)
		if p.Budget, _ = protocol.ParseCredits(s); ok && p.Budget <= 0 {
			r.Fault(value, "budget: %q: want credits above 0, with at most six decimal places", jobfile.Clip(s))
		}
	case keyStrategy:
		s, ok := r.Scalar(key, value)
		var err error
		if p.Strategy, err = sweep.ParseStrategy(jobfile.Clip(s)); ok && err != nil {
			r.Fault(value, "strategy: %v", err)
		}
	case keyEqual:
		r.equal(key, value)
	case keyRetry:
		nodes := r.keys(value, "retry: {exit: 1, site: 5}", []string{keyExit, keySite})
		if n := nodes[keyExit].value; n != nil {
			p.RetryExit, _ = r.whole("retry: exit", n, 0, maxRetry)
		}
		if n := nodes[keySite].value; n != nil {
			p.RetrySite, _ = r.whole("retry: site", n, 0, maxRetry)
		}
	case keyAtOnce:
		p.AtOnce, _ = r.whole(keyAtOnce, value, 1, MaxTasks)
	}
}

func (r *reader) name(key, value *yaml.Node) string {
	s, ok := r.Scalar(key, value)
	if ok && (s == "" || len(s) > protocol.MaxName || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl)) {
		r.Fault(value, "%s: %q: want 1 to %d printable characters", key.Value, jobfile.Clip(s), protocol.MaxName)
	}
	return s
}

func (r *reader) whole(label string, n *yaml.Node, least, most int) (int, bool) {
	v, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || v < least || v > most {
		r.Fault(n, "%s: %q: want a whole number, %d to %d", label, jobfile.Clip(n.Value), least, most)
		return least, false
	}
	return v, true
}

// deadline reads a length of time, or a date and time.
func (r *reader) deadline(key, value *yaml.Node) {
	s, ok := r.Scalar(key, value)
	if !ok {
		return
	}
	if err := r.plan.setDeadline(s); err != nil {
		r.Fault(value, "deadline: %s", err)
	}
}

// SetDeadline reads --deadline: a duration since the sweep begins, or a time.
func (p *Plan) SetDeadline(s string) error {
	delete(p.lines, keyDeadline) // the file is not to blame for it
	return p.setDeadline(s)
}

func (p *Plan) setDeadline(s string) error {
	d, err := compose.Duration(s)
	if err == nil {
		p.Deadline, p.DeadlineAt, p.Zoneless = d, time.Time{}, false
		return nil
	}
	at, dated := compose.Date(s, time.UTC)
	if !dated {
		return fmt.Errorf("%q: want a time such as 6h or 1d12h, or 2026-11-24T18:00, with or without a zone", jobfile.Clip(s))
	}
	elsewhere, _ := compose.Date(s, time.FixedZone("", 3600))
	p.Deadline, p.DeadlineAt, p.Zoneless = 0, at, !at.Equal(elsewhere)
	return nil
}

// equal reads a share such as 2%.
func (r *reader) equal(key, value *yaml.Node) {
	const part = protocol.Credit / 100
	s, ok := r.Scalar(key, value)
	number, percent := strings.CutSuffix(s, "%")
	c, err := protocol.ParseCredits(number)
	if ok && (!percent && s != "0" || err != nil || c < 0 || c > 100*protocol.Credit || c%part != 0) {
		r.Fault(value, "equal: %q: want a share such as 2%%, 0%% to 100%%, with at most two decimal places", jobfile.Clip(s))
	}
	r.plan.Equal = int(c / part)
}

func (r *reader) task(n *yaml.Node) {
	p := &r.plan
	known := []string{keyCores, keyWall, keyCommand, keyApp, keyParams, keyInputs, keyOutputs, keyDirectory}
	nodes := r.keys(n, "command: [./program, \"${angle}\"]", known)
	for _, key := range known {
		e := nodes[key]
		if e.value == nil {
			continue
		}
		switch key {
		case keyCores:
			p.Cores, _ = r.whole(key, e.value, 1, maxCores)
		case keyWall:
			if s, ok := r.Scalar(e.key, e.value); ok {
				var err error
				if p.Wall, err = compose.WallTime(jobfile.Clip(s)); err != nil {
					r.Fault(e.value, "wall: %v", err)
				}
			}
		case keyApp:
			p.App = r.name(e.key, e.value)
		case keyCommand:
			p.Command = r.command(e.value)
		case keyParams:
			r.params(e.value)
		case keyInputs:
			p.Inputs = r.patterns(key, e.value)
		case keyOutputs:
			p.Outputs = r.patterns(key, e.value)
		case keyDirectory:
			p.Directory, _ = r.Scalar(e.key, e.value)
			r.templates = append(r.templates, template{key, p.Directory, e.value})
		}
	}
	switch {
	case len(nodes) < len(n.Content)/2: // an unknown key may have been meant
	case nodes[keyCommand].value == nil && nodes[keyApp].value == nil:
		r.Fault(n, "task: it has no program: want command, or app")
	case nodes[keyCommand].value != nil && nodes[keyApp].value != nil:
		r.Fault(nodes[keyApp].key, "task: want command or app, not both")
	case nodes[keyApp].value == nil && nodes[keyParams].value != nil:
		r.Fault(nodes[keyParams].key, "params: want app with them; a command has arguments")
	}
}

func (r *reader) command(n *yaml.Node) []string {
	if n.Kind != yaml.SequenceNode {
		r.Fault(n, "command: want a list such as [./program, \"${angle}\"]; for the shell, [sh, -c, LINE]")
		return nil
	}
	words := r.strings(keyCommand, n)
	if len(words) == 0 || words[0] == "" || len(words) > protocol.MaxArgs {
		r.Fault(n, "command: want a program and its arguments, 1 to %d words", protocol.MaxArgs)
	}
	return words
}

func (r *reader) params(n *yaml.Node) {
	r.Each(n, "params: {NAME: \"${angle}\"}", func(key, value *yaml.Node) {
		if key.Value == "" || len(key.Value) > protocol.MaxName {
			r.Fault(key, "params: want names of 1 to %d characters", protocol.MaxName)
		}
		if s, ok := r.Scalar(key, value); ok {
			r.templates = append(r.templates, template{keyParams, s, value})
			r.plan.Params = append(r.plan.Params, message.Param{Name: key.Value, Value: s})
		}
	})
	if len(r.plan.Params) > protocol.MaxParams {
		r.Fault(n, "params: there are %d: want at most %d", len(r.plan.Params), protocol.MaxParams)
	}
	slices.SortFunc(r.plan.Params, func(a, b message.Param) int { return cmp.Compare(a.Name, b.Name) })
}

// patterns reads inputs or outputs: one, or a list.
func (r *reader) patterns(key string, n *yaml.Node) []string {
	list := n
	if n.Kind == yaml.ScalarNode {
		list = &yaml.Node{Kind: yaml.SequenceNode, Line: n.Line, Content: []*yaml.Node{n}}
	}
	words := r.strings(key, list)
	if slices.Contains(words, "") || len(words) > maxPatterns {
		r.Fault(n, "%s: want at most %d, none empty", key, maxPatterns)
	}
	for i, w := range words {
		if _, err := path.Match(w, ""); key == keyOutputs && err != nil {
			r.Fault(list.Content[i], "outputs: %q: want a pattern such as '*.csv'", jobfile.Clip(w))
		}
		if key == keyInputs && len(words) == len(list.Content) {
			r.plan.lines[inputKey(w)] = list.Content[i].Line
		}
	}
	return words
}

func (r *reader) strings(key string, n *yaml.Node) []string {
	words := r.list(key, n)
	for i, w := range words {
		if len(words) == len(n.Content) {
			r.templates = append(r.templates, template{key, w, n.Content[i]})
		}
	}
	return words
}

func (r *reader) list(label string, n *yaml.Node) []string {
	words := []string{}
	if n.Kind != yaml.SequenceNode {
		r.Fault(n, "%s: want a list such as [a, b]", jobfile.Clip(label))
	}
	for _, v := range n.Content {
		if s, ok := r.Scalar(&yaml.Node{Value: label}, v); ok && n.Kind == yaml.SequenceNode {
			words = append(words, s)
		}
	}
	return words
}

// tasks checks what depends on the parameters: references, lengths, and names of directories.
func (r *reader) tasks() {
	sizes := map[string]int{}
	most := longest(r.plan.Axes)
	for _, t := range r.templates {
		names, err := references(t.text)
		if err != nil {
			r.Fault(t.node, "%s: %v", t.key, err)
		}
		unknown := slices.DeleteFunc(names, func(name string) bool {
			return name == taskReference || slices.ContainsFunc(r.plan.Axes, func(a Axis) bool { return a.Name == name })
		})
		if len(unknown) > 0 {
			r.Fault(t.node, "%s: unknown ${%s}: want one of %s, task; $${ gives ${ as it is", t.key, jobfile.Clip(unknown[0]), r.names())
		}
		if len(r.Faults) > 0 {
			continue
		}
		size := most.size(t.text)
		if sizes[t.key] += size; (t.key == keyCommand || t.key == keyParams) && sizes[t.key] > protocol.MaxArgBytes {
			r.Fault(t.node, "%s: it may have %d bytes: want at most %d", t.key, sizes[t.key], protocol.MaxArgBytes)
		}
		if t.key != keyCommand && t.key != keyParams && size > 2*protocol.MaxPath {
			r.Fault(t.node, "%s: it may have %d bytes: want at most %d", t.key, size, 2*protocol.MaxPath)
		}
	}
	if r.plan.Directory == "" || len(r.Faults) > 0 {
		return
	}
	if err := r.plan.checkDirectories(); err != nil {
		r.Fault(r.templates[slices.IndexFunc(r.templates, func(t template) bool { return t.key == keyDirectory })].node, "%v", err)
	}
}

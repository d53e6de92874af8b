// Package jobfile reads a job as its owner describes it: a YAML file, or the #RAMP lines
// of a script.
//
// A job file says in keys what the flags of 'ramp user run' say, so both mean the same.
// The package checks the form, with the line of every fault; the values are checked where
// flags are. It never opens a file.
package jobfile

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of a job file.
const (
	MaxFile  = 1 << 20 // bytes
	maxUnits = 256
	maxShown = 80 // bytes of foreign text in a fault
)

// Keys are the flags that a file may set, without dashes.
type Keys struct {
	Job  []string
	Unit []string // of them, those that describe a unit
}

// Setting is the value of a flag.
type Setting struct {
	Flag  string // without dashes
	Value string
	Line  int
}

// Job is what a file describes.
type Job struct {
	Settings []Setting   // in the order of the file
	Units    [][]Setting // what each unit changes; empty: there is one
	Commands [][]string  // none, one for all units, or one for each
}

// Fault is what is wrong in a line of a file.
type Fault struct {
	Line int // from 1; 0: the whole file
	Text string
}

// Faults are all that is wrong with a file.
type Faults []Fault

func (f Faults) Error() string { return f.In("") }

// In prints one fault per line: FILE:LINE: what is wrong.
func (f Faults) In(file string) string {
	lines := make([]string, len(f))
	for i, x := range f {
		lines[i] = Where(file, x.Line) + ": " + x.Text
	}
	return strings.Join(lines, "\n")
}

// Where is a line of a file, for people.
func Where(file string, line int) string {
	switch {
	case line == 0:
		return file
	case file == "":
		return "line " + strconv.Itoa(line)
	}
	return file + ":" + strconv.Itoa(line)
}

// reader reads one file.
type reader struct {
	keys   Keys
	job    Job
	all    []string   // the command above the units
	own    [][]string // the command of each unit, or nil
	faults Faults
}

// Read reads a job file in YAML. Its errors are Faults.
func Read(text []byte, keys Keys) (Job, error) {
	r := reader{keys: keys}
	if len(text) > MaxFile {
		return Job{}, Faults{{Text: fmt.Sprintf("%d bytes, want at most %d", len(text), MaxFile)}}
	}
	root, fault := parse(text)
	if fault != nil {
		return Job{}, Faults{*fault}
	}
	r.each(root, "cores: 4", r.setting)
	r.commands(root)
	if len(r.faults) > 0 {
		slices.SortStableFunc(r.faults, func(a, b Fault) int { return a.Line - b.Line })
		return Job{}, r.faults
	}
	return r.job, nil
}

// commands gives every unit its command.
func (r *reader) commands(root *yaml.Node) {
	given := func(c []string) bool { return c != nil }
	if !slices.ContainsFunc(r.own, given) {
		if r.all != nil {
			r.job.Commands = [][]string{r.all}
		}
		return
	}
	for i, c := range r.own {
		if c == nil {
			r.own[i] = r.all
		}
		if r.own[i] == nil {
			r.fault(root, "unit %d has no command: give each unit its own, or all of them one above the units", i+1)
		}
	}
	r.job.Commands = r.own
}

// parse reads the one document of a file.
func parse(text []byte) (*yaml.Node, *Fault) {
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	var doc, more yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, &Fault{Text: "it is empty: want keys such as cores, wall and command"}
	case err != nil:
		return nil, syntax(err)
	}
	root := doc.Content[0]
	switch err := d.Decode(&more); {
	case root.Kind != yaml.MappingNode: // nothing, after '---', is said to be in the line behind
		return nil, &Fault{Line: min(root.Line, strings.Count(string(text), "\n")+1), Text: "want lines such as 'cores: 4'"}
	case errors.Is(err, io.EOF):
		return root, nil
	case err != nil:
		return nil, syntax(err)
	}
	return nil, &Fault{Line: more.Line, Text: "a second document: want one job in a file"}
}

var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

// syntax describes a fault that the YAML library has found.
func syntax(err error) *Fault {
	first, _, _ := strings.Cut(err.Error(), "\n")
	m := yamlError.FindStringSubmatch(first)
	if m == nil {
		return &Fault{Text: "not YAML: " + clip(first)}
	}
	line, _ := strconv.Atoi(m[1]) // none: the whole file
	return &Fault{Line: line, Text: "not YAML: " + clip(m[2])}
}

func (r *reader) fault(n *yaml.Node, format string, args ...any) {
	r.faults = append(r.faults, Fault{n.Line, fmt.Sprintf(format, args...)})
}

// each calls f for every key of a mapping.
func (r *reader) each(n *yaml.Node, such string, f func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		r.fault(n, "want lines such as '%s'", such)
		return
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if first, twice := lines[key.Value]; twice {
			r.fault(key, "%s is there already, in line %d", clip(key.Value), first)
			continue
		}
		lines[key.Value] = key.Line
		f(key, value)
	}
}

// Names that read better in a file than those of their flags.
func flagOf(key string) string {
	switch key {
	case "memory":
		return "ram"
	case "inputs":
		return "in"
	}
	return key
}

// Keys that are no flags with one value.
const (
	keyCommand = "command"
	keyUnits   = "units"
	keyEnv     = "env"
	keyParam   = "param"
)

// lists are the flags that may be given several times.
func lists() []string { return []string{"in", "outputs", "dependency"} }

func (r *reader) setting(key, value *yaml.Node) {
	flag := flagOf(key.Value)
	switch {
	case key.Kind != yaml.ScalarNode:
		r.fault(key, "want a key such as cores")
	case flag == keyUnits:
		r.units(value)
	case flag == keyCommand:
		r.all = r.command(value)
	case !slices.Contains(r.keys.Job, flag):
		r.unknown(key, append(slices.Clone(r.keys.Job), "memory", "inputs", keyUnits, keyCommand))
	case flag == keyEnv || flag == keyParam:
		r.each(value, flag+": {NAME: value}", func(name, v *yaml.Node) {
			if s, ok := r.scalar(name, v); ok {
				r.job.Settings = append(r.job.Settings, Setting{flag, name.Value + "=" + s, v.Line})
			}
		})
	case slices.Contains(lists(), flag) && value.Kind == yaml.MappingNode:
		r.fault(value, "%s: want a single value, or a list of them", clip(key.Value))
	case slices.Contains(lists(), flag) && value.Kind == yaml.SequenceNode:
		for _, v := range value.Content {
			r.job.Settings = r.add(r.job.Settings, flag, key, v)
		}
	default:
		r.job.Settings = r.add(r.job.Settings, flag, key, value)
	}
}

// add appends a setting with one value.
func (r *reader) add(to []Setting, flag string, key, value *yaml.Node) []Setting {
	if s, ok := r.scalar(key, value); ok {
		return append(to, Setting{flag, s, value.Line})
	}
	return to
}

// units reads what each unit changes.
func (r *reader) units(list *yaml.Node) {
	if list.Kind != yaml.SequenceNode || len(list.Content) == 0 || len(list.Content) > maxUnits {
		r.fault(list, "units: want a list of 1 to %d, each beginning with '-'", maxUnits)
		return
	}
	for _, unit := range list.Content {
		var command []string
		settings := []Setting{}
		r.each(unit, "- cores: 4", func(key, value *yaml.Node) {
			flag := flagOf(key.Value)
			switch {
			case flag == keyCommand:
				command = r.command(value)
			case !slices.Contains(r.keys.Unit, flag):
				r.unknown(key, append(slices.Clone(r.keys.Unit), "memory", keyCommand))
			default:
				settings = r.add(settings, flag, key, value)
			}
		})
		r.job.Units, r.own = append(r.job.Units, settings), append(r.own, command)
	}
}

// command reads a list of words, or a line for the shell.
func (r *reader) command(n *yaml.Node) []string {
	if n.Kind != yaml.SequenceNode {
		s, ok := r.scalar(n, n)
		if ok && strings.TrimSpace(s) == "" {
			r.fault(n, "command: it is empty")
		}
		return []string{"sh", "-c", s}
	}
	words := []string{}
	for _, v := range n.Content {
		if s, ok := r.scalar(n, v); ok {
			words = append(words, s)
		}
	}
	if len(words) == 0 || words[0] == "" {
		r.fault(n, "command: want a program and its arguments")
	}
	return words
}

// scalar reads a single value as it is written.
func (r *reader) scalar(key, n *yaml.Node) (string, bool) {
	switch {
	case n.Kind != yaml.ScalarNode:
		r.fault(n, "%s: want a single value", clip(key.Value))
	case n.Tag == "!!null":
		r.fault(n, "%s: want a value", clip(key.Value))
	case strings.ContainsRune(n.Value, 0):
		r.fault(n, "%s: a zero byte", clip(key.Value))
	default:
		return n.Value, true
	}
	return "", false
}

func (r *reader) unknown(key *yaml.Node, known []string) {
	text := fmt.Sprintf("unknown key %q", clip(key.Value))
	if near := Nearest(key.Value, known); near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	r.fault(key, "%s", text)
}

// clip shortens foreign text and removes control characters.
func clip(s string) string {
	if len(s) > maxShown {
		s = strings.ToValidUTF8(s[:maxShown], "") + "…"
	}
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

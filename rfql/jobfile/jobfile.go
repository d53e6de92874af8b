// Package jobfile reads a job as its owner describes it: a YAML file, or the #RAMP lines
// of a script.
//
// A job file says in keys what the flags of 'ramp user run' say, so both mean the same.
// The package checks the form, with the line of every fault; the values are checked where
// flags are. It never opens a file.
package jobfile

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const maxUnits = 256

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

type reader struct {
	Nodes
	keys Keys
	job  Job
	all  []string   // the command above the units
	own  [][]string // the command of each unit, or nil
}

// Read reads a job file in YAML. Its errors are Faults.
func Read(text []byte, keys Keys) (Job, error) {
	r := reader{keys: keys}
	root, fault := Root(text, "cores: 4", "cores, wall and command")
	if fault != nil {
		return Job{}, Faults{*fault}
	}
	r.Each(root, "cores: 4", r.setting)
	r.commands(root)
	if err := r.Err(); err != nil {
		return Job{}, err
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
			r.Fault(root, "unit %d has no command: give each unit its own, or all of them one above the units", i+1)
		}
	}
	r.job.Commands = r.own
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

func lists() []string { return []string{"in", "outputs", "dependency"} }

func (r *reader) setting(key, value *yaml.Node) {
	flag := flagOf(key.Value)
	switch {
	case key.Kind != yaml.ScalarNode:
		r.Fault(key, "want a key such as cores")
	case flag == keyUnits:
		r.units(value)
	case flag == keyCommand:
		r.all = r.command(value)
	case !slices.Contains(r.keys.Job, flag):
		r.Unknown(key, append(slices.Clone(r.keys.Job), "memory", "inputs", keyUnits, keyCommand))
	case flag == keyEnv || flag == keyParam:
		r.Each(value, flag+": {NAME: value}", func(name, v *yaml.Node) {
			if s, ok := r.Scalar(name, v); ok {
				r.job.Settings = append(r.job.Settings, Setting{flag, name.Value + "=" + s, v.Line})
			}
		})
	case slices.Contains(lists(), flag) && value.Kind == yaml.MappingNode:
		r.Fault(value, "%s: want a single value, or a list of them", Clip(key.Value))
	case slices.Contains(lists(), flag) && value.Kind == yaml.SequenceNode:
		for _, v := range value.Content {
			r.job.Settings = r.add(r.job.Settings, flag, key, v)
		}
	default:
		r.job.Settings = r.add(r.job.Settings, flag, key, value)
	}
}

func (r *reader) add(to []Setting, flag string, key, value *yaml.Node) []Setting {
	if s, ok := r.Scalar(key, value); ok {
		return append(to, Setting{flag, s, value.Line})
	}
	return to
}

func (r *reader) units(list *yaml.Node) {
	if list.Kind != yaml.SequenceNode || len(list.Content) == 0 || len(list.Content) > maxUnits {
		r.Fault(list, "units: want a list of 1 to %d, each beginning with '-'", maxUnits)
		return
	}
	for _, unit := range list.Content {
		var command []string
		settings := []Setting{}
		r.Each(unit, "- cores: 4", func(key, value *yaml.Node) {
			flag := flagOf(key.Value)
			switch {
			case flag == keyCommand:
				command = r.command(value)
			case !slices.Contains(r.keys.Unit, flag):
				r.Unknown(key, append(slices.Clone(r.keys.Unit), "memory", keyCommand))
			default:
				settings = r.add(settings, flag, key, value)
			}
		})
		r.job.Units, r.own = append(r.job.Units, settings), append(r.own, command)
	}
}

// command reads a list of words, or a line for the shell.
func (r *reader) command(n *yaml.Node) []string {
	key := &yaml.Node{Value: keyCommand}
	if n.Kind != yaml.SequenceNode {
		s, ok := r.Scalar(key, n)
		if ok && strings.TrimSpace(s) == "" {
			r.Fault(n, "command: it is empty")
		}
		return []string{"sh", "-c", s}
	}
	words := []string{}
	for _, v := range n.Content {
		if s, ok := r.Scalar(key, v); ok {
			words = append(words, s)
		}
	}
	if len(words) == 0 || words[0] == "" {
		r.Fault(n, "command: want a program and its arguments")
	}
	return words
}

package plan

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"ramp/protocol"
	"ramp/rfql/compose"
	"ramp/rfql/jobfile"
)

// indexName is the parameter of a job array, and the variable that its script reads.
const indexName = "SLURM_ARRAY_TASK_ID"

// Options of sbatch that a plan follows, by their long names.
const optionArray, optionTasks, optionCPUs, optionTime, optionName, optionNodes = "array", "ntasks", "cpus-per-task", "time", "job-name", "nodes"

func longOption(letter string) string {
	return map[string]string{
		"a": optionArray, "n": optionTasks, "c": optionCPUs, "t": optionTime, "J": optionName, "N": optionNodes,
		"o": "output", "e": "error", "i": "input", "p": "partition", "A": "account", "q": "qos", "Q": "quiet", "v": "verbose", "s": "oversubscribe", "D": "chdir",
		"d": "dependency", "C": "constraint", "w": "nodelist", "x": "exclude", "L": "licenses", "G": "gpus", "b": "begin", "H": "hold", "m": "distribution", "k": "no-kill",
	}[letter]
}

// isIgnored reports whether an option says nothing that a sweep needs: where a site writes, who is
// mailed, whom it charges, and what a site's own queue and nodes are called.
func isIgnored(option string) bool {
	return slices.Contains(strings.Fields("output error open-mode mail-type mail-user partition account qos comment export requeue no-requeue quiet verbose "+
		"mem mem-per-cpu hint parsable wckey reservation nice signal threads-per-core oversubscribe get-user-env profile"), option)
}

// script reads a Slurm job array. Its script is the one input, and its interpreter runs it for every index.
func (r *reader) script(doc []byte) {
	if len(doc) > jobfile.MaxFile {
		r.Faults = jobfile.Faults{{Text: fmt.Sprintf("%d bytes: want at most %d", len(doc), jobfile.MaxFile)}}
		return
	}
	if strings.ContainsRune(string(doc), 0) {
		r.Faults = jobfile.Faults{{Text: "a zero byte: want the text of a script"}}
		return
	}
	directives, err := jobfile.BatchDirectives(doc)
	if errors.As(err, &r.Faults) {
		return
	}
	s := sbatch{reader: r, cpus: 1}
	for _, d := range directives {
		s.line = &yaml.Node{Line: d.Line}
		for words := d.Words; len(words) > 0; {
			words = s.option(words)
		}
	}
	if s.line = (&yaml.Node{Line: 1}); len(s.indexes) == 0 && len(r.Faults) == 0 {
		r.Fault(s.line, "the script has no indexes: want a line such as '#SBATCH --array=1-30'")
	}
	if s.tasks > s.perNode && s.perNode > 0 {
		s.Fault(s.line, "--ntasks-per-node=%d: want at least the %d of --ntasks: a task has one node", s.perNode, s.tasks)
	}
	if s.tasks = cmp.Or(s.tasks, s.perNode); s.tasks > 0 {
		s.env = append(s.env, "SLURM_NTASKS="+strconv.Itoa(s.tasks))
	}
	s.program(doc)
	if r.plan.Cores = max(s.tasks, 1) * s.cpus; r.plan.Cores > maxCores {
		r.Fault(s.line, "%d cores: want at most %d", r.plan.Cores, maxCores)
	}
}

type sbatch struct {
	*reader
	line    *yaml.Node
	indexes []string
	cpus    int
	tasks   int      // 0: not said
	perNode int      // most of them; 0: not said
	env     []string // of every task, as templates
}

// option reads the first option of some words and returns the words behind it.
func (s *sbatch) option(words []string) []string {
	shown, value, given := strings.Cut(words[0], "=")
	name, long := strings.CutPrefix(shown, "--")
	if !long {
		if len(words[0]) < 2 || words[0][0] != '-' {
			s.Fault(s.line, "%q: want options of sbatch only", jobfile.Clip(words[0]))
			return words[1:]
		}
		shown, value = words[0][:2], words[0][2:]
		name, given = longOption(shown[1:]), value != ""
	}
	rest := words[1:]
	if !given && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		value, rest = rest[0], rest[1:]
	}
	switch {
	case isIgnored(name):
		if !slices.Contains(s.plan.Ignored, shown) {
			s.plan.Ignored = append(s.plan.Ignored, shown)
		}
	case !s.set(name, value):
		s.Fault(s.line, "%s: a sweep does not do this: want --array, --ntasks, --cpus-per-task, --time, --job-name and --nodes=1; delete the option", jobfile.Clip(shown))
	}
	return rest
}

// set follows an option, and reports whether there is such a one.
func (s *sbatch) set(name, value string) bool {
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: s.line.Line, Value: value}
	label := "--" + name
	switch name {
	case optionArray:
		a, err := jobfile.ParseIndexes(value, MaxTasks, MaxTasks)
		if err != nil {
			s.Fault(n, "--array: %q: %s", jobfile.Clip(value), strings.TrimPrefix(err.Error(), strconv.Quote(value)+": "))
		}
		s.indexes = nil
		for _, i := range a.Indexes {
			s.indexes = append(s.indexes, strconv.Itoa(i))
		}
		s.plan.AtOnce = a.Slots
	case optionTasks:
		s.tasks, _ = s.whole(label, n, 1, maxCores)
	case "ntasks-per-node":
		s.perNode, _ = s.whole(label, n, 1, maxCores)
	case optionCPUs:
		s.cpus, _ = s.whole(label, n, 1, maxCores)
		s.env = append(s.env, "SLURM_CPUS_PER_TASK="+value)
	case optionNodes:
		if value != "1" && value != "1-1" {
			s.Fault(n, "--nodes: %q: want 1: a task has one node", jobfile.Clip(value))
		}
	case optionTime:
		var err error
		if s.plan.Wall, err = batchTime(value); err != nil {
			s.Fault(n, "--time: %q: want minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM or D-HH:MM:SS, above 0", jobfile.Clip(value))
		}
	case optionName:
		s.plan.Name = s.name(&yaml.Node{Value: label}, n)
	default:
		return false
	}
	return true
}

// batchTime reads a time as sbatch does. In a script MM:SS is minutes and seconds.
func batchTime(value string) (time.Duration, error) {
	if strings.Count(value, ":") == 1 && !strings.Contains(value, "-") {
		return compose.Duration(strings.Replace(value, ":", "m", 1) + "s")
	}
	return compose.WallTime(value)
}

// program makes the command of the tasks. As the kernel does, it gives an interpreter the rest of the
// first line as one word; so the script need not be executable. SLURM_SUBMIT_DIR is where sbatch runs: many
// scripts go there first.
func (s *sbatch) program(doc []byte) {
	first, _, _ := strings.Cut(strings.TrimPrefix(string(doc), "#!"), "\n")
	interpreter, argument, _ := strings.Cut(strings.TrimSpace(first), " ")
	if interpreter == "" {
		s.Fault(s.line, "the script has no interpreter: want a first line such as #!/bin/sh")
	}
	file := s.plan.file
	if !utf8.ValidString(interpreter + argument + file) {
		s.Fault(s.line, "the script's name and its first line: want UTF-8")
	}
	if len(s.Faults) > 0 {
		return
	}
	command := []string{
		"/usr/bin/env", indexName + "=${" + indexName + "}", "SLURM_ARRAY_TASK_COUNT=" + strconv.Itoa(len(s.indexes)),
		"SLURM_ARRAY_TASK_MIN=" + s.indexes[0], "SLURM_ARRAY_TASK_MAX=" + s.indexes[len(s.indexes)-1], "SLURM_SUBMIT_DIR=.",
	}
	command = append(append(command, s.env...), quoted(interpreter))
	if argument = strings.TrimSpace(argument); argument != "" {
		command = append(command, quoted(argument))
	}
	s.plan.Axes = []Axis{{Name: indexName, Values: s.indexes}}
	s.plan.Command, s.plan.Inputs = append(command, quoted("./"+path.Base(file))), []string{quoted(path.Base(file))}
	s.plan.lines[inputKey(s.plan.Inputs[0])] = 1
	if size := len(strings.Join(s.plan.Command, " ")); size > protocol.MaxArgBytes || len(s.plan.Command) > protocol.MaxArgs {
		s.Fault(s.line, "the command would have %d bytes: want at most %d", size, protocol.MaxArgBytes)
	}
}

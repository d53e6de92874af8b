package order

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ramp/agents/exit"
	"ramp/rfql/compose"
	"ramp/rfql/jobfile"
)

// File is what a job file says.
type File struct {
	Words    []compose.Said    // of the request
	Flags    []jobfile.Setting // that are not of the request
	Commands [][]string        // none, one, or one for each unit
	Script   bool              // the file is the program
}

// Parse reads flags as on a command line.
type Parse func(words []string, set func(flag, value string)) error

// ReadFile reads a job file, or the directives of a script.
func ReadFile(path string, text []byte, parse Parse) (File, error) {
	var file File
	var job jobfile.Job
	var err error
	if file.Script = jobfile.IsScript(text); file.Script {
		job, err = directives(text, parse)
	} else {
		job, err = jobfile.Read(text, Keys())
	}
	var faults jobfile.Faults
	if errors.As(err, &faults) {
		return file, BadFile(faultsIn{faults, path})
	}
	var words []compose.Said
	words, file.Flags = apart(path, job.Settings)
	var units [][]compose.Said
	for _, u := range job.Units {
		own, _ := apart(path, u)
		units = append(units, own)
	}
	file.Words, file.Commands = compose.FileWords(words, units), job.Commands
	return file, err
}

// BadFile is the error of a command whose job file has faults.
func BadFile(faults error) error {
	return &exit.Error{Code: exit.Usage, Err: faults, Hint: "docs/JOBS.md shows a job file; its keys are flags of 'ramp run'", InRun: exit.RunData}
}

// apart separates what describes a unit from the other flags.
func apart(path string, list []jobfile.Setting) (words []compose.Said, flags []jobfile.Setting) {
	for _, s := range list {
		if w := compose.Word(s.Flag); w == compose.And || compose.IsWord(s.Flag) {
			words = append(words, compose.Said{Word: w, Value: s.Value, Where: jobfile.Where(path, s.Line) + ": " + s.Flag})
			continue
		}
		flags = append(flags, s)
	}
	return words, flags
}

func directives(text []byte, parse Parse) (jobfile.Job, error) {
	var job jobfile.Job
	var faults jobfile.Faults
	lines, err := jobfile.Directives(text)
	if err != nil {
		return job, err
	}
	keys := append(Keys().Job, string(compose.And))
	for _, d := range lines {
		fault := func(format string, args ...any) {
			faults = append(faults, jobfile.Fault{Line: d.Line, Text: fmt.Sprintf(format, args...)})
		}
		err := parse(d.Words, func(flag, value string) {
			if !slices.Contains(keys, flag) {
				fault("--%s belongs on the command line", flag)
				return
			}
			if flag == string(compose.And) {
				value = ""
			}
			job.Settings = append(job.Settings, jobfile.Setting{Flag: flag, Value: value, Line: d.Line})
		})
		if err == nil {
			continue
		}
		near := ""
		if name, ok := strings.CutPrefix(err.Error(), "unknown flag: --"); ok {
			near = jobfile.Nearest(name, keys)
		}
		if near != "" {
			near = "; did you mean --" + near + "?"
		}
		fault("%v%s", err, near)
	}
	if len(faults) > 0 {
		return job, faults
	}
	return job, nil
}

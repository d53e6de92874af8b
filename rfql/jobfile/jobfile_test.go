package jobfile_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ramp/rfql/jobfile"
)

func keys() jobfile.Keys {
	return jobfile.Keys{
		Job:  []string{"name", "cores", "wall", "ram", "max-price", "in", "out", "outputs", "env", "param", "dependency", "array"},
		Unit: []string{"cores", "wall", "ram", "max-price"},
	}
}

func TestAFileSaysWhatFlagsSay(t *testing.T) {
	got, err := jobfile.Read([]byte(`# a job
name: mean
cores: 4
wall: 1:30:00   # not sixty-based
memory: 2G
env:
  SEED: 7
  WORDS: a b;c
inputs: [data.csv, lib=libs]
outputs: "*.csv"
command: [./analyse, data.csv, 3]
`), keys())
	want := jobfile.Job{
		Settings: []jobfile.Setting{
			{"name", "mean", 2}, {"cores", "4", 3}, {"wall", "1:30:00", 4}, {"ram", "2G", 5}, {"env", "SEED=7", 7}, {"env", "WORDS=a b;c", 8},
			{"in", "data.csv", 9}, {"in", "lib=libs", 9}, {"outputs", "*.csv", 10},
		},
		Commands: [][]string{{"./analyse", "data.csv", "3"}},
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v %s", err, d)
	}
}

func TestUnitsHaveCommandsOfTheirOwn(t *testing.T) {
	got, err := jobfile.Read([]byte("wall: 1m\nunits:\n  - cores: 2\n    command: ./first | tee log\n  - cores: 1\n    memory: 1G\ncommand: [./other]\n"), keys())
	want := jobfile.Job{
		Settings: []jobfile.Setting{{"wall", "1m", 1}},
		Units:    [][]jobfile.Setting{{{"cores", "2", 3}}, {{"cores", "1", 5}, {"ram", "1G", 6}}},
		Commands: [][]string{{"sh", "-c", "./first | tee log"}, {"./other"}},
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v %s", err, d)
	}
}

func TestEveryFaultHasItsLine(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"an unknown key", "cores: 1\nwal: 1m\n", `job.yaml:2: unknown key "wal"; did you mean "wall"?`},
		{"a key far from any", "zzzzzz: 1\n", `job.yaml:1: unknown key "zzzzzz"`},
		{"two of them", "core: 1\nwall: 1m\ninput: x\n", "job.yaml:1: unknown key \"core\"; did you mean \"cores\"?\njob.yaml:3: unknown key \"input\"; did you mean \"inputs\"?"},
		{"a key of the job in a unit", "units:\n- cores: 1\n  name: x\n", `job.yaml:3: unknown key "name"`},
		{"a key twice", "cores: 1\nwall: 1m\ncores: 2\n", "job.yaml:3: cores is there already, in line 1"},
		{"a list for one value", "cores: [1, 2]\n", "job.yaml:1: cores: want a single value"},
		{"no value", "cores:\n", "job.yaml:1: cores: want a value"},
		{"no word", "command: [echo, null]\n", "job.yaml:1: command: want a value"},
		{"an alias", "cores: &a 1\nwall: *a\n", "job.yaml:2: wall: want a single value"},
		{"no command for a unit", "units:\n- cores: 1\n  command: x\n- cores: 2\n", "job.yaml:1: unit 2 has no command: give each unit its own, or all of them one above the units"},
		{"an empty command", "command: []\n", "job.yaml:1: command: want a program and its arguments"},
		{"no units", "units: []\n", "job.yaml:1: units: want a list of 1 to 256, each beginning with '-'"},
		{"no mapping", "- cores\n", "job.yaml:1: want lines such as 'cores: 4'"},
		{"a list of variables", "env: [A]\n", "job.yaml:1: want lines such as 'env: {NAME: value}'"},
		{"a mapping of inputs", "inputs: {a: b}\n", "job.yaml:1: inputs: want a single value, or a list of them"},
		{"nothing", "# nothing\n", "job.yaml: it is empty: want keys such as cores, wall and command"},
		{"no YAML", "cores: 1\n  wall: 2\n", "job.yaml:2: not YAML: mapping values are not allowed in this context"},
		{"two documents", "cores: 1\n---\ncores: 2\n", "job.yaml:2: a second document: want one in a file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := jobfile.Read([]byte(c.text), keys())
			var faults jobfile.Faults
			if !errors.As(err, &faults) || faults.In("job.yaml") != c.want {
				t.Errorf("got  %v\nwant %s", faults.In("job.yaml"), c.want)
			}
		})
	}
}

func TestDirectivesEndAtTheFirstCommand(t *testing.T) {
	got, err := jobfile.Directives([]byte("#!/bin/sh\n#RAMP --cores 4 -t 10m # why\n# RAMP --no\n#RAMPART --no\n\n  #RAMP --name 'a b' --env X=\"$HOME \\\"\" ''\n#RAMP\necho\n#RAMP --late\n"))
	want := []jobfile.Directive{{2, []string{"--cores", "4", "-t", "10m"}}, {6, []string{"--name", "a b", "--env", `X=$HOME "`, ""}}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v %s", err, d)
	}
	_, err = jobfile.Directives([]byte("#!/bin/sh\n#RAMP --name 'x\n#RAMP --cores \\\n"))
	if err == nil || err.Error() != "line 2: a quote that is not closed\nline 3: a '\\' at the end of the line: a directive has one line" {
		t.Errorf("got %v", err)
	}
	_, err = jobfile.Directives([]byte("#!/bin/sh\r\n#RAMP --cores 1\r\n"))
	if err == nil || err.Error() != "line 1: DOS line endings: remove the carriage returns, as with dos2unix" {
		t.Errorf("got %v", err)
	}
}

func TestNearest(t *testing.T) {
	for word, want := range map[string]string{"coers": "cores", "nane": "name", "x": "", "max_price": "max-price"} {
		if got := jobfile.Nearest(word, keys().Job); got != want {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
	}
}

// Whatever a file holds, reading it ends, and its faults have one line each, within the file.
func FuzzRead(f *testing.F) {
	f.Add("cores: 1\nunits:\n- {cores: 2, command: [a]}\nenv: {A: b}\ncommand: x\n")
	f.Add("a: &a [*a]\n--- \n? {}\n: !!binary x\n")
	f.Fuzz(func(t *testing.T, text string) {
		job, err := jobfile.Read([]byte(text), keys())
		var faults jobfile.Faults
		switch {
		case errors.As(err, &faults):
			for _, x := range faults {
				if x.Line < 0 || x.Line > strings.Count(text, "\n")+1+strings.Count(text, "\r")+strings.Count(text, "\u0085")+strings.Count(text, "\u2028")+strings.Count(text, "\u2029") || strings.ContainsAny(x.Text, "\n\x00") {
					t.Fatalf("%q: fault %+v", text, x)
				}
			}
		case err != nil:
			t.Fatal(err)
		case len(job.Commands) > 1 && len(job.Commands) != len(job.Units):
			t.Fatalf("%q: %d commands for %d units", text, len(job.Commands), len(job.Units))
		}
	})
}

// A directive is split as the shell splits words without anything to expand: joined with
// quotes, the words come back.
func FuzzDirectives(f *testing.F) {
	f.Add("--cores 4 'a b' \"c\\\"\" \\  # x")
	f.Fuzz(func(t *testing.T, line string) {
		list, err := jobfile.Directives([]byte("#!/bin/sh\n#RAMP " + line))
		if err != nil || len(list) == 0 || list[0].Line != 2 {
			return
		}
		var quoted []string
		for _, w := range list[0].Words {
			quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
		}
		again, err := jobfile.Directives([]byte("#RAMP " + strings.Join(quoted, " ")))
		if err != nil || len(again) != 1 || !cmp.Equal(again[0].Words, list[0].Words) {
			t.Fatalf("%q: %q reads back as %v, %v", line, list[0].Words, again, err)
		}
	})
}

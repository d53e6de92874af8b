package plan_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"ramp/agents/user/sweep"
	"ramp/agents/user/sweep/plan"
	"ramp/protocol"
	"ramp/protocol/message"
)

// files are read by a plan.
type files map[string]string

func (f files) read(name string) ([]byte, error) {
	text, ok := f[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

func parse(t *testing.T, text string, f files) *plan.Plan {
	t.Helper()
	p, err := plan.Parse("wing.yaml", []byte(text), f.read)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// of is a plan with these parameters, in one line.
func of(parameters string) string {
	return "parameters: {" + parameters + "}\ntask: {command: [x]}\n"
}

// valuesOf are the values of all tasks.
func valuesOf(p *plan.Plan) []string {
	var all []string
	for i := range p.Len() {
		var one []string
		for _, x := range p.Task(i).Parameters {
			one = append(one, x.Name+"="+x.Value)
		}
		all = append(all, strings.Join(one, " "))
	}
	return all
}

func TestAPlanSaysWhatTasksDo(t *testing.T) {
	p := parse(t, `sweep: wing
parameters:
  angle: {range: [-45, 45], step: 2.5}
  wing:  {values: [none, fence]}
task:
  cores: 2
  wall: 90s
  command: [./wing, "--angle=${angle}", "${wing}", "${task}", "$HOME $$ $${x}"]
  inputs: [wing, "data/${wing}.dat=wing.dat"]
  outputs: ["${wing}-*.csv"]
  name: wing-${wing}-${angle}
deadline: 6h
budget: 500.5
strategy: time
equal: 0.25%
retry: {exit: 0, site: 7}
at-once: 8
`, nil)
	if p.Len() != 74 {
		t.Errorf("%d tasks", p.Len())
	}
	want := plan.Task{
		Number: 4, Directory: "wing-fence--42.5", Parameters: []plan.Parameter{{Name: "angle", Value: "-42.5"}, {Name: "wing", Value: "fence"}},
		Command: []string{"./wing", "--angle=-42.5", "fence", "4", "$HOME $ ${x}"}, Inputs: []string{"wing", "data/fence.dat=wing.dat"}, Outputs: []string{"fence-*.csv"},
	}
	if d := cmp.Diff(want, p.Task(3)); d != "" {
		t.Error(d)
	}
	rest := plan.Plan{
		Name: "wing", Cores: 2, Wall: 90 * time.Second, AtOnce: 8, Deadline: 6 * time.Hour, Budget: 500*protocol.Credit + protocol.Credit/2,
		Strategy: sweep.Time, Equal: 25, RetryExit: 0, RetrySite: 7,
	}
	if d := cmp.Diff(rest, *p, cmpopts.IgnoreFields(plan.Plan{}, "Axes", "Command", "Inputs", "Outputs", "Directory"), cmpopts.IgnoreUnexported(plan.Plan{})); d != "" {
		t.Error(d)
	}
	inputs := []plan.Input{{Spec: "wing", Where: "wing.yaml:9"}, {Spec: "data/none.dat=wing.dat", Where: "wing.yaml:9"}, {Spec: "data/fence.dat=wing.dat", Where: "wing.yaml:9"}}
	if d := cmp.Diff(inputs, p.AllInputs()); d != "" {
		t.Error(d)
	}
	if got := p.Where("budget"); got != "wing.yaml:13" {
		t.Errorf("budget in %s", got)
	}
}

func TestWhatAPlanNeedNotSay(t *testing.T) {
	p := parse(t, "parameters: {a: {values: [x]}}\ntask: {app: sim, params: {z: '${a}', b: '1'}}\n", nil)
	want := plan.Plan{Name: "wing", Cores: 1, Wall: 10 * time.Minute, App: "sim", Strategy: sweep.CostTime, Equal: 200, RetryExit: 1, RetrySite: 5}
	if d := cmp.Diff(want, *p, cmpopts.IgnoreFields(plan.Plan{}, "Axes", "Params"), cmpopts.IgnoreUnexported(plan.Plan{})); d != "" {
		t.Error(d)
	}
	task := p.Task(0)
	if d := cmp.Diff([]message.Param{{Name: "b", Value: "1"}, {Name: "z", Value: "x"}}, task.Params); d != "" || task.Directory != "task-00001" {
		t.Errorf("%s %s", task.Directory, d)
	}
}

func TestValuesOfParameters(t *testing.T) {
	cases := files{"cases.csv": "\xef\xbb\xbfwing, angle\nnone,\"1,5\"\nfence,2\n"}
	for _, c := range []struct{ name, parameters, want string }{
		{"a range is exact", "a: {range: [0, 0.3], step: 0.1}", "a=0.0,a=0.1,a=0.2,a=0.3"},
		{"a range keeps decimal places as written", "a: {range: [1.00, 2], step: 0.5}", "a=1.00,a=1.50,a=2.00"},
		{"a range ends before a value beyond it", "a: {range: [1, 6], step: 2}", "a=1,a=3,a=5"},
		{"a range goes down", "a: {range: [1, -1], step: -1}", "a=1,a=0,a=-1"},
		{"a step of one need not be written", "a: {range: [1, 3]}", "a=1,a=2,a=3"},
		{"a range of one value", "a: {range: [2, 2], step: -1}", "a=2"},
		{"a small step", "a: {range: [0, 2e-3], step: 1e-3}", "a=0.000,a=0.001,a=0.002"},
		{"zero has no sign", "a: {range: [-0.1, 0.1], step: 0.1}", "a=-0.1,a=0.0,a=0.1"},
		{"values stay as written", "a: {values: [0.10, yes, 'x y', 1e3]}", "a=0.10,a=yes,a=x y,a=1e3"},
		{"rows of a file go together", "cases: {file: cases.csv}, n: {values: [1, 2]}", "wing=none angle=1,5 n=1,wing=none angle=1,5 n=2,wing=fence angle=2 n=1,wing=fence angle=2 n=2"},
		{"zipped parameters go together", "a: {values: [1, 2]}, b: {values: [x, y]}, c: {values: [p, q]}, zip: [a, c]", "a=1 b=x c=p,a=1 b=y c=p,a=2 b=x c=q,a=2 b=y c=q"},
		{"a zip with a file", "a: {values: [1, 2]}, cases: {file: cases.csv}, zip: [angle, a]", "a=1 wing=none angle=1,5,a=2 wing=fence angle=2"},
		{"random draws", "a: {random: [0, 1], count: 3, seed: 7}", "a=0.071669,a=0.174192,a=0.744341"},
		{"coarse draws", "a: {random: [-1e7, 1e7], count: 2}", "a=9676344,a=-3732635"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.Join(valuesOf(parse(t, of(c.parameters), cases)), ","); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Draws are in their interval, and those of two parameters with one seed differ.
func TestDrawsAreInTheirInterval(t *testing.T) {
	p := parse(t, of("a: {random: [0.01, 0.02], count: 1000, seed: 3}, b: {random: [0.01, 0.02], count: 1000, seed: 3}")+"zip: [a, b]\n", nil)
	same, sum := 0, 0.0
	for i := range p.Len() {
		x := p.Task(i).Parameters
		v, err := strconv.ParseFloat(x[0].Value, 64)
		if err != nil || v < 0.01 || v > 0.02 {
			t.Fatalf("%v", x)
		}
		if sum += v; x[0].Value == x[1].Value {
			same++
		}
	}
	if mean := sum / 1000; same > 5 || mean < 0.0145 || mean > 0.0155 {
		t.Errorf("%d are the same, the mean is %f", same, mean)
	}
}

// The tasks are those of nested loops, the last parameter in the innermost, where zipped ones share
// the loop of the first.
func TestTasksAreThoseOfNestedLoops(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "n")
		zipped := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, n, rapid.ID[int]).Draw(t, "zipped")
		sizes := rapid.SliceOfN(rapid.IntRange(1, 4), n, n).Draw(t, "sizes")
		var parameters, zip []string
		for _, i := range zipped {
			sizes[i] = sizes[zipped[0]]
			zip = append(zip, fmt.Sprintf("p%d", i))
		}
		for i, size := range sizes {
			parameters = append(parameters, fmt.Sprintf("p%d: {range: [1, %d]}", i, size))
		}
		text := of(strings.Join(parameters, ", "))
		if len(zip) > 0 {
			text += "zip: [" + strings.Join(zip, ", ") + "]\n"
		}
		p, err := plan.Parse("x", []byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		values := make([]int, n)
		var loop func(i int)
		loop = func(i int) {
			if i == n {
				want = append(want, fmt.Sprint(values))
				return
			}
			if slices.Contains(zipped, i) && i != slices.Min(zipped) {
				values[i] = values[slices.Min(zipped)]
				loop(i + 1)
				return
			}
			for values[i] = 1; values[i] <= sizes[i]; values[i]++ {
				loop(i + 1)
			}
		}
		loop(0)
		var got []string
		for i := range p.Len() {
			var one []string
			for _, x := range p.Task(i).Parameters {
				one = append(one, x.Value)
			}
			got = append(got, fmt.Sprint(one))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s\ngot  %v\nwant %v", text, got, want)
		}
	})
}

func TestEveryFaultHasItsLine(t *testing.T) {
	const begin, task = "parameters:\n  a: {values: [1, 2]}\n", "task:\n  command: [x]\n"
	cases := files{"ragged.csv": "a,b\n1,2\n3\n", "empty.csv": "a,b\n", "task.csv": "task\n1\n", "quote.csv": "b\n1\n\"\n", "latin.csv": "b\n\xff\n"}
	for _, c := range []struct{ name, text, want string }{
		{"an unknown key", begin + task + "budgt: 3\n", `p.yaml:5: unknown key "budgt": want sweep, parameters, zip, task, deadline, budget, strategy, equal, retry, at-once; did you mean "budget"?`},
		{"an unknown key of a task", begin + "task:\n  comand: [x]\n", `p.yaml:4: unknown key "comand": want cores, wall, command`},
		{"an unknown key of a parameter", "parameters: {a: {value: [1]}}\n" + task, `p.yaml:1: unknown key "value": want values, range`},
		{"an unknown reference", begin + "task:\n  command:\n  - x\n  - ${b}\n", "p.yaml:6: command: unknown ${b}: want one of a, task; $${ gives ${ as it is"},
		{"an unknown reference in inputs", begin + task + "  inputs: ['${}']\n", "p.yaml:5: inputs: unknown ${}: want one of a, task"},
		{"a reference that is not closed", begin + "task:\n  command: [x, '${a']\n", "p.yaml:4: command: a ${ without }"},
		{"too many tasks", "parameters:\n  a: {range: [1, 10001]}\n" + task, "p.yaml:2: parameters: 10001 tasks: want at most 10000"},
		{"far too many tasks", "parameters:\n  a: {range: [0, 1e17]}\n  b: {range: [1, 10]}\n" + task, "p.yaml:2: parameters: 1000000000000000010 tasks: want at most 10000"},
		{"too many parameters", "parameters: {" + strings.Repeat("b%: {values: [1]}, ", 17) + "}\n" + task, "p.yaml:1: parameters: there are 17: want at most 16"},
		{"a step of zero", "parameters:\n  a:\n    range: [1, 2]\n    step: 0.0\n" + task, "p.yaml:4: a: step: it is 0: want another number"},
		{"a step that leads away", "parameters: {a: {range: [1, 2], step: -1}}\n" + task, "p.yaml:1: a: step: -1 leads away from the last value: want the other sign"},
		{"a range down without a step", "parameters: {a: {range: [2, 1]}}\n" + task, "p.yaml:1: a: range: it goes down: want a step below 0"},
		{"a range of words", "parameters: {a: {range: [x, 1]}}\n" + task, `p.yaml:1: a: range: "x": want a decimal number such as -2.5`},
		{"a range of one end", "parameters: {a: {range: [1]}}\n" + task, "p.yaml:1: a: range: want the first and the last value"},
		{"two kinds of values", "parameters: {a: {range: [1, 2], count: 3}}\n" + task, "p.yaml:1: a: count does not go with range"},
		{"a parameter without values", "parameters: {a: {values: []}}\n" + task, "p.yaml:1: a: values: want a list such as [none, fence]"},
		{"a bare list", "parameters: {a: [1]}\n" + task, "p.yaml:1: a: want {values: [a, b]}, {range"},
		{"random draws without a number", "parameters: {a: {random: [0, 1]}}\n" + task, "p.yaml:1: a: count: want the number of values, 1 to 10000"},
		{"random draws downwards", "parameters: {a: {random: [1, 0], count: 2}}\n" + task, "p.yaml:1: a: random: want the lower end first, then the upper one"},
		{"random draws of many digits", "parameters: {a: {random: [0, 1e30], count: 2}}\n" + task, "p.yaml:1: a: random: want ends of at most 18 digits together"},
		{"a parameter called task", "parameters: {task: {values: [1]}}\n" + task, `p.yaml:1: parameter "task": ${task} is the number of the task: want another name`},
		{"a parameter with an odd name", "parameters: {a b: {values: [1]}}\n" + task, `p.yaml:1: parameter "a b": want a letter`},
		{"a file that is missing", "parameters:\n  c: {file: no.csv}\n" + task, "p.yaml:2: c: file: file does not exist: want a CSV file that can be read"},
		{"ragged rows", "parameters: {c: {file: ragged.csv}}\n" + task, "ragged.csv:3: this row has another number of values than the header: want one for each parameter"},
		{"a broken quote", "parameters: {c: {file: quote.csv}}\n" + task, `quote.csv:3: extraneous or missing \" in quoted-field: want values with commas`},
		{"a file without rows", "parameters: {c: {file: empty.csv}}\n" + task, "empty.csv: it has no rows"},
		{"a file that is not UTF-8", "parameters: {c: {file: latin.csv}}\n" + task, "latin.csv: it is not text"},
		{"a column called task", "parameters: {c: {file: task.csv}}\n" + task, `p.yaml:1: parameter "task": ${task} is`},
		{"a zip of other lengths", "parameters: {a: {values: [1]}, b: {values: [1, 2]}}\nzip: [a, b]\n" + task, `p.yaml:2: zip: "b" has 2 values and "a" has 1: want as many`},
		{"a zip of what is not there", begin + "zip: [a, b]\n" + task, `p.yaml:3: zip: "b": want names of parameters: a`},
		{"no parameters", task, "p.yaml:1: parameters: missing: want some, such as angle: {values: [1, 2]}"},
		{"no task", begin, "p.yaml:1: task: missing: want one, with command or app"},
		{"no program", begin + "task:\n  cores: 1\n", "p.yaml:4: task: it has no program: want command, or app"},
		{"two programs", begin + task + "  app: x\n", "p.yaml:5: task: want command or app, not both"},
		{"params of a command", begin + task + "  params: {a: b}\n", "p.yaml:5: params: want app with them"},
		{"a command for the shell", begin + "task:\n  command: ./x a\n", "p.yaml:4: command: want a list such as [./program"},
		{"an empty command", begin + "task: {command: []}\n", "p.yaml:3: command: want a program and its arguments, 1 to 256 words"},
		{"a long command", "parameters:\n  a: {values: [" + strings.Repeat("x", 40000) + "]}\ntask: {command: [x, '${a}${a}']}\n", "p.yaml:3: command: it may have 80001 bytes: want at most 65536"},
		{"a pattern that is none", begin + task + "  outputs: ['[']\n", `p.yaml:5: outputs: "[": want a pattern`},
		{"cores", begin + task + "  cores: 0\n", `p.yaml:5: cores: "0": want a whole number, 1 to 1048576`},
		{"a wall time", begin + task + "  wall: soon\n", `p.yaml:5: wall: "soon": want a time such as 2h`},
		{"a deadline", begin + task + "deadline: soon\n", `p.yaml:5: deadline: "soon": want a time such as 6h`},
		{"a budget of 0", begin + task + "budget: 0\n", `p.yaml:5: budget: "0": want credits above 0`},
		{"a strategy", begin + task + "strategy: fast\n", `p.yaml:5: strategy: unknown strategy "fast": want cost-time, cost, time, conservative-time, none`},
		{"a share", begin + task + "equal: 2\n", `p.yaml:5: equal: "2": want a share such as 2%`},
		{"a share beyond the whole", begin + task + "equal: 101%\n", `p.yaml:5: equal: "101%": want a share`},
		{"retries", begin + task + "retry:\n  exit: -1\n", `p.yaml:6: retry: exit: "-1": want a whole number, 0 to 100`},
		{"a step without a range", "parameters: {a: {step: 1}}\n" + task, "p.yaml:1: a: want values, range, random or file"},
		{"a parameter of nothing", "parameters: {a: {}}\n" + task, "p.yaml:1: a: want values, range, random or file"},
		{"two tasks of one name", "parameters:\n  a: {values: [1, 2, 1]}\n" + task + "  name: wing-${a}\n", `p.yaml:5: name: tasks 1 and 3 would both write to "wing-1": want all that varies in it, such as ${task}`},
		{"a name that climbs", "parameters:\n  a: {values: [.., x]}\n" + task + "  name: ${a}\n", `p.yaml:5: name: task 1: path "..": ".." is not allowed as a name`},
		{"the name of failed attempts", begin + task + "  name: Failed\n", `p.yaml:5: name: task 1: "Failed": want one name without '/'`},
		{"a name of another file", begin + task + "  name: results.csv\n", `p.yaml:5: name: task 1: "results.csv": want one name without '/'`},
		{"two faults", begin + task + "budget: 0\nequal: x\n", "p.yaml:5: budget: \"0\": want credits above 0, with at most six decimal places\np.yaml:6: equal: \"x\": want"},
		{"no YAML", "a: b\nb: c: d\n", "p.yaml:2: not YAML: mapping values are not allowed in this context"},
		{"nothing", "", "p.yaml: it is empty: want keys such as parameters and task"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := c.text
			for i := 0; strings.Contains(text, "b%"); i++ {
				text = strings.Replace(text, "b%", fmt.Sprintf("b%d", i), 1)
			}
			_, err := plan.Parse("p.yaml", []byte(text), cases.read)
			var bad *plan.Error
			if got := fmt.Sprint(err); !errors.As(err, &bad) || !strings.HasPrefix(got, c.want) || strings.Count(got, "\n") != strings.Count(c.want, "\n") {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestDeadlines(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.FixedZone("CET", 3600))
	for text, want := range map[string]string{
		"6h":                   "2026-11-24T17:00:00Z",
		"1d":                   "2026-11-25T11:00:00Z",
		"2026-11-24T18:00":     "2026-11-24T17:00:00Z",
		"2026-11-24 18:00":     "2026-11-24T17:00:00Z",
		"2026-11-24T18:00:00Z": "2026-11-24T18:00:00Z",
		"2026-11-24T12:00":     "p.yaml:1: deadline: 2026-11-24T12:00:00+01:00 has passed: want a later time",
		"2026-11-24T11:30Z":    "2026-11-24T11:30:00Z",
		"2026-11-24T11:01Z":    "p.yaml:1: deadline: a task may take 10m0s: want a later time",
		"1m":                   "p.yaml:1: deadline: a task may take 10m0s: want a later time",
	} {
		p, err := plan.Parse("p.yaml", []byte("deadline: "+text+"\n"+of("a: {values: [1]}")), nil)
		if err != nil {
			t.Fatal(err)
		}
		due, err := p.Due(now)
		if got := due.Format(time.RFC3339); err == nil && got != want || err != nil && err.Error() != want {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, want)
		}
	}
	p := parse(t, "deadline: 1h\n"+of("a: {values: [1]}"), nil)
	if err := p.SetDeadline("2020-01-01"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Due(now); err == nil || err.Error() != "--deadline: 2020-01-01T00:00:00+01:00 has passed: want a later time" {
		t.Errorf("a flag instead of the file's deadline: %v", err)
	}
	if due, err := parse(t, of("a: {values: [1]}"), nil).Due(now); !due.IsZero() || err != nil {
		t.Errorf("without a deadline: %s, %v", due, err)
	}
}

func TestASlurmScriptIsAPlan(t *testing.T) {
	p, err := plan.Parse("jobs/run.sh", []byte(`#!/bin/bash -l
#SBATCH --job-name=wing -p long --output %A_%a.log
#SBATCH -a 1,3,5-9:2%8
#SBATCH -n2 --cpus-per-task 4 -N 1 --ntasks-per-node=4
#SBATCH --time=90:30
#SBATCH --output=other   # again
#SBATCH --mail-type=END
srun ./wing $SLURM_ARRAY_TASK_ID
#SBATCH --gres=gpu:1
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := plan.Task{
		Number: 3, Directory: "task-00003", Parameters: []plan.Parameter{{Name: "SLURM_ARRAY_TASK_ID", Value: "5"}}, Inputs: []string{"run.sh"},
		Command: []string{
			"/usr/bin/env", "SLURM_ARRAY_TASK_ID=5", "SLURM_ARRAY_TASK_COUNT=5", "SLURM_ARRAY_TASK_MIN=1", "SLURM_ARRAY_TASK_MAX=9", "SLURM_SUBMIT_DIR=.",
			"SLURM_CPUS_PER_TASK=4", "SLURM_NTASKS=2", "/bin/bash", "-l", "./run.sh",
		},
	}
	if d := cmp.Diff(want, p.Task(2)); d != "" {
		t.Error(d)
	}
	if got := fmt.Sprint(p.Name+" ", p.Len(), p.Cores, p.Wall, p.AtOnce, p.Ignored, p.AllInputs()); got != "wing 5 8 1h30m30s 8 [-p --output --mail-type] [{run.sh jobs/run.sh:1}]" {
		t.Error(got)
	}
}

func TestFaultsOfSlurmScripts(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"#!/bin/sh\n#SBATCH -n 1\n", "run.sh:1: the script has no indexes: want a line such as '#SBATCH --array=1-30'"},
		{"#!/bin/sh\n#SBATCH --array=9-1\n", `run.sh:2: --array: "9-1": want indexes such as 1-30`},
		{"#!/bin/sh\n#SBATCH --array=1-10001\n", `run.sh:2: --array: "1-10001": more than 10000 indexes`},
		{"#!/bin/sh\n\n#SBATCH --array=1 --nodes=2\n", `run.sh:3: --nodes: "2": want 1: a task has one node`},
		{"#!/bin/sh\n#SBATCH -a 1 --gres=gpu:1\n", "run.sh:2: --gres: a sweep does not do this: want --array,"},
		{"#!/bin/sh\n#SBATCH -a 1 -d afterok:1\n", "run.sh:2: -d: a sweep does not do this"},
		{"#!/bin/sh\n#SBATCH -a 1 -t 0\n", `run.sh:2: --time: "0": want minutes, MM:SS`},
		{"#!/bin/sh\n#SBATCH -a 1 --ntasks=2 --ntasks-per-node=1\n", "run.sh:1: --ntasks-per-node=1: want at least the 2 of --ntasks: a task has one node"},
		{"#!/bin/sh\n#SBATCH -a 1 -c x\n", `run.sh:2: --cpus-per-task: "x": want a whole number`},
		{"#!/bin/sh\n#SBATCH -a 1 'x\n", "run.sh:2: a quote that is not closed"},
		{"#!\n#SBATCH -a 1\n", "run.sh:1: the script has no interpreter: want a first line such as #!/bin/sh"},
	} {
		if _, err := plan.Parse("run.sh", []byte(c.text), nil); err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q\ngot  %v\nwant %s", c.text, err, c.want)
		}
	}
}

// What a plan was read as, its stored form has the same tasks.
func same(t *testing.T, p *plan.Plan) {
	t.Helper()
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var again plan.Plan
	if err := json.Unmarshal(b, &again); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < p.Len(); i += 1 + p.Len()/50 {
		if d := cmp.Diff(p.Task(i), again.Task(i)); d != "" || again.Len() != p.Len() {
			t.Fatalf("task %d of %d, %d: %s", i, p.Len(), again.Len(), d)
		}
	}
}

// Whatever a file holds, reading it ends; its faults have one line each, and a plan has tasks.
func FuzzParse(f *testing.F) {
	f.Add("sweep: wing\nparameters:\n  a: {range: [-45, 45], step: 2.5}\n  b: {values: [x, y]}\ntask:\n  command: [./x, '${a}', '${task}$$']\n  name: '${a}-${b}'\ndeadline: 6h\n", "")
	f.Add("parameters: {a: {random: [0, 1e3], count: 20, seed: 7}, c: {file: c}, zip: [a, b]}\ntask: {app: x, params: {p: '${b}'}, inputs: ['${b}=x']}\n", "b,d\n1,2\n")
	f.Add("#!/bin/sh -e\n#SBATCH -a 1-30:2%8 -n2 --time=1:00 -J 'a b'\n", "")
	f.Fuzz(func(t *testing.T, text, file string) {
		p, err := plan.Parse("f", []byte(text), func(string) ([]byte, error) { return []byte(file), nil })
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if strings.ContainsAny(line, "\x00\r") || !strings.Contains(line, ": ") {
					t.Fatalf("%q: %q", text, line)
				}
			}
			return
		}
		if n := p.Len(); n < 1 || n > plan.MaxTasks {
			t.Fatalf("%q: %d tasks", text, n)
		}
		if err := p.Check(); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		same(t, p)
	})
}

// A plan that comes in JSON is as good as one that was read, or refused.
func TestAPlanThatWasNotReadIsChecked(t *testing.T) {
	whole := `{"name":"p","axes":[{"name":"a","values":["1","2"],"with":0},{"name":"b","values":["x","y"],"with":0}],"cores":1,"wall":60000000000,"command":["true"],"strategy":"cost","equal":200,"retry_exit":1,"retry_site":5}`
	for _, change := range [][2]string{
		{"", ""}, {`"with":0},{`, `"with":-1},{`}, {`"with":0},{`, `"with":1},{`}, {`"with":0}]`, `"with":7}]`}, {`"y"`, `"y","z"`}, {`["1","2"]`, `[]`},
		{`"cores":1`, `"cores":0`}, {`"cores":1`, `"cores":1099511627776`}, {`"wall":6`, `"wall":-6`}, {`"wall":6`, `"deadline":-1,"wall":6`},
		{`"wall":6`, `"budget":-1,"wall":6`}, {`"wall":6`, `"at_once":-1,"wall":6`}, {"200", "-1"}, {`"wall":6`, `"outputs":["x"` + strings.Repeat(`,"x"`, 256) + `],"wall":6`}, {`exit":1`, `exit":-1`}, {`site":5`, `site":101`},
		{`"cost"`, `"zz"`}, {`["true"]`, `[]`}, {`["true"]`, `[""]`}, {`"wall":6`, `"app":"x","wall":6`},
		{`"wall":6`, `"directory":"../out-${task}","wall":6`}, {`"wall":6`, `"directory":"${a}","wall":6`}, {`"wall":6`, `"directory":"out","wall":6`},
	} {
		var p plan.Plan
		if err := json.Unmarshal([]byte(strings.Replace(whole, change[0], change[1], 1)), &p); err != nil {
			t.Fatal(change, err)
		}
		good := change[0] == "" || strings.Contains(change[1], "${a}")
		if err := p.Check(); (err == nil) != good {
			t.Errorf("%q: %v", change[1], err)
		}
	}
}

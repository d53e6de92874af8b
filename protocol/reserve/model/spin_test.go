package model_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Bounds of a search. One that reaches them is not exhaustive, and fails.
const (
	maxDepth  = "200000" // steps of one run
	hashBits  = "24"     // of the table of states; more states only make it slower
	maxMemory = "6000"   // MB
)

// Ways to compile spin's verifier. Everything in these models is shared, so
// partial order reduction has nothing to gain. The quick way compiles fast and
// looks first where most mutants are found; it sees the same states.
const (
	quick    = "-O0 -DSAFETY -DNOFAIR -DNOREDUCE -DP_REVERSE -DT_REVERSE"
	thorough = "-O2 -DSAFETY -DNOFAIR -DNOREDUCE"
	shortest = "-O0 -DSAFETY -DNOFAIR -DBFS"  // finds the shortest trail
	cycles   = "-O1 -DNP -DNOFAIR -DNOREDUCE" // with -l: cycles without progress
)

// model is a Promela file with its options, in a directory of its own.
type model struct {
	t       *testing.T
	dir     string
	file    string
	options []string
}

// open copies a model to where spin may leave its files.
func open(t *testing.T, file string, options ...string) model {
	t.Helper()
	for _, program := range []string{"spin", "cc"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed: the model cannot be checked here", program)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m := model{t: t, dir: t.TempDir(), file: file, options: options}
	if err := os.WriteFile(filepath.Join(m.dir, file), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m model) run(name string, args ...string) string {
	m.t.Helper()
	cmd := exec.CommandContext(m.t.Context(), name, args...)
	cmd.Dir = m.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// spin runs spin itself on the model.
func (m model) spin(args ...string) string {
	m.t.Helper()
	return m.run("spin", append(append(args, m.options...), m.file)...)
}

// search compiles the model's verifier and runs it.
func (m model) search(compile string, args ...string) result {
	m.t.Helper()
	m.spin("-a")
	m.run("cc", append(strings.Fields(compile), "-w", "-DMEMLIM="+maxMemory, "-o", "pan", "pan.c")...)
	out := m.run("./pan", append([]string{"-m" + maxDepth, "-w" + hashBits}, args...)...)
	return read(m.t, out)
}

// result is what a verifier reports.
type result struct {
	errors, states, depth int
	violated              string // what was violated, if anything
	unreached             []string
	out                   string
}

func read(t *testing.T, out string) result {
	t.Helper()
	var (
		summary   = regexp.MustCompile(`depth reached (\d+), errors: (\d+)`)
		stored    = regexp.MustCompile(`(?m)^ *(\S+) states, stored`)
		violation = regexp.MustCompile(`(?m)^pan:1: (.*) \(at depth`)
		unreached = regexp.MustCompile(`(?m)^\t(.*:\d+, state \d+, .*)$`)
	)
	s, n := summary.FindStringSubmatch(out), stored.FindStringSubmatch(out)
	if s == nil || n == nil {
		t.Fatalf("the verifier did not report:\n%s", out)
	}
	states, err := strconv.ParseFloat(n[1], 64) // it prints large numbers as 1.2e+08
	if err != nil {
		t.Fatal(err)
	}
	r := result{states: int(states), out: out}
	r.depth, _ = strconv.Atoi(s[1])
	r.errors, _ = strconv.Atoi(s[2])
	if v := violation.FindStringSubmatch(out); v != nil {
		r.violated = v[1]
	}
	for _, u := range unreached.FindAllStringSubmatch(out, -1) {
		if !strings.Contains(u[1], `"-end-"`) {
			r.unreached = append(r.unreached, u[1])
		}
	}
	return r
}

// exhaustive fails the test unless the whole space was searched and nothing was
// found.
func (r result) exhaustive(t *testing.T) {
	t.Helper()
	for _, cut := range []string{"max search depth too small", "Search not completed", "reached -DMEMLIM", "out of memory"} {
		if strings.Contains(r.out, cut) {
			t.Fatalf("the search was cut short: %s\n%s", cut, r.out)
		}
	}
	if r.errors != 0 {
		t.Fatalf("violated: %s\n%s", r.violated, r.out)
	}
}

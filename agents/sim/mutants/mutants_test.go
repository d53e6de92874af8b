package mutants_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	adversaries "ramp/agents/sim/adversary"
	"ramp/agents/sim/federation"
)

var (
	all   = flag.Bool("hunt", false, "hunt every mutant, not only those that are found at once")
	seeds = flag.Uint64("seeds", 500, "seeds within which a mutant must be found")
)

// root is the module's, from here.
const root = "../../.."

// mutant is a patch and what its first lines say.
type mutant struct {
	name, path, why, invariant string
	adversary                  string   // that is enough to find it; may be empty
	files                      []string // that it changes
}

func mutants(t *testing.T) []mutant { return mutantsIn(t, "testdata", 12) }

func mutantsIn(t *testing.T, dir string, least int) []mutant {
	paths, err := filepath.Glob(dir + "/*.patch")
	if err != nil || len(paths) < least {
		t.Fatalf("%s: %d patches, want at least %d: %v", dir, len(paths), least, err)
	}
	var list []mutant
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m := mutant{name: strings.TrimSuffix(filepath.Base(path), ".patch"), path: path}
		for _, line := range strings.Split(string(text), "\n") {
			if file, ok := strings.CutPrefix(line, "+++ b/"); ok {
				m.files = append(m.files, strings.TrimSpace(file))
			}
		}
		m.why = header(t, path, text, `^# (.*)\n`)
		m.invariant = header(t, path, text, `\n# invariant: (.*)\n`)
		for _, line := range []*regexp.Regexp{adversaryLine, indexLine} {
			if match := line.FindSubmatch(text); match != nil {
				m.adversary = string(match[1])
			}
		}
		list = append(list, m)
	}
	return list
}

var (
	adversaryLine = regexp.MustCompile(`\n# adversary: (.*)\n`)
	indexLine     = regexp.MustCompile(`\n# index: (.*)\n`)
)

func header(t *testing.T, path string, text []byte, pattern string) string {
	match := regexp.MustCompile(pattern).FindSubmatch(text)
	if match == nil {
		t.Fatalf("%s: want a line such as %s", path, pattern)
	}
	return string(match[1])
}

// apply makes copies of the files that a mutant changes, with the change, and
// returns an overlay that puts them in place of the real ones.
func apply(t *testing.T, m mutant) string {
	dir := t.TempDir()
	replace := map[string]string{}
	for _, file := range m.files {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		real, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		replace[real] = filepath.Join(dir, file)
		must(t, os.MkdirAll(filepath.Dir(replace[real]), 0o755))
		must(t, os.WriteFile(replace[real], text, 0o644))
	}
	patch, err := filepath.Abs(m.path)
	must(t, err)
	if out, err := exec.Command("git", "-C", dir, "apply", "--unsafe-paths", "--directory", dir, patch).CombinedOutput(); err != nil {
		t.Fatalf("%s does not apply any more: %v\n%s", m.name, err, out)
	}
	overlay := filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": replace})
	must(t, err)
	must(t, os.WriteFile(overlay, text, 0o644))
	return overlay
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestEveryMutantStillAppliesAndChangesSomething(t *testing.T) {
	for _, m := range slices.Concat(mutants(t), indexMutants(t), federationMutants(t)) {
		dir := filepath.Dir(apply(t, m))
		for _, file := range m.files {
			before, err := os.ReadFile(filepath.Join(root, file))
			must(t, err)
			after, err := os.ReadFile(filepath.Join(dir, file))
			must(t, err)
			if bytes.Equal(before, after) {
				t.Errorf("%s leaves %s as it is", m.name, file)
			}
		}
	}
}

// Whatever an adversary does, honest parties lose nothing: that this is looked at
// with each of them is shown by a defence against it that is missing.
func TestEveryAdversaryHasAMutant(t *testing.T) {
	has := map[string]bool{}
	for _, m := range mutants(t) {
		has[m.adversary] = true
	}
	for _, kind := range adversaries.Kinds() {
		if !has[kind] {
			t.Errorf("no mutant is found by %s alone", kind)
		}
		delete(has, kind)
	}
	delete(has, "")
	for kind := range has {
		t.Errorf("a mutant names the adversary %q, which there is not", kind)
	}
}

// quick are hunted in every run of the tests; -hunt hunts all.
func quick(name string) bool { return name == "send-before-save" || name == "map-order" }

// TestMutantsAreFound hunts each in hostile markets, and, if its patch names an
// adversary, in markets in which that adversary is all that is wrong.
func TestMutantsAreFound(t *testing.T) {
	for _, m := range mutants(t) {
		if !*all && !quick(m.name) {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			binary := filepath.Join(t.TempDir(), "hunt")
			build := exec.Command("go", "test", "-c", "-overlay", apply(t, m), "-o", binary, ".")
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Logf("%s: %s", m.name, hunt(t, binary, m, ""))
			if m.adversary != "" {
				t.Logf("%s: %s alone: %s", m.name, m.adversary, hunt(t, binary, m, m.adversary))
			}
		})
	}
}

// indexMutants lack a defence against dishonest indexes, which only crowds have.
func indexMutants(t *testing.T) []mutant { return mutantsIn(t, "testdata/index", 4) }

// Each kind of dishonest index has a mutant, in whose market it does harm that the test of
// package experiment sees. Without -hunt one is tried.
func TestDishonestIndexesHarmTheirMutants(t *testing.T) {
	text, err := os.ReadFile("../experiment/cheats_test.go")
	must(t, err)
	var missing []string
	for _, match := range regexp.MustCompile(`(?m)^\t\t"(\w+)": func`).FindAllSubmatch(text, -1) {
		missing = append(missing, string(match[1]))
	}
	if len(missing) < 4 {
		t.Fatalf("%q: want at least four kinds", missing)
	}
	for i, m := range indexMutants(t) {
		missing = slices.DeleteFunc(missing, func(kind string) bool { return kind == m.adversary })
		if !*all && i > 0 {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			run := "TestACheatingIndexMovesNoPrice/" + m.adversary
			out, err := exec.Command("go", "test", "-vet=off", "-overlay", apply(t, m), "-run", run+"$", "../experiment").CombinedOutput()
			if err == nil || !bytes.Contains(out, []byte("--- FAIL: "+run)) {
				t.Errorf("not seen: %s: %v\n%s", m.why, err, out)
			}
		})
	}
	if len(missing) > 0 {
		t.Errorf("no mutant for %q", missing)
	}
}

// federationMutants are mistakes of sites that share cores by priority.
func federationMutants(t *testing.T) []mutant { return mutantsIn(t, "testdata/federation", 9) }

// Each mistake of a federation is seen by the exploration of package federation, and each
// invariant and adversary has one. Without -hunt one is tried.
func TestMutantsOfFederationsAreFound(t *testing.T) {
	missing := append([]string{"once", "fits", "below", "level", "member", "ends"}, federation.Kinds()...)
	for _, m := range federationMutants(t) {
		missing = slices.DeleteFunc(missing, func(s string) bool { return s == m.invariant || s == m.adversary })
	}
	if len(missing) > 0 {
		t.Errorf("no mutant for %q", missing)
	}
	for i, m := range federationMutants(t) {
		if !*all && i > 0 {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			const run = "TestHostileFederations"
			out, err := exec.Command("go", "test", "-vet=off", "-overlay", apply(t, m), "-run", run+"$", "../federation").CombinedOutput()
			if err == nil || !bytes.Contains(out, []byte("--- FAIL: "+run)) {
				t.Errorf("not seen: %s: %v\n%s", m.why, err, out)
			}
		})
	}
}

// hunt looks for a seed that shows the mistake, and says which.
func hunt(t *testing.T, binary string, m mutant, alone string) string {
	out, err := exec.Command(binary, "-hunter", "-seeds", fmt.Sprint(*seeds), "-adversary", alone).Output()
	must(t, err)
	var f found
	must(t, json.Unmarshal(out, &f))
	if f.Seed == 0 {
		t.Fatalf("not found within %d seeds (adversary %q): %s", *seeds, alone, m.why)
	}
	return fmt.Sprintf("found by seed %d: %s: %s", f.Seed, f.Invariant, f.What)
}

package model_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const full = "RAMP_MODEL" // "full": three sellers too, and every mutant

func sellers(k int) string { return fmt.Sprintf("-DK=%d", k) }

func TestTheCommitIsAllOrNothing(t *testing.T) {
	for _, k := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("with %d sellers", k), func(t *testing.T) {
			if k == 3 && os.Getenv(full) != "full" {
				t.Skip("three sellers take minutes: set " + full + "=full")
			}
			if k > 1 && testing.Short() {
				t.Skip("short")
			}
			r := open(t, "commit.pml", sellers(k)).search(thorough)
			r.exhaustive(t)
			for _, u := range r.unreached {
				t.Errorf("no run gets to %s: the model lacks what leads there", u)
			}
			t.Logf("k=%d: %d states, depth %d, 0 errors", k, r.states, r.depth)
		})
	}
}

// Without a cycle after the last fault, every run ends; and at its end the model
// asserts that nobody holds, doubts or waits. Together that is liveness.
func TestEveryRunEndsOnceFaultsStop(t *testing.T) {
	k := 1
	if os.Getenv(full) == "full" {
		k = 2
	}
	r := open(t, "commit.pml", sellers(k)).search(cycles, "-l")
	r.exhaustive(t)
	t.Logf("k=%d: no cycle once faults stop", k)
}

// mutants are the options of commit.pml; each breaks one rule.
func mutants() []string {
	return []string{
		"SELLER_SENDS_BEFORE_SAVE", "BANK_SENDS_BEFORE_SAVE", "USER_SENDS_BEFORE_SAVE",
		"SELLER_ANSWER_OVERTAKES_SAVE", "BANK_ANSWER_OVERTAKES_SAVE",
		"FORGETS_DOUBT", "FORGETS_AFTER_RESTORE", "RESTORES_HELD",
		"SETTLES_TWICE", "SETTLES_WITHOUT_LAST_COPY", "ACCEPTS_PAST_SETTLE_BY",
		"VOIDS_FROM_MEMORY", "VOIDS_ON_REPLAY", "DEPOSED_LEADER_WRITES",
		"FREES_ON_TIMEOUT", "FREES_ON_CANCEL", "COUNTERSIGNS_LATE",
		"PREPARED_IS_SENT", "FORGETS_PREPARED", "SELLER_DOES_NOT_ASK", "BANK_DOES_NOT_EXPIRE", "LOSES_FOR_EVER",
	}
}

func TestEveryMutantIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	found, list := 0, mutants()
	if os.Getenv(full) != "full" {
		list = []string{list[0], list[5], list[10], list[15]} // each is a C program to be compiled
	}
	for _, name := range list {
		t.Run(name, func(t *testing.T) {
			m := open(t, "commit.pml", sellers(2), "-DMUTANT_"+name)
			r, want := m.hunt(name)
			if r.errors == 0 || !strings.HasPrefix(r.violated, want) {
				t.Fatalf("the mutant lives:\n%s", r.out)
			}
			if _, err := os.Stat(filepath.Join(m.dir, "commit.pml.trail")); err != nil {
				t.Error("no trail was left:", err)
			}
			found++
			t.Logf("%d states to: %s", r.states, r.violated)
		})
	}
	t.Logf("%d of %d mutants found", found, len(list))
}

// hunt searches for a mutant and says what it should find. The one that never
// stops losing messages breaks no assertion: it has a cycle.
func (m model) hunt(name string) (r result, want string) {
	if name == "LOSES_FOR_EVER" {
		return m.search(cycles, "-l"), "non-progress cycle"
	}
	return m.search(quick), "assertion violated"
}

func TestEveryMutantIsListedAndExplained(t *testing.T) {
	text, doc := file(t, "commit.pml"), file(t, "../../../docs/MODEL.md")
	var there []string
	for _, m := range regexp.MustCompile(`(?m)^#if.*MUTANT_([A-Z_]+)$`).FindAllStringSubmatch(text, -1) {
		there = append(there, m[1])
	}
	slices.Sort(there)
	there = slices.Compact(there)
	listed := slices.Sorted(slices.Values(mutants()))
	if !slices.Equal(there, listed) {
		t.Errorf("commit.pml has the mutants %v, the test %v", there, listed)
	}
	for _, name := range listed {
		if !strings.Contains(doc, "| `"+name+"` |") {
			t.Errorf("docs/MODEL.md does not explain %s", name)
		}
	}
}

func TestTheSourceCommitsByHalves(t *testing.T) {
	for _, c := range []struct{ name, option, story string }{
		{"not without faults", "-DNOTHING", ""},
		{"when one message is lost", "-DLOSS", "source-loss.txt"},
		{"when the user crashes once", "-DCRASH", "source-crash.txt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := open(t, "source.pml", c.option)
			r := m.search(shortest)
			if c.story == "" {
				r.exhaustive(t)
				return
			}
			if r.errors == 0 {
				t.Fatalf("no half-commit was found:\n%s", r.out)
			}
			sameStory(t, filepath.Join("testdata", c.story), m.spin("-T", "-t", "-g"))
			t.Log("source: half-commit found")
		})
	}
}

// sameStory compares what the replay of a trail says happened, and how it ended, with
// the story that docs/MODEL.md tells or links to.
func sameStory(t *testing.T, golden, replay string) {
	t.Helper()
	told := regexp.MustCompile(`^(U|R\d|B|confirm|agree|accept)\b|^\s+(slot|paid)\[\d\] = |text of failed assertion`)
	var lines []string
	for _, line := range strings.Split(replay, "\n") {
		if told.MatchString(line) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	got := strings.Join(lines, "\n") + "\n"
	if want := file(t, golden); got != want {
		t.Errorf("%s tells\n%s\nthe trail tells\n%s", golden, want, got)
	}
	if doc := file(t, "../../../docs/MODEL.md"); !strings.Contains(doc, got) && !strings.Contains(doc, filepath.Base(golden)) {
		t.Errorf("docs/MODEL.md neither has the story of %s nor links to it", golden)
	}
}

func file(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

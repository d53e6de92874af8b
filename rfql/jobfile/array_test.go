package jobfile_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/rfql/jobfile"
)

func TestParseArray(t *testing.T) {
	for text, want := range map[string]string{
		"1-5":       "[1 2 3 4 5] 0",
		"1-30%8":    "[1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30] 8",
		"9,1,5,1":   "[1 5 9] 0",
		"1-10:4":    "[1 5 9] 0",
		"0":         "[0] 0",
		"3-1":       `"3-1": want indexes`,
		"":          `"": want indexes`,
		"1-":        `"1-": want indexes`,
		"1:2":       `"1:2": want indexes`,
		"1-9:0":     `"1-9:0": want indexes`,
		"+1":        `"+1": want indexes`,
		"1%0":       `"1%0": want 1 to 256 after the %`,
		"1-1001":    `"1-1001": more than 1000 indexes`,
		"1-9999999": `"1-9999999": want indexes`,
	} {
		a, err := jobfile.ParseArray(text)
		got := fmt.Sprint(a.Indexes, a.Slots)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// Every index is in one share, and no share has two more than another.
func TestSharesAreFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, slots := rapid.IntRange(1, 60).Draw(t, "n"), rapid.IntRange(1, 20).Draw(t, "slots")
		a := jobfile.Array{}
		for i := range n {
			a.Indexes = append(a.Indexes, 3*i)
		}
		shares := a.Shares(slots)
		var all []int
		for _, s := range shares {
			if len(s) == 0 || len(s) < len(shares[0])-1 || len(s) > len(shares[0]) {
				t.Fatalf("shares %v", shares)
			}
			all = append(all, s...)
		}
		if slices.Sort(all); !slices.Equal(all, a.Indexes) || len(shares) > slots {
			t.Fatalf("%v in shares %v", a.Indexes, shares)
		}
	})
}

// The runner is played as a site plays it: by the shell, in a directory with the inputs.
func TestTheRunnerRunsItsShare(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"data file": "in\n", ".hidden": "h\n",
		"prog": "#!/bin/sh\ncat 'data file' .hidden >\"out-$1\"\necho \"$RAMP_ARRAY_INDEX $SLURM_ARRAY_TASK_ID $*\"\nln -s / odd\n[ \"$RAMP_ARRAY_INDEX\" != 5 ] || exit 3\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	argv := jobfile.Runner([]int{1, 5, 9}, time.Minute, []string{"./prog", "{}-{}.csv", "$(touch no); 'x", ""})
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if c.ProcessState.ExitCode() != 3 || string(out) != "index 1: exited with 0\nindex 5: exited with 3\nindex 9: exited with 0\n" {
		t.Fatalf("%v: %s", err, out)
	}
	var files []string
	_ = filepath.Walk(dir, func(p string, info os.FileInfo, err error) error {
		if rel, _ := filepath.Rel(dir, p); err == nil && !info.IsDir() && strings.Contains(rel, "/") {
			b, _ := os.ReadFile(p)
			files = append(files, rel+": "+string(b))
		}
		return err
	})
	var want []string
	for _, i := range []int{1, 5, 9} {
		code := 0
		if i == 5 {
			code = 3
		}
		want = append(want, fmt.Sprintf("%d/exit: %d\n", i, code), fmt.Sprintf("%[1]d/log: %[1]d %[1]d %[1]d-%[1]d.csv $(touch no); 'x \n", i), fmt.Sprintf("%[1]d/out-%[1]d-%[1]d.csv: in\nh\n", i))
	}
	if !slices.Equal(files, want) {
		t.Errorf("left %q\nwant %q", files, want)
	}
}

// An index that takes longer than it may is ended, and the next one runs.
func TestTheRunnerBoundsAnIndex(t *testing.T) {
	argv := jobfile.Runner([]int{1, 2}, time.Second, []string{"sh", "-c", "[ {} = 2 ] || exec tail -f /dev/null"})
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir = t.TempDir()
	out, _ := c.CombinedOutput()
	if c.ProcessState.ExitCode() != 124 || string(out) != "index 1: exited with 124\nindex 2: exited with 0\n" {
		t.Fatalf("%d: %s", c.ProcessState.ExitCode(), out)
	}
}

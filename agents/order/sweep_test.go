package order_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ramp/agents/order"
	"ramp/agents/user/sweep/plan"
)

// The program of a sweep is brought as that of a job is: if it is a file here, and no input brings it.
func TestASweepBringsItsProgram(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"wing", "bin/wing-a", "bin/wing-b", "angle=1.dat"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		command, inputs string
		want            []string // inputs, or what is missing
		word            string
	}{
		{`[./wing, "${x}"]`, `[]`, []string{"./wing=wing"}, "./wing"},
		{`[./wing]`, `[wing]`, []string{"wing"}, "./wing"},
		{`["bin/wing-${x}"]`, `[]`, []string{"bin/wing-a=bin/wing-a", "bin/wing-b=bin/wing-b"}, "./bin/wing-a"},
		{`["bin/wing-${x}"]`, `[bin]`, []string{"bin"}, "bin/wing-a"},
		{`[sh, -c, "./wing ${x}"]`, `[]`, []string{"./wing=wing"}, "sh"},
		{`[wing]`, `["angle=1.dat"]`, []string{"angle=1.dat"}, "wing"},
		{`[/bin/wing]`, `[]`, nil, "/bin/wing"},
		{`[./none]`, `[]`, []string{"p.yaml:4: input ./none: no such"}, ""},
		{`[wing]`, `["none.dat"]`, []string{"p.yaml:5: input none.dat: no such"}, ""},
	} {
		doc := "parameters:\n  x: {values: [a, b]}\ntask:\n  command: " + c.command + "\n  inputs: " + c.inputs + "\n"
		p, err := plan.Parse("p.yaml", []byte(doc), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := order.SweepFiles(p, dir); err != nil {
			if c.word != "" || !strings.HasPrefix(err.Error(), c.want[0]) {
				t.Errorf("%s, %s: %v", c.command, c.inputs, err)
			}
			continue
		}
		var got []string
		for _, in := range p.AllInputs() {
			got = append(got, in.Spec)
		}
		if word := p.Task(0).Command[0]; !slices.Equal(got, c.want) || word != c.word {
			t.Errorf("%s, %s: inputs %q, want %q; it runs %s, want %s", c.command, c.inputs, got, c.want, word, c.word)
		}
	}
}

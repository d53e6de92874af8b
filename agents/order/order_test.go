package order_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ramp/agents/control"
	"ramp/agents/order"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql/jobfile"
)

// In a directory with files, what a command brings and how it reads at the site.
func TestAProgramThatIsAFileHereComesAlong(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"here/prog", "here/bin/tool", "up"} {
		_ = os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(dir, "here"))
	for _, c := range []struct {
		name, command, env, script, want string
	}{
		{"beside", "./prog a", "", "", "./prog a | prog x"},
		{"below", "bin/tool", "", "", "./bin/tool | bin/tool x"},
		{"elsewhere", "../up a", "", "", "./up a | up x"},
		{"the site's, by name", "python3 prog", "", "", "python3 prog |"},
		{"the site's, by path", "/bin/true", "", "", "/bin/true |"},
		{"nowhere", "./none", "", "", "./none is not a file here"},
		{"a directory", "./bin", "", "", "./bin is a directory, not a program"},
		{"in a line for the shell", "sh -c ./prog~>~out", "", "", "sh -c ./prog > out | prog x"},
		{"a line that begins with the site's", "sh -c cat~./prog", "", "", "sh -c cat ./prog |"},
		{"a script", "x a", "", "../up", "./up a | up x"},
		{"variables", "./prog a", "A=1 B=x~$(id);'\" A=2", "", "env A=2 B=x $(id);'\" ./prog a | prog x"},
		{"a name of the site", "./prog", "RAMP_JOB=x", "", "names that begin with RAMP_ are set by the site"},
		{"no name", "./prog", "=x", "", "want NAME=VALUE"},
		{"an odd name", "./prog", "A;B=x", "", "want NAME=VALUE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := order.Run{Script: c.script, Env: strings.Fields(c.env)}
			for i := range r.Env {
				r.Env[i] = strings.ReplaceAll(r.Env[i], "~", " ")
			}
			command := strings.Fields(c.command)
			for i := range command {
				command[i] = strings.ReplaceAll(command[i], "~", " ")
			}
			r.Commands = [][]string{command}
			p, _, err := r.Program("request")
			got := fmt.Sprint(err)
			if err == nil {
				got = strings.Join(p.Command, " ") + " |"
				for _, in := range p.Inputs {
					got += " " + in.File.Path
					if in.File.Exec {
						got += " x"
					}
				}
			}
			if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if p, _, err := (order.Run{In: []string{"prog"}, Commands: [][]string{{"./prog"}}}).Program(""); err != nil || len(p.Inputs) != 1 || !p.Inputs[0].File.Exec {
		t.Errorf("brought by --in as well: %+v, %v", p, err)
	}
}

// ended is an array of which some indexes have ended with a code.
func ended(codes map[int]int) message.Run {
	var u message.RunUnit
	for index, code := range codes {
		sum := sha256.Sum256([]byte(fmt.Sprintln(code)))
		u.Status.Outputs = append(u.Status.Outputs,
			protocol.StagedFile{Path: fmt.Sprintf("%d/exit", index), SHA256: hex.EncodeToString(sum[:])},
			protocol.StagedFile{Path: fmt.Sprintf("%d/sub/exit", index), SHA256: hex.EncodeToString(sum[:])})
	}
	return message.Run{Units: []message.RunUnit{{}, u}}
}

func TestWhatIsLeftOfAnArray(t *testing.T) {
	a, err := jobfile.ParseArray("1-4")
	if err != nil {
		t.Fatal(err)
	}
	results := order.Results(ended(map[int]int{1: 0, 2: 255, 4: 0}))
	if left := order.Left(a, results).Indexes; !slices.Equal(left, []int{2, 3}) {
		t.Errorf("left %v", left)
	}
	if got, want := order.Summary(a, results), "2 of 4 indexes ended with 0; 2 ended with 255, 3 did not end"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	p, err := order.Divide(message.Program{Command: []string{"x"}}, order.Left(a, results), 2, time.Minute)
	if err != nil || len(p.Commands) != 2 || !p.Array || !slices.Contains(p.Of(1), "3") || slices.Contains(p.Of(1), "2") {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestParseAfter(t *testing.T) {
	got, err := order.ParseAfter([]string{"afterok:a:b,afterany:c", "afterok:d"})
	if want := []order.After{{"a", true}, {"b", true}, {"c", false}, {"d", true}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for _, s := range []string{"", "a", "afterok", "afterok:", "after:a", "afterok:a,"} {
		if _, err := order.ParseAfter([]string{s}); err == nil {
			t.Errorf("%q is taken", s)
		}
	}
}

// An array has no slots beyond the cores of the market, whatever it allows: they would begin
// only when the first have ended.
func TestAnArrayFitsTheMarket(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	control.Resources.Answer(mux, func(context.Context, struct{}) ([]control.ResourceLine, error) {
		return []control.ResourceLine{{Cores: 2}, {Cores: 3}}, nil
	})
	for _, c := range []struct {
		array       string
		cores, want int
	}{{"1-30%8", 1, 5}, {"1-30%4", 1, 4}, {"1-30", 1, 5}, {"1-30%8", 2, 2}, {"1-30", 4, 1}, {"1-3%8", 1, 3}} {
		a, err := jobfile.ParseArray(c.array)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := order.Slots(t.Context(), control.Local(mux), a, c.cores); n != c.want || err != nil {
			t.Errorf("%s of %d cores each: %d slots, %v; want %d", c.array, c.cores, n, err, c.want)
		}
	}
}

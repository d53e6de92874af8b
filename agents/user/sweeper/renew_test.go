package sweeper_test

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"ramp/agents/user/sweep"
	"ramp/agents/user/sweep/plan"
	"ramp/agents/user/sweeper"
	"ramp/protocol"
	"ramp/protocol/message"
)

// launching is an agent with a lease that has begun, which keeps what it is to launch.
type launching struct {
	refusing
	runs []message.Run
}

func (a *launching) Launch(_ time.Time, r message.Run) protocol.Output {
	a.runs = append(a.runs, r)
	return protocol.Output{}
}

// finding reads files of 2 bytes that are there: a directory's are below it.
func finding(files ...string) func(spec string) ([]message.RunInput, error) {
	return func(spec string) (list []message.RunInput, err error) {
		source, name, named := strings.Cut(spec, "=")
		if !named {
			name = path.Base(source)
		}
		for _, f := range files {
			if rest, below := strings.CutPrefix(f, source); below && (rest == "" || rest[0] == '/') {
				list = append(list, message.RunInput{File: protocol.StagedFile{Path: name + rest, Size: 2}, Source: f})
			}
		}
		if list == nil {
			err = fmt.Errorf("%s is gone", source)
		}
		return list, err
	}
}

func anything(string, *message.Program) error { return nil }

// A retry reads the inputs of the plan again, as an order does: a directory may have other files. Of a sweep
// from an earlier version, whose directory is not known, it reads the old files.
func TestARetryReadsADirectoryAgain(t *testing.T) {
	p, err := plan.Parse("plan.yaml", []byte("task: {command: [./data/mend], inputs: [data]}\nparameters: {x: {values: [1, 2]}}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	order := message.SweepOrder{Out: "/out", Dir: "/plan"}
	if order.Plan, err = json.Marshal(p); err != nil {
		t.Fatal(err)
	}
	if _, err := sweeper.Complete(&order, finding("/plan/data/gone", "/plan/data/mend"), anything); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, dir string
		there     []string
		want      string // paths; empty: refused
	}{
		{"a file more and one less", "/plan", []string{"/plan/data/mend", "/plan/data/more"}, "data/mend data/more"},
		{"its old files", "", []string{"/plan/data/gone", "/plan/data/mend", "/plan/data/more"}, "data/gone data/mend"},
		{"an old file is gone", "", []string{"/plan/data/mend"}, ""},
		{"the directory is gone", "/plan", nil, ""},
	} {
		s := sweeper.New("me", &launching{})
		begun := order
		begun.Dir = c.dir
		if _, err := s.Order(dawn, begun, nil); err != nil {
			t.Fatal(err)
		}
		now, _ := s.Ordered(order.ID)
		_, err := sweeper.Complete(&now, finding(c.there...), anything)
		var paths []string
		for _, in := range now.Inputs["data"] {
			paths = append(paths, in.File.Path)
		}
		if got := strings.Join(paths, " "); (err == nil) != (c.want != "") || err == nil && got != c.want || now.ID != order.ID {
			t.Errorf("%s: sweep %s has %q, %v", c.name, now.ID, got, err)
		}
	}
}

// A retry sends the inputs as they are now, also after a restart, and the order of a sweep with them,
// or with those it began with, goes on with the one that was retried.
func TestARetrySendsARepairedProgram(t *testing.T) {
	p, err := plan.Parse("plan.yaml", []byte("task: {command: [./wing], inputs: [wing], wall: 1m}\nparameters: {x: {values: [1, 2]}}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	order := message.SweepOrder{ID: "s", Out: "/out", Dir: "/plan", Inputs: map[string][]message.RunInput{"wing": {{File: protocol.StagedFile{Path: "wing", Size: 1}, Source: "/plan/wing"}}}}
	if order.Plan, err = json.Marshal(p); err != nil {
		t.Fatal(err)
	}
	failed := sweep.Attempt{Site: "a", How: sweep.Exited, Exit: 4}
	rows := tables{}
	row := order
	row.Plan = nil
	rows.put(t, sweeper.Table, "s", map[string]any{"order": row, "plan": p, "created": dawn, "digest": sweeper.ID("", order), "terms": sweep.Terms{Strategy: p.Strategy, Deadline: time.Hour}})
	rows.put(t, sweeper.TableTasks, "s.t00001", sweep.Task{State: sweep.Done, Attempts: []sweep.Attempt{{Site: "a", How: sweep.Succeeded}}})
	rows.put(t, sweeper.TableTasks, "s.t00002", sweep.Task{State: sweep.Failed, Attempts: []sweep.Attempt{failed, failed}})
	rows.put(t, sweeper.TableLeases, "s.l0001", sweep.Lease{Site: "a", Start: 0, End: 30 * time.Minute, Signed: true})
	a := &launching{}
	s := sweeper.New("me", a)
	if err := s.Restore(rows); err != nil {
		t.Fatal(err)
	}
	now, _ := s.Ordered("s")
	if _, err := sweeper.Complete(&now, finding(), anything); err == nil {
		t.Error("an input that is gone is renewed")
	}
	now, _ = s.Ordered("s")
	if _, err := sweeper.Complete(&now, finding("/plan/wing"), anything); err != nil || now.ID != "s" || order.Inputs["wing"][0].File.Size != 1 {
		t.Fatalf("renewed: %v, sweep %s, and the old inputs are %v", err, now.ID, order.Inputs)
	}
	inputs := now.Inputs
	out, err := s.Set(dawn.Add(time.Minute), message.SweepSet{ID: "s", Verb: message.SweepRetry, Inputs: inputs})
	if err != nil {
		t.Fatal(err)
	}
	if len(a.runs) != 1 || a.runs[0].Program.Inputs[0].File.Size != 2 {
		t.Fatalf("it runs %+v", a.runs)
	}
	i := slices.IndexFunc(out.Save, func(r protocol.Record) bool { return r.Table == sweeper.Table })
	rows[sweeper.Table]["s"] = out.Save[i].Value
	if s = sweeper.New("me", a); s.Restore(rows) != nil {
		t.Fatal("it is not restored")
	}
	again := order
	again.ID, again.Inputs = "other", inputs
	if got := s.Joined(again); got != "s" {
		t.Errorf("an order with the new inputs is sweep %s", got)
	}
	if again.Inputs = order.Inputs; s.Joined(again) != "s" {
		t.Error("an order with the old inputs is another sweep")
	}
	third := map[string][]message.RunInput{"wing": {{File: protocol.StagedFile{Path: "wing", Size: 3}, Source: "/plan/wing"}}}
	if again.Inputs = third; s.Joined(again) != "other" {
		t.Error("an order with inputs that it never had joins it")
	}
	again.ID = "s"
	for _, c := range []struct {
		inputs map[string][]message.RunInput
		goesOn bool
	}{{order.Inputs, true}, {inputs, true}, {third, false}} {
		again.Inputs = c.inputs
		if _, err := s.Order(dawn.Add(2*time.Minute), again, nil); (err == nil) != c.goesOn {
			t.Errorf("an order of it with a program of %d bytes: %v", c.inputs["wing"][0].File.Size, err)
		}
	}
	if now, _ := s.Ordered("s"); now.Inputs["wing"][0].File.Size != 2 {
		t.Errorf("it sends %v", now.Inputs)
	}
}

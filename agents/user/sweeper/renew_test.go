package sweeper_test

import (
	"encoding/json"
	"errors"
	"slices"
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

// A retry sends the inputs as they are now, also after a restart, and the order of a sweep with them
// goes on with the one that was retried.
func TestARetrySendsARepairedProgram(t *testing.T) {
	p, err := plan.Parse("plan.yaml", []byte("task: {command: [./wing], inputs: [wing], wall: 1m}\nparameters: {x: {values: [1, 2]}}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	describe := func(size int64) func(string, string) (protocol.StagedFile, error) {
		return func(_, path string) (protocol.StagedFile, error) {
			return protocol.StagedFile{Path: path, Size: size}, nil
		}
	}
	order := message.SweepOrder{ID: "s", Out: "/out", Inputs: map[string][]message.RunInput{"wing": {{File: protocol.StagedFile{Path: "wing", Size: 1}, Source: "/wing"}}}}
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
	old, _ := s.Inputs("s")
	if _, err := sweeper.Renewed(old, func(string, string) (protocol.StagedFile, error) { return protocol.StagedFile{}, errors.New("gone") }); err == nil {
		t.Error("an input that is gone is renewed")
	}
	inputs, err := sweeper.Renewed(old, describe(2))
	if err != nil || old["wing"][0].File.Size != 1 {
		t.Fatalf("renewed: %v, and the old inputs are %v", err, old)
	}
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
	if again.Inputs = order.Inputs; s.Joined(again) != "other" {
		t.Error("an order with the old inputs joins it")
	}
	if now, _ := s.Inputs("s"); now["wing"][0].File.Size != 2 {
		t.Errorf("it sends %v", now)
	}
}

package experiment_test

import (
	"context"
	"strings"
	"testing"

	"ramp/agents/sim/experiment"
)

// TestWithoutAProgramTheNetworkIsOnlySimulated: the report
// must not look as if processes had run.
func TestWithoutAProgramTheNetworkIsOnlySimulated(t *testing.T) {
	logs, err := experiment.LoadLogs("")
	if err != nil {
		t.Fatal(err)
	}
	lab, err := experiment.NewLab(logs)
	if err != nil {
		t.Fatal(err)
	}
	lab.Repeat = 1
	if err := lab.Settings.Set("users=2"); err != nil {
		t.Fatal(err)
	}
	e, err := experiment.Find("network")
	if err != nil {
		t.Fatal(err)
	}
	r, err := lab.Run(context.Background(), e)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Complete || !strings.Contains(r.NotRun, "no program") || len(r.Shapes) != 0 {
		t.Errorf("complete %v, not run %q, shapes %v: want that it is told, and nothing asserted", r.Complete, r.NotRun, r.Shapes)
	}
	var b strings.Builder
	if err := r.Markdown(&b); err != nil || !strings.Contains(b.String(), "**Not run**: the part on real processes: no program given.") {
		t.Errorf("error %v, report:\n%s", err, b.String())
	}
	if n := len(r.Tables[0].Rows); n != 2 {
		t.Errorf("%d simulated runs: want 2, with 1 and with 2 users", n)
	}
	for _, row := range r.Tables[0].Rows {
		if row[0] != row[len(row)-1] || row[2] == "0" {
			t.Errorf("run %v: want every user served, and responses", row)
		}
	}
}

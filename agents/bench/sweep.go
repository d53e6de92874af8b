package bench

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/user/sweep"
	"ramp/agents/user/sweep/plan"
	"ramp/protocol"
	"ramp/protocol/message"
)

// SweepFigures are the figures of a sweep; the names are fixed. The overhead of a task is the time until the
// next one begins in its lease, less what the program takes by itself.
type SweepFigures struct {
	Tasks        int     `json:"tasks"`
	Cores        int     `json:"cores"`
	Length       float64 `json:"task_ms"`
	Leases       int     `json:"leases"`
	Elapsed      float64 `json:"elapsed_s"`
	Overhead     float64 `json:"overhead_median_ms"`
	OverheadP95  float64 `json:"overhead_p95_ms"`
	BareOverhead float64 `json:"bare_overhead_median_ms"`
	BareP95      float64 `json:"bare_overhead_p95_ms"`
}

// Bounds of the benchmark.
const (
	MaxSweepTasks  = 1000
	MaxSweepLength = time.Minute
	sweepLook      = 250 * time.Millisecond // between looks at the sweep
)

// MeasureSweep has an agent run tasks that sleep, and then runs the same tasks one after the other without it.
func MeasureSweep(ctx context.Context, agent *control.Client, dir string, tasks int, length time.Duration) (f SweepFigures, err error) {
	seconds := strconv.FormatFloat(length.Seconds(), 'f', -1, 64)
	list, err := sweepTasks(ctx, agent, dir, tasks, seconds, &f)
	if err != nil {
		return f, err
	}
	over, leases := overheads(list, length)
	var bare []time.Duration
	for range tasks {
		begun := time.Now()
		if err := exec.CommandContext(ctx, "sleep", seconds).Run(); err != nil {
			return f, err
		}
		bare = append(bare, time.Since(begun)-length)
	}
	f.Tasks, f.Length, f.Leases = tasks, float64(length.Microseconds())/1000, leases
	f.Overhead, f.OverheadP95 = Quantile(over, .5), Quantile(over, .95)
	f.BareOverhead, f.BareP95 = Quantile(bare, .5), Quantile(bare, .95)
	return f, nil
}

func sweepTasks(ctx context.Context, agent *control.Client, dir string, tasks int, seconds string, f *SweepFigures) (list []message.SweepTask, err error) {
	p := plan.Plan{
		Name: "bench", Axes: []plan.Axis{{Name: "n"}}, Cores: 1, Wall: MaxSweepLength, Command: []string{"sleep", seconds},
		Deadline: 24 * time.Hour, Budget: 1000 * protocol.Credit, Strategy: sweep.Time,
	}
	for i := range tasks {
		p.Axes[0].Values = append(p.Axes[0].Values, strconv.Itoa(i+1))
	}
	q := control.SweepCall{ID: "bench", Dir: dir, Out: filepath.Join(dir, "out")}
	if q.Plan, err = json.Marshal(p); err != nil {
		return nil, err
	}
	var v message.Sweep
	if err := control.Sweep.Ask(ctx, agent, q, &v); err != nil {
		return nil, err
	}
	begun := time.Now()
	tick := time.NewTicker(sweepLook)
	defer tick.Stop()
	for v.State == "running" {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if err := control.SweepShow.Ask(ctx, agent, control.IDCall{ID: v.ID}, &v); err != nil {
			return nil, err
		}
	}
	if v.State != "done" {
		return nil, exit.Fail(exit.Failed, "", "the sweep is %s: %s", v.State, v.Why)
	}
	f.Elapsed = time.Since(begun).Seconds()
	err = control.SweepTasks.Ask(ctx, agent, control.IDCall{ID: v.ID}, &list)
	return list, err
}

// overheads are the times between tasks that follow each other in a lease, less their length.
func overheads(tasks []message.SweepTask, length time.Duration) (list []time.Duration, leases int) {
	began := map[string][]time.Time{}
	for _, t := range tasks {
		for _, a := range t.Attempts {
			began[a.Lease] = append(began[a.Lease], a.Started)
		}
	}
	for _, starts := range began { // in any order: the list is sorted
		slices.SortFunc(starts, time.Time.Compare)
		for i := range starts[1:] {
			list = append(list, starts[i+1].Sub(starts[i])-length)
		}
	}
	slices.Sort(list)
	return list, len(began)
}

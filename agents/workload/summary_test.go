package workload_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ramp/agents/workload"
)

func TestSummarise(t *testing.T) {
	l := mustRead(t, "; MaxProcs: 10\n; UnixStartTime: 77\n"+
		"1 100 20 100 1 -1 -1 1 300 -1 1 7 -1 -1 -1 -1 -1 -1\n"+
		"2 100 -1 100 8 -1 -1 8 -1 -1 1 8 -1 -1 -1 -1 -1 -1\n"+
		"3 150 10 40 3 -1 -1 3 60 -1 1 7 -1 -1 -1 -1 -1 -1\n"+
		"4 150 10 0 3 -1 -1 3 60 -1 5 9 -1 -1 -1 -1 -1 -1\n"+
		"5 160 900 40 4 -1 -1 3 60 -1 2 -1 -1 -1 -1 -1 -1 -1\n"+
		"5 160 0 40 4 -1 -1 3 60 -1 1 -1 -1 -1 -1 -1 -1 -1\n")
	want := workload.Summary{
		Jobs: 6, Ran: 4, Cores: 10, CoresTold: true, UnixStart: 77, First: 100, Last: 220,
		Load: 1180. / 1200, Peak: 16, BusyFrom: -1, Users: 2, Serial: .25, Pow2: .5,
		Size:  workload.Spread{Known: 4, Mean: 4, Median: 3, P95: 8, Max: 8},
		Run:   workload.Spread{Known: 4, Mean: 70, Median: 40, P95: 100, Max: 100},
		Wait:  workload.Spread{Known: 3, Mean: 10, Median: 10, P95: 20, Max: 20},
		Asked: workload.Spread{Known: 3, Mean: 140, Median: 60, P95: 300, Max: 300},
	}
	if diff := cmp.Diff(want, workload.Summarise(l)); diff != "" {
		t.Error(diff)
	}
	empty := workload.Summary{BusyFrom: -1}
	if diff := cmp.Diff(empty, workload.Summarise(&workload.Log{})); diff != "" {
		t.Error(diff)
	}
}

func TestSpreadOf(t *testing.T) {
	var v []int64
	for i := int64(100); i > 0; i-- {
		v = append(v, i)
	}
	if diff := cmp.Diff(workload.Spread{Known: 100, Mean: 50.5, Median: 50, P95: 95, Max: 100}, workload.SpreadOf(v)); diff != "" {
		t.Error(diff)
	}
}

// The rule that moves Curie's base times, on a log that is idle for a month, then
// half busy, and busy from day 40 on.
func TestFirstBusyWeek(t *testing.T) {
	const day = 86400
	l := &workload.Log{Comments: []string{"MaxProcs: 10"}}
	for d := int64(30); d < 60; d++ {
		procs := int32(5)
		if d >= 40 {
			procs = 8
		}
		l.Jobs = append(l.Jobs, workload.Job{Number: int32(d), Submit: d * day, Run: day, Procs: procs})
	}
	// A week of which x days have 8 cores: (8x + 5(7−x)) / 70 ≥ .6 from x = 7/3 on.
	want := int64(40*day - 7*day + 7*day/3)
	if got, ok := workload.FirstBusyWeek(l, .6); !ok || got != want {
		t.Errorf("first busy week at %d %v, want %d", got, ok, want)
	}
	if _, ok := workload.FirstBusyWeek(l, .81); ok {
		t.Error("a week with a load of .81 of a machine that is never busier than .8")
	}
}

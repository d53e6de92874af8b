package workload_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ramp/agents/workload"
)

const week = "; MaxJobs: 5\n; UnixStartTime: 1000000\n; StartTime: Mon Jan 12 13:46:40 UTC 1970\n; EndTime: once\n; Note: kept\n" +
	"1 100 0 10 4 -1 -1 4 9 -1 1 -1 -1 -1 -1 -1 -1 -1\n" +
	"2 200 0 10 8 -1 -1 8 9 -1 2 -1 -1 -1 -1 -1 -1 -1\n" +
	"2 -1 5 10 8 -1 -1 8 9 -1 3 -1 -1 -1 -1 -1 -1 -1\n" +
	"3 -1 0 10 2 -1 -1 2 9 -1 1 -1 -1 -1 -1 -1 -1 -1\n" +
	"4 300 0 60 2 -1 -1 2 9 -1 1 -1 -1 -1 -1 -1 1 -1\n"

func sliced(t *testing.T, c workload.Cut) *workload.Log {
	t.Helper()
	l, err := workload.Slice(mustRead(t, week), c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func numbers(l *workload.Log) []int32 {
	list := []int32{}
	for _, j := range l.Jobs {
		list = append(list, j.Number)
	}
	return list
}

func TestSliceKeeps(t *testing.T) {
	for name, c := range map[string]struct {
		cut  workload.Cut
		want []int32
	}{
		"everything":                             {workload.Cut{}, []int32{1, 2, 2, 3, 4}},
		"a window, to excluded":                  {workload.Cut{From: 100, To: 300}, []int32{1, 2, 2}},
		"a window to the end":                    {workload.Cut{From: 101}, []int32{2, 2, 4}},
		"a swapped job as one":                   {workload.Cut{Skip: 1, Jobs: 1}, []int32{2, 2}},
		"all but some, those without submit too": {workload.Cut{Skip: 2}, []int32{3, 4}},
		"jobs counted within the window":         {workload.Cut{From: 150, Skip: 1, Jobs: 5}, []int32{4}},
		"nothing":                                {workload.Cut{From: 301}, []int32{}},
	} {
		if diff := cmp.Diff(c.want, numbers(sliced(t, c.cut))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestSliceKeepsHeadersAndMakesThemTrue(t *testing.T) {
	l := sliced(t, workload.Cut{From: 300})
	want := []string{
		" MaxJobs: 1", " UnixStartTime: 1000000", " StartTime: Mon Jan 12 13:46:40 UTC 1970", " EndTime: Mon Jan 12 13:52:40 UTC 1970", " Note: kept",
		" MaxProcs: 8", " Note: a slice: 1 of 5 jobs, submitted from second 300 on",
	}
	if diff := cmp.Diff(want, l.Comments); diff != "" {
		t.Error(diff)
	}
	if l.Jobs[0].Submit != 300 || l.Capacity() != 8 {
		t.Errorf("submit %d, %d cores; want 300 and the 8 of the whole log", l.Jobs[0].Submit, l.Capacity())
	}
}

func TestRebaseMovesTimesAndDates(t *testing.T) {
	l := sliced(t, workload.Cut{From: 290, To: 400, Jobs: 9, Rebase: true})
	want := []string{
		" MaxJobs: 1", " UnixStartTime: 1000290", " StartTime: Mon Jan 12 13:51:30 UTC 1970", " EndTime: Mon Jan 12 13:52:40 UTC 1970",
		" Note: kept", " MaxProcs: 8", " Note: a slice: 1 of 5 jobs, submitted in seconds 290 to 400, jobs skipped 0, second 290 made 0",
	}
	if diff := cmp.Diff(want, l.Comments); diff != "" {
		t.Error(diff)
	}
	if l.Jobs[0].Submit != 10 {
		t.Errorf("submit %d, want 10", l.Jobs[0].Submit)
	}
	later := sliced(t, workload.Cut{From: 150, Rebase: true})
	if later.Jobs[1].Submit != -1 {
		t.Errorf("a later burst has submit time %d, want -1 as before", later.Jobs[1].Submit)
	}
}

func TestSliceRefuses(t *testing.T) {
	for name, c := range map[string]workload.Cut{
		"from below": {From: -1}, "to at from": {From: 5, To: 5}, "skip below": {Skip: -1}, "jobs below": {Jobs: -1},
		"from beyond": {From: workload.MaxTime + 1}, "skip beyond": {Skip: workload.MaxJobs + 1}, "jobs beyond": {Jobs: workload.MaxJobs + 1},
	} {
		if _, err := workload.Slice(mustRead(t, week), c); err == nil || !strings.HasPrefix(err.Error(), strings.Fields(name)[0]+" ") || !strings.Contains(err.Error(), ": want ") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Two halves are the whole, and a rebased half is the same machine on another clock.
func TestSlicesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLog(t, false)
		at := rapid.Int64Range(1, 60).Draw(t, "at")
		before, err1 := workload.Slice(l, workload.Cut{To: at})
		after, err2 := workload.Slice(l, workload.Cut{From: at, Rebase: true})
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if len(before.Jobs)+len(after.Jobs) != len(l.Jobs) || before.Capacity() != l.Capacity() {
			t.Fatalf("%d and %d jobs of %d", len(before.Jobs), len(after.Jobs), len(l.Jobs))
		}
		all, a, b := workload.NewView(l), workload.NewView(before), workload.NewView(after)
		for u := int64(0); u < 300; u++ {
			if all.Busy(u) != a.Busy(u)+b.Busy(u-at) {
				t.Fatalf("busy at %d: %d, want %d + %d", u, all.Busy(u), a.Busy(u), b.Busy(u-at))
			}
		}
		if !cmp.Equal(reread(t, after), after) {
			t.Fatal("the slice is not read back")
		}
	})
}

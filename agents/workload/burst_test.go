package workload_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ramp/agents/workload"
)

func mustRead(t testing.TB, text string) *workload.Log {
	t.Helper()
	l, err := workload.ReadSWF(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestBursts(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []workload.Burst
	}{
		"start is submit plus wait, end is start plus run": {
			"1 100 20 30 4 -1 -1 8 60 -1 1 0 0 0 0 0 0 0",
			[]workload.Burst{{1, 4, 100, 120, 150, 60}},
		},
		"an unknown wait is none": {
			"1 100 -1 30 4 -1 -1 8 60 -1 1 0 0 0 0 0 0 0",
			[]workload.Burst{{1, 4, 100, 100, 130, 60}},
		},
		"requested processors stand in for unknown allocated ones": {
			"1 100 0 30 -1 -1 -1 8 60 -1 1 0 0 0 0 0 0 0",
			[]workload.Burst{{1, 8, 100, 100, 130, 60}},
		},
		"the run time stands in for an unknown requested time": {
			"1 100 0 30 4 -1 -1 8 -1 -1 1 0 0 0 0 0 0 0",
			[]workload.Burst{{1, 4, 100, 100, 130, 30}},
		},
		"no run time, no processors, no submit time: left out": {
			"1 100 0 0 4 0 0 8 9 0 1 0 0 0 0 0 0 0\n" +
				"2 100 0 -1 4 0 0 8 9 0 1 0 0 0 0 0 0 0\n" +
				"3 100 0 30 -1 0 0 0 9 0 1 0 0 0 0 0 0 0\n" +
				"4 -1 0 30 4 0 0 8 9 0 1 0 0 0 0 0 0 0",
			nil,
		},
		"a swapped job is its summary, not its bursts too": {
			"1 100 0 50 4 0 0 8 60 0 1 0 0 0 0 0 0 0\n" +
				"1 100 0 20 4 0 0 8 60 0 2 0 0 0 0 0 0 0\n" +
				"1 -1 15 30 4 0 0 8 60 0 3 0 0 0 0 0 0 0",
			[]workload.Burst{{1, 4, 100, 100, 150, 60}},
		},
		"without a summary it is its bursts, one after the other": {
			"1 100 5 20 4 0 0 8 60 0 2 0 0 0 0 0 0 0\n" +
				"1 -1 15 30 4 0 0 8 60 0 4 0 0 0 0 0 0 0",
			[]workload.Burst{{1, 4, 100, 105, 125, 60}, {1, 4, 125, 140, 170, 60}},
		},
		"a later burst whose first is missing is left out": {
			"1 100 5 20 4 0 0 8 60 0 1 0 0 0 0 0 0 0\n2 -1 15 30 4 0 0 8 60 0 3 0 0 0 0 0 0 0",
			[]workload.Burst{{1, 4, 100, 105, 125, 60}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := slices.Collect(mustRead(t, c.text).Bursts())
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHeadersAndCapacity(t *testing.T) {
	jobs := "1 0 0 5 12 0 0 8 9 0 1 0 0 0 0 0 0 0\n2 0 0 5 -1 0 0 30 9 0 1 0 0 0 0 0 0 0\n3 0 0 0 90 0 0 30 9 0 5 0 0 0 0 0 0 0\n"
	l := mustRead(t, "; a word\n;  maxprocs : 64 (of 72)\n; MaxProcs: 99\n; UnixStartTime: 843480031\n"+jobs)
	if got := l.Capacity(); got != 64 {
		t.Errorf("capacity %d, want the first MaxProcs, 64", got)
	}
	if start, ok := l.UnixStart(); !ok || start != 843480031 {
		t.Errorf("start %d %v, want 843480031", start, ok)
	}
	bare := mustRead(t, jobs)
	if got := bare.Capacity(); got != 30 {
		t.Errorf("capacity %d, want the most of a job that ran, 30", got)
	}
	if _, ok := bare.UnixStart(); ok {
		t.Error("a start without a header")
	}
	if got := mustRead(t, "; MaxProcs: -1\n"+jobs).Capacity(); got != 30 {
		t.Errorf("capacity %d, want 30: -1 is unknown", got)
	}
}

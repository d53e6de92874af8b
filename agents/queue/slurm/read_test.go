package slurm_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ramp/agents/queue/slurm"
)

func TestHostLists(t *testing.T) {
	for list, want := range map[string]string{
		"":                     "",
		"node1":                "node1",
		"node[1-3]":            "node1 node2 node3",
		"n[08-11,20],login":    "n08 n09 n10 n11 n20 login",
		"r[1-2]n[1-2]":         "r1n1 r1n2 r2n1 r2n2",
		"a,b[1],c":             "a b1 c",
		"rack[0-1]-node[1]-ib": "rack0-node1-ib rack1-node1-ib",
	} {
		got, err := slurm.Hosts(list)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %v, %v; want %s", list, got, err, want)
		}
	}
	for _, list := range []string{"n[1-", "n]1[", "n[3-1]", "n[a-b]", "n[1-999999999]", "n[-1]", "n[[1]]", "n[1-131072][1-131072]"} {
		if got, err := slurm.Hosts(list); err == nil {
			t.Errorf("%q is %d nodes", list, len(got))
		}
	}
}

// What this program abbreviates, and what Slurm would, is read back the same.
func TestHostListsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spans := rapid.SliceOfN(rapid.IntRange(0, 500), 1, 8).Draw(t, "numbers")
		width := rapid.IntRange(1, 5).Draw(t, "width")
		var parts, want []string
		for _, n := range spans {
			last := n + rapid.IntRange(0, 9).Draw(t, "more")
			parts = append(parts, fmt.Sprintf("%0*d-%0*d", width, n, width, last))
			for i := n; i <= last; i++ {
				want = append(want, fmt.Sprintf("n%0*d", width, i))
			}
		}
		if got, err := slurm.Hosts("n[" + strings.Join(parts, ",") + "]"); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v, %v, want %v", got, err, want)
		}
	})
}

// Newer versions write numbers as objects and states as lists; this is the form
// that Slurm documents for its data_parser since 23.02.
func TestTheFormsOfNewerVersions(t *testing.T) {
	old := `{"meta":{},"errors":[],"jobs":[{"job_id":1,"partition":"p","job_state":"RUNNING","cpus":4,"time_limit":30,"end_time":1795239523,"priority":7,"nodes":"n1"}]}`
	now := `{"meta":{},"errors":[],"jobs":[{"job_id":1,"partition":"p","job_state":["RUNNING"],"cpus":{"set":true,"infinite":false,"number":4},"time_limit":{"set":true,"infinite":false,"number":30},"end_time":{"set":true,"infinite":false,"number":1795239523},"priority":{"set":true,"infinite":false,"number":7},"nodes":"n1"}]}`
	a, err1 := slurm.ReadJobs([]byte(old))
	b, err2 := slurm.ReadJobs([]byte(now))
	if err1 != nil || err2 != nil || fmt.Sprintf("%+v", a) != fmt.Sprintf("%+v", b) {
		t.Fatalf("%+v, %v\n%+v, %v", a, err1, b, err2)
	}
	endless := strings.Replace(now, `"infinite":false,"number":30`, `"infinite":true,"number":0`, 1)
	if c, err := slurm.ReadJobs([]byte(endless)); err != nil || fmt.Sprintf("%+v", c) == fmt.Sprintf("%+v", b) {
		t.Fatalf("a job without limit: %+v, %v", c, err)
	}
}

func TestArrays(t *testing.T) {
	for text, want := range map[string]int{"": 1, "3": 1, "1-10": 10, "1-10%2": 10, "1,4,7-9": 5, "0-20:5": 5, "1-9999999": 100, "1-5,...": 6, "x": 1, "9-1": 1} {
		if got := slurm.Tasks(text, 100); got != want {
			t.Errorf("%q: %d tasks, want %d", text, got, want)
		}
	}
}

func FuzzReservations(f *testing.F) {
	seed(f, "reservations.txt")
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := slurm.ReadReservations(b)
		if err == nil && strings.Count(string(b), "ReservationName=") < len(list) {
			t.Fatalf("%d reservations out of %q", len(list), b)
		}
	})
}

func FuzzJobs(f *testing.F) {
	seed(f, "squeue.json")
	f.Fuzz(func(t *testing.T, b []byte) {
		nodes, err := os.ReadFile("testdata/sinfo.json")
		if err != nil {
			t.Fatal(err)
		}
		q, err := slurm.Assembled(nodes, b)
		if err != nil {
			return
		}
		for _, r := range q.Running {
			if r.Cores < 0 || r.End.Before(q.At) {
				t.Fatalf("a job that runs: %+v", r)
			}
		}
		for _, w := range q.Queued {
			if w.Cores < 1 || w.Wall <= 0 {
				t.Fatalf("a job that waits: %+v", w)
			}
		}
	})
}

func FuzzNodes(f *testing.F) {
	seed(f, "sinfo.json")
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := slurm.Assembled(b, []byte(`{"meta":{},"errors":[],"jobs":[]}`))
		if err == nil && q.Capacity < 0 {
			t.Fatalf("%d cores", q.Capacity)
		}
	})
}

func seed(f *testing.F, file string) {
	b, err := os.ReadFile("testdata/" + file)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
}

package workload_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"ramp/agents/workload"
)

// drawLog is a small, crowded log. Jobs overrun their requested time, exceed the
// machine and overlap as recorded, as real ones do, unless it is to be tame.
func drawLog(t *rapid.T, tame bool) *workload.Log {
	capacity := rapid.IntRange(1, 12).Draw(t, "capacity")
	l := &workload.Log{Comments: []string{fmt.Sprintf("MaxProcs: %d", capacity)}}
	for i := range rapid.IntRange(0, 14).Draw(t, "jobs") {
		j := workload.Job{
			Number: int32(i + 1), Status: workload.StatusCompleted,
			Submit: rapid.Int64Range(0, 60).Draw(t, "submit"),
			Wait:   rapid.Int32Range(-1, 20).Draw(t, "wait"),
			Run:    rapid.Int32Range(1, 40).Draw(t, "run"),
			Procs:  rapid.Int32Range(1, int32(capacity)).Draw(t, "procs"),
		}
		j.RequestedTime = rapid.Int32Range(j.Run, 60).Draw(t, "requested")
		if !tame && rapid.IntRange(0, 4).Draw(t, "odd") == 0 {
			j.RequestedTime = rapid.Int32Range(-1, 60).Draw(t, "any requested")
			j.Procs += rapid.Int32Range(0, 3).Draw(t, "more procs")
			j.Run += rapid.Int32Range(0, 200).Draw(t, "more run")
		}
		l.Jobs = append(l.Jobs, j)
	}
	return l
}

func startsOf(l *workload.Log) map[int32]int64 {
	starts := map[int32]int64{}
	for b := range l.Bursts() {
		starts[b.Number] = b.Start
	}
	return starts
}

func TestScheduleIsTextbookEASY(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLog(t, true)
		for i := range l.Jobs {
			l.Jobs[i].Wait = workload.Unknown
		}
		if diff := cmp.Diff(textbook(l), startsOf(workload.Schedule(l))); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestScheduleBackfills(t *testing.T) {
	// Ten cores; 1 holds eight until 100. 2 must wait for 1. 3 ends before 100, 4 fits beside 2, 5 does neither.
	l := mustRead(t, "; MaxProcs: 10\n"+
		"1 0 -1 100 8 0 0 8 100 0 1 0 0 0 0 0 0 0\n"+
		"2 1 -1 50 9 0 0 9 50 0 1 0 0 0 0 0 0 0\n"+
		"3 2 -1 10 1 0 0 1 98 0 1 0 0 0 0 0 0 0\n"+
		"4 3 -1 500 1 0 0 1 500 0 1 0 0 0 0 0 0 0\n"+
		"5 4 -1 97 1 0 0 1 97 0 1 0 0 0 0 0 0 0\n")
	want := map[int32]int64{1: 0, 2: 100, 3: 2, 4: 3, 5: 150}
	if diff := cmp.Diff(want, startsOf(workload.Schedule(l))); diff != "" {
		t.Error(diff)
	}
}

// The machine, with slots sold and released as it goes, is the slow one. A slow
// one to which nothing is sold shows that selling changes what comes.
func TestMachineIsTheSlowOne(t *testing.T) {
	sold, changed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		l := drawLog(t, false)
		base := rapid.Int64Range(0, 50).Draw(t, "base")
		m, s, unsold := workload.NewMachine(l, base), newSlow(l, base), newSlow(l, base)
		for s.now < base+150 {
			s.second()
			unsold.second()
			unsold.now++
			m.Advance(s.now)
			if rapid.IntRange(0, 15).Draw(t, "sell") == 0 {
				sell(t, m, s)
			}
			if len(s.sold) > 0 && rapid.IntRange(0, 30).Draw(t, "release") == 0 {
				s.release(t, m)
			}
			if diff := cmp.Diff(s.snapshot(), m.Snapshot(), cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("at %d: %s", s.now, diff)
			}
			sold = max(sold, len(s.sold))
			s.now++
		}
		if !cmp.Equal(s.starts, unsold.starts) {
			changed++
		}
	})
	if sold < 2 || changed == 0 {
		t.Errorf("at most %d slots were sold, and jobs started at other times in %d logs: the test shows too little", sold, changed)
	}
}

func sell(t *rapid.T, m *workload.Machine, s *slow) {
	start := s.now + rapid.Int64Range(-5, 60).Draw(t, "start")
	r := workload.Reservation{
		ID: fmt.Sprint("r", s.now), Start: start,
		End:   start + rapid.Int64Range(1, 40).Draw(t, "length"),
		Cores: rapid.IntRange(1, s.capacity).Draw(t, "cores"),
	}
	reserve := m.Reserve
	if rapid.IntRange(0, 3).Draw(t, "restore") == 0 {
		reserve = m.Restore
	}
	if reserve(r) != nil {
		return
	}
	s.sold = append(s.sold, r)
	s.evict()
	s.pass()
}

func (s *slow) release(t *rapid.T, m *workload.Machine) {
	i := rapid.IntRange(0, len(s.sold)-1).Draw(t, "which")
	if over := s.sold[i].End <= s.now; m.Release(s.sold[i].ID) == over {
		t.Fatalf("released %+v at %d: %v", s.sold[i], s.now, !over)
	}
	s.sold = append(s.sold[:i:i], s.sold[i+1:]...)
	s.pass()
}

func TestProjectIsTheSlowOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		snap := drawSnapshot(t)
		s := &slow{now: snap.Now, capacity: snap.Capacity, sold: snap.Reservations, starts: map[int32]int64{}}
		want := newArray(1500, snap.Capacity)
		for _, r := range snap.Reservations {
			want.add(r.Start, r.End, -r.Cores)
		}
		for _, r := range snap.Running {
			end := max(r.End, snap.Now+1)
			want.add(snap.Now, end, -r.Cores)
			s.running = append(s.running, slowJob{number: r.Number, cores: r.Cores, start: snap.Now, wall: 1 << 30, end: end, due: end})
		}
		for _, w := range snap.Waiting {
			s.queue = append(s.queue, slowJob{number: w.Number, cores: w.Cores, wall: w.Wall, run: w.Wall})
		}
		for s.second(); len(s.queue) > 0; s.second() {
			s.now++
		}
		for _, w := range snap.Waiting {
			want.add(s.starts[w.Number], s.starts[w.Number]+w.Wall, -w.Cores)
		}
		got := snap.Project()
		for u := snap.Now; u < int64(len(want)); u++ {
			if got.At(u) != want.at(u) {
				t.Fatalf("at %d: %d free, want %d", u, got.At(u), want.at(u))
			}
		}
		if err := got.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

func drawSnapshot(t *rapid.T) workload.Snapshot {
	s := workload.Snapshot{Now: 20, Capacity: rapid.IntRange(1, 12).Draw(t, "capacity")}
	for i := range rapid.IntRange(0, 6).Draw(t, "running") {
		s.Running = append(s.Running, workload.Running{
			Number: int32(i), Cores: rapid.IntRange(1, 4).Draw(t, "cores"), End: rapid.Int64Range(15, 60).Draw(t, "end"),
		})
	}
	for i := range rapid.IntRange(0, 8).Draw(t, "waiting") {
		s.Waiting = append(s.Waiting, workload.Waiting{
			Number: int32(100 + i), Cores: rapid.IntRange(1, s.Capacity).Draw(t, "cores"), Wall: rapid.Int64Range(1, 50).Draw(t, "wall"),
		})
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "sold") {
		start := rapid.Int64Range(0, 100).Draw(t, "start")
		s.Reservations = append(s.Reservations, workload.Reservation{
			ID: fmt.Sprint(i), Start: start, End: start + rapid.Int64Range(1, 40).Draw(t, "length"),
			Cores: rapid.IntRange(1, s.Capacity).Draw(t, "cores"),
		})
	}
	return s
}

func (s *slow) snapshot() workload.Snapshot {
	out := workload.Snapshot{Now: s.now, Capacity: s.capacity}
	for _, j := range s.running {
		out.Running = append(out.Running, workload.Running{Number: j.number, Cores: j.cores, End: j.due})
	}
	for _, j := range s.queue {
		out.Waiting = append(out.Waiting, workload.Waiting{Number: j.number, Cores: j.cores, Wall: j.wall})
	}
	for _, r := range s.sold {
		if r.End > s.now {
			out.Reservations = append(out.Reservations, r)
		}
	}
	sortSnapshot(out)
	return out
}

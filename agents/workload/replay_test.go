package workload_test

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ramp/agents/workload"
)

// asRecorded counts, job by job, what ran and what waited at a second.
func asRecorded(l *workload.Log, base int64) workload.Snapshot {
	s := workload.Snapshot{Now: base, Capacity: l.Capacity()}
	type waiting struct {
		submit int64
		workload.Waiting
	}
	var queue []waiting
	for b := range l.Bursts() {
		switch {
		case b.Start <= base && base < b.End:
			j := slowJob{wall: b.Requested, run: b.End - b.Start}.startedAt(b.Start, base)
			s.Running = append(s.Running, workload.Running{Number: b.Number, Cores: b.Cores, End: j.due})
		case b.Submit <= base && base < b.Start:
			queue = append(queue, waiting{b.Submit, workload.Waiting{Number: b.Number, Cores: min(b.Cores, s.Capacity), Wall: b.Requested}})
		}
	}
	slices.SortStableFunc(queue, func(a, b waiting) int { return cmp.Compare(a.submit, b.submit) })
	for _, w := range queue {
		s.Waiting = append(s.Waiting, w.Waiting)
	}
	sortSnapshot(s)
	return s
}

func TestReplayBeginsAnywhereAsTheLogRecorded(t *testing.T) {
	s := synthesis()
	s.Duration, s.Load, s.Cores = 50*86400, .9, 512
	l := mustSynthesize(t, s, 3)
	if len(l.Jobs) < 3000 {
		t.Fatalf("%d jobs: too few to skip any", len(l.Jobs))
	}
	r, queues := workload.NewReplay(l), 0
	for base := s.Start - 1; base < s.Start+s.Duration+86400; base += 20000 {
		got, want := r.Machine(base).Snapshot(), asRecorded(l, base)
		if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("at %d: %s", base, diff)
		}
		queues += len(got.Waiting)
	}
	if queues == 0 {
		t.Error("nothing ever waited: the test shows little")
	}
}

func TestMachinesOfOneReplayDoNotDisturbEachOther(t *testing.T) {
	s := synthesis()
	l := mustSynthesize(t, s, 4)
	r := workload.NewReplay(l)
	base := s.Start + s.Duration/2
	sold, other := r.Machine(base), r.Machine(base)
	p := sold.Snapshot().Project()
	at, ok := p.Earliest(base, workload.Forever, 3600, s.Cores)
	if !ok || sold.Reserve(workload.Reservation{ID: "all", Start: at, End: at + 3600, Cores: s.Cores}) != nil {
		t.Fatal("no slot on the whole machine")
	}
	sold.Advance(at + 1800)
	other.Advance(at + 1800)
	fresh := workload.NewMachine(l, base)
	fresh.Advance(at + 1800)
	if diff := gocmp.Diff(fresh.Snapshot(), other.Snapshot(), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	if gocmp.Equal(fresh.Snapshot(), sold.Snapshot(), cmpopts.EquateEmpty()) {
		t.Error("an hour of the whole machine was sold and nothing changed")
	}
}

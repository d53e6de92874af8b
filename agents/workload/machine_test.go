package workload_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"ramp/agents/workload"
)

// At 50: job 1 runs, 2 and 3 wait (3 was submitted first), 4 is to come, 5 is past.
const fiveJobs = "; MaxProcs: 10\n" +
	"1 10 5 100 8 0 0 8 120 0 1 0 0 0 0 0 0 0\n" +
	"2 40 75 30 6 0 0 6 40 0 1 0 0 0 0 0 0 0\n" +
	"3 30 90 30 9 0 0 9 50 0 1 0 0 0 0 0 0 0\n" +
	"4 60 -1 30 2 0 0 2 30 0 1 0 0 0 0 0 0 0\n" +
	"5 0 0 50 1 0 0 1 60 0 1 0 0 0 0 0 0 0\n"

func TestMachineBeginsAsTheLogRecorded(t *testing.T) {
	m := workload.NewMachine(mustRead(t, fiveJobs), 50)
	want := workload.Snapshot{
		Now: 50, Capacity: 10,
		Running: []workload.Running{{Number: 1, Cores: 8, End: 135}},
		Waiting: []workload.Waiting{{Number: 3, Cores: 9, Wall: 50}, {Number: 2, Cores: 6, Wall: 40}},
	}
	if diff := cmp.Diff(want, m.Snapshot(), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsSubmittedAtTheBaseWaits(t *testing.T) {
	got := workload.NewMachine(mustRead(t, fiveJobs), 40).Snapshot().Waiting
	if want := []workload.Waiting{{Number: 3, Cores: 9, Wall: 50}, {Number: 2, Cores: 6, Wall: 40}}; !slices.Equal(got, want) {
		t.Errorf("waiting %v, want %v", got, want)
	}
}

func TestEstimatesOfOverdueJobsArePutOffMoreAndMore(t *testing.T) {
	m := workload.NewMachine(mustRead(t, "1 0 0 5000 1 0 0 1 10 0 1 0 0 0 0 0 0 0"), 0)
	ends := []int64{m.Snapshot().Running[0].End}
	for next, ok := m.Next(); ok; next, ok = m.Next() {
		m.Advance(next)
		for _, r := range m.Snapshot().Running {
			ends = append(ends, r.End)
		}
	}
	if want := []int64{10, 10, 70, 190, 430, 910, 1870, 3790, 7630}; !slices.Equal(ends, want) {
		t.Errorf("estimates %v, want %v", ends, want)
	}
	late := workload.NewMachine(mustRead(t, "1 0 0 5000 1 0 0 1 10 0 1 0 0 0 0 0 0 0"), 1000)
	if got := late.Snapshot().Running[0].End; got != 1870 {
		t.Errorf("estimate %d at 1000, want 1870 as if it had been watched", got)
	}
}

func TestMachinePlaysOnToItsEnd(t *testing.T) {
	m := workload.NewMachine(mustRead(t, fiveJobs), 50)
	var events []int64
	for next, ok := m.Next(); ok; next, ok = m.Next() {
		if !m.Advance(next) {
			t.Fatalf("nothing happened at %d", next)
		}
		events = append(events, next)
	}
	// 4 arrives at 60 and is back-filled until 90; 1 ends at 115, before its estimate; then 3, then 2.
	if want := []int64{50, 60, 90, 115, 145, 175}; !slices.Equal(events, want) {
		t.Errorf("events %v, want %v", events, want)
	}
	m.Advance(1 << 40)
	if p := m.Snapshot().Project(); p.Len() != 1 || p.At(1<<40) != 10 {
		t.Errorf("after the log: %d steps, %d free, want an empty machine", p.Len(), p.At(1<<40))
	}
}

func TestSellingChangesTheFuture(t *testing.T) {
	start := func(sold ...workload.Reservation) int64 {
		m := workload.NewMachine(mustRead(t, fiveJobs), 50)
		for _, r := range sold {
			if err := m.Reserve(r); err != nil {
				t.Fatal(err)
			}
		}
		for next, ok := m.Next(); ok; next, ok = m.Next() {
			m.Advance(next)
			if i := slices.IndexFunc(m.Snapshot().Running, func(r workload.Running) bool { return r.Number == 3 }); i >= 0 {
				return m.Now()
			}
		}
		return -1
	}
	if got := start(); got != 115 {
		t.Errorf("job 3 starts at %d, want 115", got)
	}
	slot := workload.Reservation{ID: "a", Start: 300, End: 310, Cores: 10}
	if got := start(slot); got != 115 {
		t.Errorf("job 3 starts at %d beside a slot at 300, want 115", got)
	}
	// Job 1 is expected to end at 135 and ends at 115; the slot lies between, so job 3 must wait for it.
	between := workload.Reservation{ID: "b", Start: 120, End: 135, Cores: 2}
	if got := start(between); got != 135 {
		t.Errorf("job 3 starts at %d beside a slot until 135, want 135", got)
	}
}

func TestReserveRefuses(t *testing.T) {
	m := workload.NewMachine(mustRead(t, fiveJobs), 50)
	slot := workload.Reservation{ID: "a", Start: 60, End: 70, Cores: 1}
	if err := errors.Join(m.Reserve(slot), m.Reserve(slot), m.Restore(slot)); err != nil {
		t.Fatalf("the same again: %v", err)
	}
	for name, c := range map[string]struct {
		slot workload.Reservation
		want error
	}{
		"another slot of the same name":              {workload.Reservation{ID: "a", Start: 60, End: 71, Cores: 1}, workload.ErrID},
		"more cores than the machine has":            {workload.Reservation{ID: "b", Start: 60, End: 70, Cores: 11}, workload.ErrSize},
		"no cores":                                   {workload.Reservation{ID: "b", Start: 60, End: 70}, workload.ErrSize},
		"a slot that is over":                        {workload.Reservation{ID: "b", Start: 40, End: 50, Cores: 1}, workload.ErrPast},
		"a slot that ends when it starts":            {workload.Reservation{ID: "b", Start: 60, End: 60, Cores: 1}, workload.ErrPast},
		"cores of a running job":                     {workload.Reservation{ID: "b", Start: 70, End: 80, Cores: 3}, workload.ErrBusy},
		"cores of a slot":                            {workload.Reservation{ID: "b", Start: 65, End: 75, Cores: 2}, workload.ErrBusy},
		"cores that the queue will take":             {workload.Reservation{ID: "b", Start: 140, End: 150, Cores: 2}, workload.ErrBusy},
		"cores that are free at the end only":        {workload.Reservation{ID: "b", Start: 60, End: 1000, Cores: 9}, workload.ErrBusy},
		"cores that a job would free if it is short": {workload.Reservation{ID: "b", Start: 116, End: 118, Cores: 3}, workload.ErrBusy},
	} {
		if err := m.Reserve(c.slot); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	if err := m.Reserve(workload.Reservation{ID: "c", Start: 40, End: 135, Cores: 1}); err != nil {
		t.Errorf("a slot that has begun: %v", err)
	}
	if m.Release("b") || !m.Release("a") || m.Release("a") {
		t.Error("release: want b unknown, a known once")
	}
}

func TestReservationsAreBounded(t *testing.T) {
	m := workload.NewMachine(&workload.Log{Comments: []string{"MaxProcs: 100000"}}, 0)
	m.FillReservations()
	if err := m.Reserve(workload.Reservation{ID: "x", Start: 5, End: 9, Cores: 1}); !errors.Is(err, workload.ErrFull) {
		t.Errorf("got %v, want ErrFull", err)
	}
}

// An overdue job gives way to a sold slot, so that nothing is sold twice.
func TestSoldSlotsAreHonoured(t *testing.T) {
	sold := 0
	rapid.Check(t, func(t *rapid.T) {
		m := workload.NewMachine(drawLog(t, false), -1)
		for now := int64(0); now < 300; now += rapid.Int64Range(1, 20).Draw(t, "step") {
			m.Advance(now)
			r := workload.Reservation{
				ID: fmt.Sprint(now), Start: now + rapid.Int64Range(0, 50).Draw(t, "ahead"),
				Cores: rapid.IntRange(1, 12).Draw(t, "cores"),
			}
			r.End = r.Start + rapid.Int64Range(1, 30).Draw(t, "length")
			if m.Reserve(r) == nil {
				sold++
			}
			honoured(t, m)
		}
	})
	if sold == 0 {
		t.Error("nothing was sold: the test shows nothing")
	}
}

func honoured(t *rapid.T, m *workload.Machine) {
	s := m.Snapshot()
	free, serving := s.Capacity, false
	for _, r := range s.Running {
		free -= r.Cores
	}
	for _, r := range s.Reservations {
		if r.Start <= s.Now {
			free, serving = free-r.Cores, true
		}
	}
	if serving && free < 0 {
		t.Fatalf("at %d: %d cores too many: %+v", s.Now, -free, s)
	}
}

func TestOneJumpIsManySteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLog(t, false)
		jump, step := workload.NewMachine(l, 5), workload.NewMachine(l, 5)
		to := rapid.Int64Range(5, 200).Draw(t, "to")
		for at := int64(5); at <= to; at++ {
			step.Advance(at)
		}
		jump.Advance(to)
		if diff := cmp.Diff(step.Snapshot(), jump.Snapshot(), cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		if jump.Advance(to - 1); jump.Now() != to {
			t.Fatalf("went back to %d", jump.Now())
		}
	})
}

func TestProjectIsBounded(t *testing.T) {
	s := workload.Snapshot{Capacity: 1}
	for i := range 2 * workload.MaxProjected {
		s.Waiting = append(s.Waiting, workload.Waiting{Number: int32(i), Cores: 1, Wall: 10})
	}
	p := s.Project()
	if got := p.At(10*workload.MaxProjected - 1); got != 0 {
		t.Errorf("%d free before the last projected job ends, want 0", got)
	}
	if got := p.At(10 * workload.MaxProjected); got != 1 {
		t.Errorf("%d free after the last projected job, want 1: the others are left out", got)
	}
}

func TestWhatNeverEndsEndsInTenYears(t *testing.T) {
	s := workload.Snapshot{
		Now: 7, Capacity: 4,
		Running:      []workload.Running{{Number: 1, Cores: 1, End: workload.Forever}},
		Waiting:      []workload.Waiting{{Number: 2, Cores: 4, Wall: workload.Forever}},
		Reservations: []workload.Reservation{{ID: "down", Start: 0, End: workload.Forever, Cores: 1}},
	}
	p := s.Project()
	if got := p.At(7 + workload.MaxAhead - 1); got != 2 {
		t.Errorf("%d free before, want 2", got)
	}
	if got := p.At(7 + workload.MaxAhead); got != 0 {
		t.Errorf("%d free then, want 0: the waiting job starts", got)
	}
}

package calendar_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/agents/resource/calendar"
	"ramp/agents/workload"
	"ramp/protocol"
)

// epoch is second 0 of the tests.
var epoch = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// at is an instant in milliseconds from the epoch.
func at(ms int64) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }

const (
	horizon  = 40_000 // milliseconds that the naive calendar knows
	tick     = 100    // its resolution, milliseconds
	capacity = 10
)

// naive counts the free cores of every tick, with slots as exact as they are.
type naive [horizon / tick]int

func (n *naive) take(start, end int64, cores int) {
	for i := max(start, 0) / tick; i < min(end, horizon)/tick; i++ {
		n[i] -= cores
	}
}

func (n *naive) free(start, end int64) int {
	least := capacity
	for i := start / tick; i < end/tick; i++ {
		least = min(least, n[i])
	}
	return max(least, 0)
}

// outward is the slot in whole seconds that contains it.
func outward(start, end int64) (int64, int64) {
	return start / 1000 * 1000, (end + 999) / 1000 * 1000
}

type slot struct {
	start, end int64
	cores      int
}

func drawSlot(t *rapid.T) slot {
	grid := rapid.Int64Range(0, horizon/tick-20)
	s := slot{start: grid.Draw(t, "start") * tick, cores: rapid.IntRange(1, 6).Draw(t, "cores")}
	s.end = min(s.start+rapid.Int64Range(1, 100).Draw(t, "length")*tick, horizon)
	return s
}

func (s slot) protocol() protocol.Slot {
	return protocol.Slot{Start: at(s.start), End: at(s.end), Cores: s.cores}
}

// drawCalendar is a calendar with a profile and slots of its own, some of which
// the profile shows, and two naive ones: exact, and in whole seconds.
func drawCalendar(t *rapid.T) (c *calendar.Calendar, exact, whole *naive) {
	exact, whole = &naive{}, &naive{}
	for i := range exact {
		exact[i], whole[i] = capacity, capacity
	}
	c = calendar.New(capacity, epoch)
	p := workload.NewProfile(epoch.Unix(), capacity)
	for range rapid.IntRange(0, 5).Draw(t, "foreseen") {
		s := drawSlot(t)
		s.start, s.end = outward(s.start, s.end)
		p.Add(epoch.Unix()+s.start/1000, epoch.Unix()+s.end/1000, -s.cores)
		exact.take(s.start, s.end, s.cores)
		whole.take(s.start, s.end, s.cores)
	}
	var shown, late []string
	for i := range rapid.IntRange(0, 6).Draw(t, "own") {
		s, id := drawSlot(t), fmt.Sprint(i)
		if err := c.Add(id, s.protocol()); err != nil {
			t.Fatal(err)
		}
		start, end := outward(s.start, s.end)
		switch rapid.IntRange(0, 3).Draw(t, "fate") {
		case 0: // given back before the profile comes
			c.Remove(id)
			continue
		case 1: // shown by the profile
			shown = append(shown, id)
			p.Add(epoch.Unix()+start/1000, epoch.Unix()+end/1000, -s.cores)
		case 2: // given back after it
			late = append(late, id)
			continue
		}
		exact.take(s.start, s.end, s.cores)
		whole.take(start, end, s.cores)
	}
	c.Renew(capacity, p, shown)
	for _, id := range late {
		if !c.Remove(id) {
			t.Fatalf("slot %s is gone", id)
		}
	}
	return c, exact, whole
}

func TestFreeIsTheLeastInWholeSeconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, exact, whole := drawCalendar(t)
		q := drawSlot(t)
		start, end := outward(q.start, q.end)
		got := c.Free(at(q.start), at(q.end))
		if want := whole.free(start, end); got != want {
			t.Fatalf("free %d..%d ms: %d, want %d", q.start, q.end, got, want)
		}
		if most := exact.free(q.start, q.end); got > most {
			t.Fatalf("free %d..%d ms: %d, more than there are, %d", q.start, q.end, got, most)
		}
		load := c.Load(at(q.start))
		if want := capacity - whole.free(start, start+1000); load != (calendar.Share{Busy: want, Capacity: capacity}) {
			t.Fatalf("load %+v, want %d of %d", load, want, capacity)
		}
	})
}

func TestEarliestFitsAndNoWholeSecondBeforeDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, exact, whole := drawCalendar(t)
		w := drawSlot(t)
		w.end += rapid.Int64Range(0, 100).Draw(t, "more") * tick
		w.end = min(w.end, horizon)
		wall := rapid.Int64Range(1, 50).Draw(t, "wall") * tick
		got, ok := c.Earliest(at(w.start), at(w.end), time.Duration(wall)*time.Millisecond, w.cores)
		want := int64(-1)
		for s := w.start; want < 0 && s+wall <= w.end; s = (s + 1000) / 1000 * 1000 {
			if start, end := outward(s, s+wall); whole.free(start, end) >= w.cores {
				want = s
			}
		}
		if ok != (want >= 0) || ok && !got.Equal(at(want)) {
			t.Fatalf("earliest %v %v, want %d ms", got.Sub(epoch), ok, want)
		}
		if ok && exact.free(want, want+wall) < w.cores {
			t.Fatalf("at %d ms only %d are free", want, exact.free(want, want+wall))
		}
	})
}

func TestAnOverfullMachineHasNothingFree(t *testing.T) {
	c := calendar.New(capacity, epoch)
	for _, id := range []string{"a", "b"} {
		if err := c.Add(id, protocol.Slot{Start: at(0), End: at(5000), Cores: 8}); err != nil {
			t.Fatal(err)
		}
	}
	if free, load := c.Free(at(0), at(1000)), c.Load(at(0)); free != 0 || load.Busy != capacity {
		t.Errorf("%d free, %d busy, want 0 and %d", free, load.Busy, capacity)
	}
}

func TestAddRefuses(t *testing.T) {
	c := calendar.New(capacity, epoch)
	good := protocol.Slot{Start: at(0), End: at(1000), Cores: 1}
	if err := c.Add("a", good); err != nil {
		t.Fatal(err)
	}
	if err := c.Add("a", good); !errors.Is(err, calendar.ErrExists) {
		t.Errorf("the same name: %v, want ErrExists", err)
	}
	if err := c.Add("b", protocol.Slot{Start: at(0), End: at(0), Cores: 1}); err == nil {
		t.Error("an empty slot was added")
	}
	if c.Remove("b") || !c.Remove("a") || c.Remove("a") || c.Len() != 0 {
		t.Error("remove: want b unknown, a known once")
	}
	if got := c.Free(at(0), at(1000)); got != capacity {
		t.Errorf("%d free after all is removed, want %d", got, capacity)
	}
}

func TestCalendarIsBounded(t *testing.T) {
	c := calendar.New(capacity, epoch)
	for i := range calendar.MaxSlots {
		if err := c.Add(fmt.Sprint(i), protocol.Slot{Start: at(0), End: at(1000), Cores: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Add("x", protocol.Slot{Start: at(0), End: at(1000), Cores: 1}); !errors.Is(err, calendar.ErrFull) {
		t.Errorf("got %v, want ErrFull", err)
	}
	c.Forget(at(999))
	if c.Len() != calendar.MaxSlots {
		t.Error("slots were forgotten before their end")
	}
	if c.Forget(at(1000)); c.Len() != 0 {
		t.Errorf("%d slots are left after their end", c.Len())
	}
}

// What the batch system shows stays taken until it shows it no more.
func TestASlotThatIsShownComesBackWithTheNextProfile(t *testing.T) {
	c := calendar.New(capacity, epoch)
	if err := c.Add("a", protocol.Slot{Start: at(0), End: at(9000), Cores: 4}); err != nil {
		t.Fatal(err)
	}
	shown := workload.NewProfile(epoch.Unix(), capacity)
	shown.Add(epoch.Unix(), epoch.Unix()+9, -4)
	c.Renew(capacity, shown, []string{"a"})
	c.Remove("a")
	if got := c.Free(at(0), at(1000)); got != 6 {
		t.Errorf("%d free while the batch system shows the slot, want 6", got)
	}
	c.Renew(capacity, workload.NewProfile(epoch.Unix(), capacity), nil)
	if got := c.Free(at(0), at(1000)); got != capacity {
		t.Errorf("%d free after, want %d", got, capacity)
	}
}

func TestEarliestWithinASecond(t *testing.T) {
	c := calendar.New(capacity, epoch)
	if err := c.Add("a", protocol.Slot{Start: at(1000), End: at(2300), Cores: capacity}); err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]struct {
		notBefore, deadline, wall, want int64 // milliseconds; want -1: none
	}{
		"the window's own start, if it fits":                {200, 1000, 800, 200},
		"never before the window":                           {200, 9000, 1000, 3000},
		"a second that is partly taken is taken":            {2500, 9000, 400, 3000},
		"a deadline within a second is kept":                {2500, 3400, 400, 3000},
		"a deadline within a second is kept to the instant": {2500, 3399, 400, -1},
	} {
		got, ok := c.Earliest(at(q.notBefore), at(q.deadline), time.Duration(q.wall)*time.Millisecond, 1)
		if ok != (q.want >= 0) || ok && !got.Equal(at(q.want)) {
			t.Errorf("%s: got %v %v, want %d ms", name, got.Sub(epoch), ok, q.want)
		}
	}
}

func TestRenewLeavesTheProfileAlone(t *testing.T) {
	c, p := calendar.New(capacity, epoch), workload.NewProfile(epoch.Unix(), capacity)
	c.Renew(capacity, p, nil)
	if err := c.Add("a", protocol.Slot{Start: at(0), End: at(1000), Cores: 1}); err != nil {
		t.Fatal(err)
	}
	if p.At(epoch.Unix()) != capacity || c.Free(at(0), at(1000)) != capacity-1 {
		t.Error("the calendar changed the profile that it was given")
	}
}

func TestEarliestRefusesWhatCannotBe(t *testing.T) {
	c := calendar.New(capacity, epoch)
	for name, q := range map[string]struct {
		wall  time.Duration
		cores int
	}{
		"no time": {0, 1}, "no cores": {time.Second, 0}, "too many cores": {time.Second, capacity + 1}, "a window too short": {11 * time.Second, 1},
	} {
		if got, ok := c.Earliest(at(0), at(10000), q.wall, q.cores); ok {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func BenchmarkCalendar100000(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	const span = 100_000_000
	p := workload.NewProfile(epoch.Unix(), 100_000)
	for range 100_000 {
		start := epoch.Unix() + r.Int64N(span)
		p.Add(start, start+r.Int64N(100_000), -1-r.IntN(50))
	}
	c := calendar.New(100_000, epoch)
	c.Renew(100_000, p, nil)
	slot := func() protocol.Slot {
		start := epoch.Add(time.Duration(r.Int64N(span)) * time.Second)
		return protocol.Slot{Start: start, End: start.Add(time.Duration(r.Int64N(1_000_000)) * time.Second), Cores: 16}
	}
	b.Run("Free", func(b *testing.B) {
		for b.Loop() {
			s := slot()
			c.Free(s.Start, s.End)
		}
	})
	b.Run("Earliest", func(b *testing.B) {
		for b.Loop() {
			s := slot()
			c.Earliest(s.Start, s.End.Add(24*time.Hour), time.Hour, 97_000)
		}
	})
	b.Run("AddRemove", func(b *testing.B) {
		for b.Loop() {
			if err := c.Add("x", slot()); err != nil {
				b.Fatal(err)
			}
			c.Remove("x")
		}
	})
	b.Run("Renew", func(b *testing.B) {
		for b.Loop() {
			c.Renew(100_000, p, nil)
		}
	})
}

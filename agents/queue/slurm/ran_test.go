package slurm_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/agents/queue/slurm"
	"ramp/protocol"
)

// eight is when the slots of these tests begin.
func eight() time.Time { return time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC) }

func hours(from, to float64) (start, end time.Time) {
	return eight().Add(time.Duration(from * float64(time.Hour))), eight().Add(time.Duration(to * float64(time.Hour)))
}

func ranFor(from, to float64, cores int, idle, cpu time.Duration) slurm.Stretch {
	start, end := hours(from, to)
	return slurm.Stretch{Start: start, End: end, Cores: cores, Idle: idle, CPU: cpu}
}

func TestWhatRanInASlot(t *testing.T) {
	const h = time.Hour
	start, end := hours(0, 4)
	slot := protocol.Slot{Start: start, End: end, Cores: 10}
	for name, c := range map[string]struct {
		list      []slurm.Stretch
		cpu, wall time.Duration
	}{
		"one job on some of the cores":                 {[]slurm.Stretch{ranFor(1, 2, 4, 0, 0)}, 4 * h, h},
		"one whose processor time is known":            {[]slurm.Stretch{ranFor(1, 2, 4, 0, 3*h)}, 3 * h, h},
		"two at once":                                  {[]slurm.Stretch{ranFor(1, 3, 2, 0, 0), ranFor(2, 4, 3, 0, 0)}, 10 * h, 3 * h},
		"one within another":                           {[]slurm.Stretch{ranFor(0, 4, 1, 0, 0), ranFor(1, 2, 1, 0, 0)}, 5 * h, 4 * h},
		"one after the other, with a pause":            {[]slurm.Stretch{ranFor(0, 1, 1, 0, 0), ranFor(3, 4, 1, 0, 0)}, 2 * h, 2 * h},
		"one that Slurm ends late":                     {[]slurm.Stretch{ranFor(3, 4.5, 10, 0, 0)}, 10 * h, h},
		"one that began before, as if":                 {[]slurm.Stretch{ranFor(-1, 1, 1, 0, 0)}, h, h},
		"one that is not in the slot at all":           {[]slurm.Stretch{ranFor(5, 6, 1, 0, 0), ranFor(-2, -1, 1, 0, 0)}, 0, 0},
		"one with more cores than there are":           {[]slurm.Stretch{ranFor(0, 1, 99, 0, 0)}, 10 * h, h},
		"one that used more than its cores":            {[]slurm.Stretch{ranFor(0, 1, 1, 0, 4*h)}, 4 * h, h},
		"one that used more than all cores":            {[]slurm.Stretch{ranFor(0, 1, 1, 0, 99*h)}, 10 * h, h},
		"one that was suspended for a while":           {[]slurm.Stretch{ranFor(0, 4, 2, 3*h, 0)}, 2 * h, h},
		"one suspended for longer than it was there":   {[]slurm.Stretch{ranFor(0, 1, 2, 3*h, 0)}, 0, 0},
		"more at once than the cores, as nobody could": {[]slurm.Stretch{ranFor(0, 1, 9, 0, 0), ranFor(0, 1, 9, 0, 0)}, 10 * h, h},
		"none": {nil, 0, 0},
	} {
		want := protocol.Usage{CPU: c.cpu, Wall: c.wall, Share: 10 * protocol.Core}
		if got := slurm.Used(slot, c.list); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// Against counting second by second, with jobs that fit; and whatever is told of jobs,
// nothing is more than the slot's own.
func TestWhatRanIsCountedBySeconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length, cores := rapid.IntRange(1, 60).Draw(t, "length"), rapid.IntRange(1, 8).Draw(t, "cores")
		slot := protocol.Slot{Start: eight(), End: eight().Add(time.Duration(length) * time.Second), Cores: cores}
		var list []slurm.Stretch
		busy, any := 0, 0
		taken := make([]int, length)
		for range rapid.IntRange(0, 6).Draw(t, "jobs") {
			from, long := rapid.IntRange(-10, length+5).Draw(t, "from"), rapid.IntRange(0, 30).Draw(t, "long")
			n := cores
			for s := max(from, 0); s < min(from+long, length); s++ {
				n = min(n, cores-taken[s])
			}
			for s := max(from, 0); s < min(from+long, length); s++ {
				taken[s] += n
			}
			if n > 0 {
				at := eight().Add(time.Duration(from) * time.Second)
				list = append(list, slurm.Stretch{Start: at, End: at.Add(time.Duration(long) * time.Second), Cores: n})
			}
		}
		for _, n := range taken {
			busy += n
			if n > 0 {
				any++
			}
		}
		want := protocol.Usage{CPU: time.Duration(busy) * time.Second, Wall: time.Duration(any) * time.Second, Share: int64(cores) * protocol.Core}
		if got := slurm.Used(slot, list); got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
		for i := range list {
			list[i].CPU = time.Duration(rapid.Int64().Draw(t, "cpu"))
			list[i].Idle = time.Duration(rapid.Int64().Draw(t, "idle"))
			list[i].Cores = rapid.Int().Draw(t, "told")
		}
		unit := protocol.BundleUnit{Slot: slot}
		if got := slurm.Used(slot, list); got != unit.Within(got) || got.Validate() != nil {
			t.Fatalf("%+v is more than the slot's own", got)
		}
	})
}

// sacctText is what sacct of 22.05.8 prints (its forms are recorded) of the jobs in a
// reservation, of others, and of steps. Jobs 1 to 4 began with the reservation.
const sacctText = slurm.Ledger + `
1|COMPLETED|2026-11-21T08:00:00|2026-11-21T08:10:00|600|4|00:03.250|7|
1.batch|COMPLETED|2026-11-21T08:00:00|2026-11-21T08:10:00|600|4|00:03.250||
2|CANCELLED by 1000|2026-11-21T08:00:00|2026-11-21T08:30:00|1800|8|01:02:03|7|
2.extern|CANCELLED|2026-11-21T08:00:00|2026-11-21T08:30:00|1800|8|01:02:03||
3|FAILED|2026-11-21T08:00:00|2026-11-21T08:00:00|0|2|00:00.003|7|
4|CANCELLED by 0|None|2026-11-21T08:20:00|0|9|00:00:00|7|
2.0|COMPLETED|2026-11-21T08:00:00|2026-11-21T08:30:00|1800|8|01:02:03|7|ramp-x-r.1
5|PENDING|Unknown|Unknown|0|8|00:00:00|7|ramp-x-r.1
6|RUNNING|2026-11-21T08:30:00|Unknown|1800|2|00:00:00|7|ramp-x-r.1
7|COMPLETED|2026-11-21T08:00:00|2026-11-21T09:00:00|3000|1|1-02:03:04|7|ramp-x-r.1
8|COMPLETED|2026-11-21T08:00:00|2026-11-21T09:00:00|3600|64|64:00:00|8|ramp-x-r.10
9|COMPLETED|2026-11-21T08:00:00|2026-11-21T09:00:00|3600|64|64:00:00||
10|COMPLETED|2026-11-21T08:00:00|2026-11-21T09:00:00|3600|64|64:00:00|6|
11|COMPLETED|nonsense|2026-11-21T09:00:00|-5|many||9|maintenance|of|nodes
what is no line at all
`

func TestWhatAccountingTells(t *testing.T) {
	at := func(seconds int) time.Time { return eight().Add(time.Duration(seconds) * time.Second) }
	slot := protocol.Slot{Start: at(0), End: at(3600), Cores: 16}
	all := []slurm.Stretch{
		{at(0), at(600), 4, 0, 3250 * time.Millisecond},
		{at(0), at(1800), 8, 0, time.Hour + 2*time.Minute + 3*time.Second},
		{at(0), at(0), 2, 0, 3 * time.Millisecond},
		{at(1800), at(3600), 2, 0, 0},
		{at(0), at(3600), 1, 600 * time.Second, 26*time.Hour + 3*time.Minute + 4*time.Second},
	}
	without := strings.ReplaceAll(sacctText, "|ramp-x-r.1\n", "|\n")
	for name, c := range map[string]struct {
		text string
		seen []int64
		want []slurm.Stretch
	}{
		"by its name and number":                     {sacctText, nil, all},
		"by the number of one that squeue has shown": {without, []int64{2}, all},
		"by nothing": {without, nil, nil},
		"one that squeue has shown and another slot names": {sacctText, []int64{8}, all},
	} {
		got, err := slurm.ReadLedger([]byte(c.text), "ramp-x-r.1", 1, slot, c.seen...)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
	if two, err := slurm.ReadLedger([]byte(sacctText), "ramp-x-r.1", 2, slot); err != nil || two[0].Cores != 2 {
		t.Errorf("of cores with two threads: %+v, %v", two, err)
	}
}

func TestAccountingThatIsNone(t *testing.T) {
	line := func(text string) string { return slurm.Ledger + "\n" + text + "|1|r\n" }
	for name, text := range map[string]string{
		"nothing":              "",
		"an error page":        "<html><body>502</body></html>\n",
		"another first line":   "JobID|State\n",
		"cut off":              slurm.Ledger + "\n1|COMPLETED|2026-11-21T08:00:00|2026-1",
		"a number of no job":   line("x|COMPLETED|2026-11-21T08:00:00|2026-11-21T09:00:00|1|1|00:00:01"),
		"no time":              line("1|COMPLETED|yesterday|2026-11-21T09:00:00|1|1|00:00:01"),
		"a negative time":      line("1|COMPLETED|2026-11-21T08:00:00|2026-11-21T09:00:00|-1|1|00:00:01"),
		"too many cores":       line("1|COMPLETED|2026-11-21T08:00:00|2026-11-21T09:00:00|1|99999999999|00:00:01"),
		"a processor time":     line("1|COMPLETED|2026-11-21T08:00:00|2026-11-21T09:00:00|1|1|00:01.5"),
		"of a thousand years":  line("1|COMPLETED|2026-11-21T08:00:00|2026-11-21T09:00:00|1|1|365000-00:00:00"),
		"a running of decades": line("1|COMPLETED|2026-11-21T08:00:00|2026-11-21T09:00:00|9999999999|1|00:00:01"),
	} {
		if list, err := slurm.ReadLedger([]byte(text), "r", 1, protocol.Slot{Start: eight(), End: eight().Add(time.Hour), Cores: 1}); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %+v, %v; want one line that says why", name, list, err)
		}
	}
}

func FuzzLedger(f *testing.F) {
	f.Add([]byte(sacctText))
	f.Add([]byte(slurm.Ledger + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		slot := protocol.Slot{Start: eight(), End: eight().Add(time.Hour), Cores: 4}
		list, err := slurm.ReadLedger(b, "ramp-x-r.1", 1, slot, 3)
		if err != nil {
			return
		}
		if n := strings.Count(string(b), "|ramp-x-r.1\n") + strings.Count(string(b), "|\n"); len(list) > n {
			t.Fatalf("%d jobs of the reservation out of %d lines that can be of it", len(list), n)
		}
		unit := protocol.BundleUnit{Slot: slot}
		if u := slurm.Used(slot, list); u != unit.Within(u) || u.Validate() != nil {
			t.Fatalf("%+v is more than the slot's own", u)
		}
	})
}

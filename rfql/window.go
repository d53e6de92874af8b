package rfql

import (
	"fmt"
	"time"
)

// window determines when a request may run, and how long. Instants are UTC.
func (c *checker) window(i int, d *DraftRequest) (start, end time.Time, wall time.Duration) {
	start, end, wall = utc(d.NotBefore), utc(d.End), d.Wall
	if !c.years(i, EndDate, end) || !start.IsZero() && !c.years(i, StartDate, start) {
		return start, end, wall
	}
	if start.IsZero() && wall == 0 {
		if start = ceilSecond(c.now); start.IsZero() {
			c.openWindow(i)
			return start, end, wall
		}
	}
	switch {
	case !start.IsZero() && !end.After(start):
		c.fault(Meaning, i, EndDate, "an end at "+stamp(end), "an end after the start at "+stamp(start), "")
	case !c.now.IsZero() && !end.After(c.now):
		c.fault(Meaning, i, EndDate, "an end at "+stamp(end), "an end after "+stamp(c.now.Truncate(time.Second)), "it ends before a job could begin")
	default:
		wall = c.fit(i, start, end, wall)
	}
	return start, end, wall
}

// fit checks the wall time against the window, which is not empty.
func (c *checker) fit(i int, start, end time.Time, wall time.Duration) time.Duration {
	hint := "shorten WallTime or move the end"
	if wall == 0 {
		hint = "without WallTime it runs from the start to the end; give WallTime or move them"
		if wall = end.Sub(start); wall > MaxWall {
			c.fault(Meaning, i, EndDate, fmt.Sprintf("a run of %s", wall), fmt.Sprintf("at most %s", MaxWall), "give WallTime")
			return wall
		}
	}
	from := start
	if c.now.After(from) {
		from = c.now
	}
	if !from.IsZero() && end.Sub(from) < wall {
		found := fmt.Sprintf("%s in a window of %s from %s", wall, end.Sub(from).Truncate(time.Second), stamp(from.Truncate(time.Second)))
		c.fault(Meaning, i, WallTime, found, "at most the window", hint)
	}
	return wall
}

// openWindow reports a request that would run from the time of reading.
func (c *checker) openWindow(i int) {
	if !c.timeless {
		c.fault(Meaning, i, WallTime, "neither WallTime nor StartDate", "one of them", "otherwise its length depends on when it is read")
	}
}

// years reports whether t is in the allowed years. A zone can move a date out of them.
func (c *checker) years(i int, term Term, t time.Time) bool {
	ok := t.Year() >= MinYear && t.Year() <= MaxYear
	switch {
	case term == EndDate && t.IsZero():
		c.fault(Form, i, EndDate, "nothing", "one in every "+string(RequestElement), "")
	case !ok:
		c.fault(Meaning, i, term, stamp(t), fmt.Sprintf("the years %d to %d in UTC", MinYear, MaxYear), "")
	}
	return ok
}

// utc strips the location and the monotonic clock reading, so that equal instants are equal values.
func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Round(0)
}

func ceilSecond(t time.Time) time.Time {
	if down := t.Truncate(time.Second); down.Before(t) {
		return down.Add(time.Second)
	}
	return t
}

func stamp(t time.Time) string { return t.Format(time.RFC3339Nano) }

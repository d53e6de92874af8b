package rfql

import "time"

func minutes(n int) time.Duration { return time.Duration(n) * time.Minute }

// times converts the dates and times of a request to instants. A start without a time is
// the beginning of its day (D: the source allows each alone). A start time without a date
// is ambiguous and a fault.
func (q *requestReader) times() {
	q.End = q.instant(EndDate, EndTime, q.end)
	dated, timed := q.lines[StartDate.position()], q.lines[StartTime.position()]
	switch {
	case dated > 0:
		q.NotBefore = q.instant(StartDate, StartTime, q.start)
	case timed > 0:
		q.fault(Meaning, timed, StartTime, "no StartDate", "StartTime with StartDate", "a time without a date is ambiguous")
	}
}

func (q *requestReader) instant(date, clock Term, m moment) time.Time {
	if m.date.IsZero() {
		return time.Time{} // missing or unreadable, and reported
	}
	at, ok := instant(m.day, m.clock, q.zone)
	if !ok {
		q.fault(Meaning, q.lines[clock.position()], clock, "a zone other than that of "+string(date), "the same zone", "")
	}
	return at
}

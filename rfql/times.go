package rfql

import "time"

func minutes(n int) time.Duration { return time.Duration(n) * time.Minute }

// times makes instants of the dates and times of a request. A start without a
// time is the beginning of its day (D: the source allows each alone); a start
// time without a date names no instant, and is in doubt.
func (q *requestReader) times() {
	q.End = q.instant(EndDate, EndTime, q.end)
	dated, timed := q.lines[StartDate.position()], q.lines[StartTime.position()]
	switch {
	case dated > 0:
		q.NotBefore = q.instant(StartDate, StartTime, q.start)
	case timed > 0:
		q.fault(Meaning, timed, StartTime, "no StartDate", "StartTime with StartDate", "a time alone names no instant")
	}
}

func (q *requestReader) instant(date, clock Term, m moment) time.Time {
	if m.date.IsZero() {
		return time.Time{} // missing or unreadable, which has been told
	}
	at, ok := instant(m.day, m.clock, q.zone)
	if !ok {
		q.fault(Meaning, q.lines[clock.position()], clock, "a zone other than that of "+string(date), "one zone", "")
	}
	return at
}

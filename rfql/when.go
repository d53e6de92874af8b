package rfql

import (
	"strconv"
	"strings"
	"time"
)

// zone is an optional offset from UTC.
type zone struct {
	offset time.Duration
	given  bool
}

const maxOffset = 14 * time.Hour // of xs:date and xs:time

// day is an xs:date of MinYear..MaxYear.
type day struct {
	date time.Time // midnight, as if in UTC
	zone zone
}

// clock is an xs:time with at most nine digits of a second.
type clock struct {
	since time.Duration // since midnight; 24:00:00 is the end of the day
	zone  zone
}

const (
	dateAllowed  = "a date of the years 1970 to 2199 such as 2031-01-31, optionally with a zone such as Z or +02:00"
	clockAllowed = "a time such as 15:05:34 or 15:05:34.5, optionally with a zone such as Z or +02:00"
	zoneAllowed  = "Z or an offset from UTC of at most 14 hours such as +02:00"
)

func parseDay(s string) (day, bool) {
	if len(s) < len("2006-01-02") || s[4] != '-' || s[7] != '-' {
		return day{}, false
	}
	y, okY := digits(s[:4])
	m, okM := digits(s[5:7])
	d, okD := digits(s[8:10])
	z, okZ := parseZone(s[10:])
	date := time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC)
	real := date.Year() == y && int(date.Month()) == m && date.Day() == d // no 30 February
	return day{date, z}, okY && okM && okD && okZ && real && y >= MinYear && y <= MaxYear
}

func parseClock(s string) (clock, bool) {
	if len(s) < len("15:04:05") || s[2] != ':' || s[5] != ':' {
		return clock{}, false
	}
	h, okH := digits(s[:2])
	m, okM := digits(s[3:5])
	sec, okS := digits(s[6:8])
	nanos, rest, okF := parseFraction(s[8:])
	z, okZ := parseZone(rest)
	since := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(sec)*time.Second + nanos
	inDay := h < 24 && m < 60 && sec < 60 || since == 24*time.Hour && h == 24
	return clock{since, z}, okH && okM && okS && okF && okZ && inDay
}

// parseFraction cuts "." and one to nine digits from s.
func parseFraction(s string) (nanos time.Duration, rest string, ok bool) {
	if !strings.HasPrefix(s, ".") {
		return 0, s, true
	}
	rest = strings.TrimLeft(s[1:], "0123456789")
	frac := s[1 : len(s)-len(rest)]
	if frac == "" || len(frac) > 9 {
		return 0, s, false
	}
	n, _ := digits(frac)
	for range 9 - len(frac) {
		n *= 10
	}
	return time.Duration(n), rest, true
}

func parseZone(s string) (zone, bool) {
	switch {
	case s == "":
		return zone{}, true
	case s == "Z":
		return zone{given: true}, true
	case len(s) != len("+02:00") || s[0] != '+' && s[0] != '-' || s[3] != ':':
		return zone{}, false
	}
	h, okH := digits(s[1:3])
	m, okM := digits(s[4:6])
	offset := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
	if !okH || !okM || m > 59 || offset > maxOffset {
		return zone{}, false
	}
	if s[0] == '-' {
		offset = -offset
	}
	return zone{offset, true}, true
}

// digits reads a number of one to nine decimal digits.
func digits(s string) (int, bool) {
	if s == "" || len(s) > 9 || !decimal(s) {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// instant joins a date and a time, with a zone for when neither has one. It is false if
// the two have different zones; then the time's is used.
func instant(d day, c clock, otherwise zone) (time.Time, bool) {
	z := c.zone
	if !z.given {
		z = d.zone
	}
	if !z.given {
		z = otherwise
	}
	clash := c.zone.given && d.zone.given && c.zone.offset != d.zone.offset
	return d.date.Add(c.since - z.offset), !clash
}

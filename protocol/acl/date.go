package acl

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The layout of a FIPA date. Milliseconds in a Go layout need a separator, so they
// are written and read separately.
const (
	layoutDate   = "20060102T150405"
	digitsSecond = len(layoutDate) // of a date without milliseconds
	digitsMilli  = digitsSecond + 3
)

// In a relative date a year has 365 days and a month 30, as on other platforms.
const (
	day   = 24 * time.Hour
	month = 30 * day
	year  = 365 * day
)

// maxYears bounds a relative date, so that it fits a time.Duration.
const maxYears = 200

// minYear and maxYear bound an absolute date: four digits, not before Unix time.
const (
	minYear = 1970
	maxYear = 9999
)

// undesignated removes the type letter of a date, if it has one.
func undesignated(s string) string {
	n := len(s) - 1
	if n < 0 || (s[n]|0x20) < 'a' || (s[n]|0x20) > 'z' {
		return s
	}
	return s[:n]
}

// parseDate reads a FIPA date: a time, or with a sign a duration. Without Z it is
// UTC. Missing milliseconds are zero.
func parseDate(s string) (time.Time, *time.Duration, error) {
	if strings.HasPrefix(s, "+") || strings.HasPrefix(s, "-") {
		d, err := parseRelative(s)
		return time.Time{}, &d, err
	}
	t, err := parseTime(s)
	return t, nil, err
}

func parseTime(s string) (time.Time, error) {
	milli, err := dateDigits(s)
	if err != nil {
		return time.Time{}, err
	}
	t, err := time.Parse(layoutDate, strings.ToUpper(s[:digitsSecond]))
	if err != nil {
		return time.Time{}, fmt.Errorf("date %q: this day or time does not exist", clip(s))
	}
	t = t.Add(time.Duration(milli) * time.Millisecond).UTC()
	if t.Year() < minYear || t.Year() > maxYear {
		return time.Time{}, fmt.Errorf("date %q: want a year in %d..%d", clip(s), minYear, maxYear)
	}
	return t, nil
}

var errDate = errors.New("want YYYYMMDDThhmmssmmmZ, such as 20260801T120000123Z")

// dateDigits checks the shape of a date without sign, and returns its milliseconds.
func dateDigits(whole string) (int, error) {
	s := undesignated(whole)
	if len(s) != digitsSecond && len(s) != digitsMilli {
		return 0, fmt.Errorf("date %q: %w", clip(whole), errDate)
	}
	for i := range len(s) {
		if i == 8 && (s[i] == 'T' || s[i] == 't') {
			continue
		}
		if i == 8 || !isDigit(s[i]) {
			return 0, fmt.Errorf("date %q: %w", clip(whole), errDate)
		}
	}
	if len(s) == digitsSecond {
		return 0, nil
	}
	return number(s[digitsSecond:]), nil
}

// number reads decimal digits that were checked.
func number(s string) int {
	n := 0
	for i := range len(s) {
		n = n*10 + int(s[i]-'0')
	}
	return n
}

// parseRelative reads a sign and a count of years, months, days, hours, minutes,
// seconds and milliseconds.
func parseRelative(s string) (time.Duration, error) {
	digits := s[1:]
	milli, err := dateDigits(digits)
	if err != nil {
		return 0, err
	}
	years := number(digits[:4])
	if years > maxYears {
		return 0, fmt.Errorf("relative date %q: want at most %d years", clip(s), maxYears)
	}
	d := time.Duration(years)*year + time.Duration(number(digits[4:6]))*month + time.Duration(number(digits[6:8]))*day +
		time.Duration(number(digits[9:11]))*time.Hour + time.Duration(number(digits[11:13]))*time.Minute +
		time.Duration(number(digits[13:15]))*time.Second + time.Duration(milli)*time.Millisecond
	if s[0] == '-' {
		d = -d
	}
	return d, nil
}

// formatDate writes a time rounded down to a millisecond, in UTC.
func formatDate(t time.Time) string {
	t = t.UTC()
	return t.Format(layoutDate) + fmt.Sprintf("%03dZ", t.Nanosecond()/int(time.Millisecond))
}

// formatRelative writes a duration rounded towards zero to a millisecond.
func formatRelative(d time.Duration) string {
	sign := byte('+')
	if d < 0 {
		sign, d = '-', -d
	}
	part := func(unit time.Duration) int64 {
		n := d / unit
		d %= unit
		return int64(n)
	}
	return fmt.Sprintf("%c%04d%02d%02dT%02d%02d%02d%03d", sign, part(year), part(month), part(day),
		part(time.Hour), part(time.Minute), part(time.Second), part(time.Millisecond))
}

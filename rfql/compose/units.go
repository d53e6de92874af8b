package compose

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/rfql"
)

// count reads a number of cores or nodes, 1..rfql.MaxCount.
func count(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > rfql.MaxCount || !digits(s) {
		return 0, fmt.Errorf("%q: want a whole number, 1 to %d", s, rfql.MaxCount)
	}
	return n, nil
}

// nodes reads 4x16: four nodes of sixteen cores.
func nodes(s string) (n, each int, err error) {
	left, right, ok := strings.Cut(s, "x")
	n, err1 := count(left)
	each, err2 := count(right)
	if !ok || err1 != nil || err2 != nil {
		return 0, 0, fmt.Errorf("%q: want nodes and cores of each, such as 4x16", s)
	}
	return n, each, nil
}

// price reads credits per core-hour, above zero.
func price(s string) (protocol.Credits, error) {
	c, err := protocol.ParseCredits(s)
	if err != nil || c <= 0 {
		return 0, fmt.Errorf("%q: want credits per core-hour, above 0, at most %s, at most six decimals", s, protocol.MaxCredits)
	}
	return c, nil
}

const durationAllowed = "want a time such as 2h, 90m, 1d12h or 02:30:00, at most ten years"

const wallAllowed = "want a time such as 2h, 1d12h, 10 (minutes), 1:30:00 or 1-12 (days-hours), at most ten years"

// Duration reads a length of time above zero and at most rfql.MaxWall: numbers
// with d, h, m or s, or the batch systems' [D-]HH:MM:SS.
func Duration(s string) (time.Duration, error) {
	d, ok := clockDuration(s)
	if !ok {
		d, ok = spelledDuration(s)
	}
	if !ok || d <= 0 || d > rfql.MaxWall {
		return 0, fmt.Errorf("%q: %s", s, durationAllowed)
	}
	return d, nil
}

// clockDuration reads [D-]HH:MM:SS.
func clockDuration(s string) (time.Duration, bool) {
	days, clock, ok := strings.Cut(s, "-")
	if !ok {
		days, clock = "0", s
	}
	parts := strings.Split(clock, ":")
	if len(parts) != 3 {
		return 0, false
	}
	var total time.Duration
	for i, p := range append([]string{days}, parts...) {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || i > 1 && n > 59 {
			return 0, false
		}
		total += time.Duration(n) * [...]time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second}[i]
	}
	return total, true
}

// spelledDuration reads 1d12h30m.
func spelledDuration(s string) (time.Duration, bool) {
	days, rest, ok := strings.Cut(s, "d")
	if !ok {
		d, err := time.ParseDuration(s)
		return d, err == nil && d > 0
	}
	n, err := strconv.ParseUint(days, 10, 16)
	total := time.Duration(n) * 24 * time.Hour
	if err != nil || rest == "" {
		return total, err == nil
	}
	d, err := time.ParseDuration(rest)
	return total + d, err == nil && d >= 0
}

// wallTime reads a wall time and rounds it up to whole minutes.
func wallTime(s string) (time.Duration, error) {
	d, err := WallTime(s)
	return (d + time.Minute - 1).Truncate(time.Minute), err
}

// WallTime reads a duration, or one as sbatch takes it: minutes, D-HH or D-HH:MM.
func WallTime(s string) (time.Duration, error) {
	d, err := Duration(batchTime(s))
	if err != nil {
		return 0, fmt.Errorf("%q: %s", s, wallAllowed)
	}
	return d, nil
}

// batchTime completes the short forms that sbatch takes to [D-]HH:MM:SS: minutes, D-HH and
// D-HH:MM. It leaves MM:SS alone: who writes 1:30 may mean hours.
func batchTime(s string) string {
	if days, clock, ok := strings.Cut(s, "-"); ok && digits(days) {
		return days + "-" + clock + strings.Repeat(":00", max(0, 2-strings.Count(clock, ":")))
	}
	if digits(s) {
		return s + "m"
	}
	return s
}

// instant reads a time in the zone of now or with its own; moving means that it is relative to
// now. A clock time alone is the next such time.
func instant(s string, now time.Time) (t time.Time, moving bool, err error) {
	if after, ok := strings.CutPrefix(s, "+"); ok {
		d, err := Duration(after)
		return now.Add(d).UTC(), true, err
	}
	if t, ok := Date(s, now.Location()); ok {
		return t, false, nil
	}
	if t, err := time.Parse("15:04", s); err == nil {
		return nextClock(t, now), false, nil
	}
	return t, false, fmt.Errorf("%q: want a time such as 2026-11-22T18:00, 18:00 (the next) or +3h (from now)", s)
}

// Date reads a date and time in a zone or with its own.
func Date(s string, zone *time.Location) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, zone); err == nil && t.Nanosecond() == 0 {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// nextClock is the first instant after now at which clocks in its zone show t.
func nextClock(t, now time.Time) time.Time {
	next := time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), 0, 0, now.Location())
	if !next.After(now) {
		next = next.AddDate(0, 0, 1)
	}
	return next.UTC()
}

// scale defines the units of a size as multiples of the base, the default unit.
type scale struct {
	units   map[string]int64 // upper case -> in thousandths of the base
	allowed string
}

var (
	megabytes = scale{binary(1, 1024, 1<<20), "megabytes, or a number with M, G or T, such as 2G"}
	gigabytes = scale{binary(0, 1, 1024), "gigabytes, or a number with G or T, such as 500G"}
	megahertz = scale{decimal("HZ"), "MHz, or a number with MHz or GHz, such as 2.4GHz"}
	megabits  = scale{decimal("BIT/S"), "Mbit/s, or a number with M or G, such as 10G"}
)

// binary are the units of storage; a zero multiple means that the unit is unknown.
func binary(m, g, t int64) map[string]int64 {
	units := map[string]int64{"": 1000}
	for letter, n := range map[string]int64{"M": m, "G": g, "T": t} {
		for _, tail := range []string{"", "B", "IB"} {
			if n > 0 {
				units[letter+tail] = n * 1000
			}
		}
	}
	return units
}

// decimal are the units of rates.
func decimal(tail string) map[string]int64 {
	units := map[string]int64{"": 1000}
	for letter, n := range map[string]int64{"M": 1000, "G": 1000 * 1000} {
		units[letter], units[letter+tail] = n, n
	}
	return units
}

// read reads a size and rounds it up to the base, since sizes are minimums.
func (sc scale) read(s string) (int, error) {
	upper := strings.ToUpper(s)
	number := strings.TrimRight(upper, "ABCDEFGHIJKLMNOPQRSTUVWXYZ/")
	factor, known := sc.units[upper[len(number):]]
	whole, fraction, _ := strings.Cut(number, ".")
	if !known || !digits(whole) || strings.Contains(number, ".") && !digits(fraction) {
		return 0, fmt.Errorf("%q: want %s", s, sc.allowed)
	}
	r, ok := new(big.Rat).SetString(number)
	if !ok {
		return 0, fmt.Errorf("%q: want %s", s, sc.allowed)
	}
	r.Mul(r, big.NewRat(factor, 1000))
	up := new(big.Int).Add(r.Num(), new(big.Int).Sub(r.Denom(), big.NewInt(1)))
	n := up.Div(up, r.Denom())
	if n.Sign() <= 0 || n.Cmp(big.NewInt(rfql.MaxCount)) > 0 {
		return 0, fmt.Errorf("%q: want %s, 1 to %d in total", s, sc.allowed, rfql.MaxCount)
	}
	return int(n.Int64()), nil
}

// maxDigits bounds the digits of a number before and after its point.
const maxDigits = 18

func digits(s string) bool {
	return s != "" && len(s) <= maxDigits && strings.Trim(s, "0123456789") == ""
}

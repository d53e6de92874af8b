package command

import (
	"fmt"
	"io"
	"time"

	"ramp/agents/user"
	"ramp/protocol/message"
)

// printWhen says of a quote when its units would start and end.
func printWhen(w io.Writer, p message.Purchase, now time.Time) {
	if p.State != user.StateQuoted || len(p.Units) == 0 {
		return
	}
	first, last, end := p.Units[0].Start, p.Units[0].Start, p.Units[0].End
	for _, u := range p.Units[1:] {
		first, last, end = earliest(first, u.Start), latest(last, u.Start), latest(end, u.End)
	}
	starts := "starts " + clockTime(first) + " UTC, in " + ago(first.Sub(now))
	if last.After(first) {
		starts += ", its last unit " + clockTime(last)
	}
	fmt.Fprintf(w, "  %s; ends %s%s\n", starts, clockTime(end), howSure(p.Units))
}

// howSure says what a reservation is worth: how likely the queue alone would have
// started every unit by then, if all sellers tell.
func howSure(units []message.PurchasedUnit) string {
	least := units[0].Queued
	for _, u := range units {
		if _, told := u.Queued.Chance(); !told {
			return ""
		}
		least = min(least, u.Queued)
	}
	return "; sure once it is bought, with " + least.String() + " by the queue alone"
}

func earliest(x, y time.Time) time.Time {
	if y.Before(x) {
		return y
	}
	return x
}

func latest(x, y time.Time) time.Time {
	if y.After(x) {
		return y
	}
	return x
}

// ago is a duration for people: its two largest units.
func ago(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days %d h", int(d.Hours())/24, int(d.Hours())%24)
}

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

// surelyBy says by when everything that is offered starts, and how sure that is by
// the queues of those that offer it; nothing, unless all of them tell.
func surelyBy(starts []message.RoundStart) string {
	if len(starts) == 0 {
		return ""
	}
	last, least := starts[0].Start, starts[0].Queued
	for _, s := range starts {
		if _, told := s.Queued.Chance(); !told {
			return ""
		}
		last, least = latest(last, s.Start), min(least, s.Queued)
	}
	whose := "its queue"
	if len(starts) > 1 {
		whose = "their queues"
	}
	return fmt.Sprintf("; starts by %s UTC, %s sure by %s alone", clockTime(last), least, whose)
}

// chosen is when the units of a purchase start that is on its way.
func chosen(p message.Purchase) []message.RoundStart {
	switch p.State {
	case user.StateApproval, user.StateVoting, user.StateConfirming, user.StateDeciding:
	default:
		return nil
	}
	var starts []message.RoundStart
	for _, u := range p.Units {
		starts = append(starts, message.RoundStart{Start: u.Start, Queued: u.Queued})
	}
	return starts
}

// standing is when it would start as it stands: what was chosen, or what was best in
// the last round.
func standing(p message.Purchase) []message.RoundStart {
	if p.State != user.StateBidding || len(p.Rounds) == 0 {
		return chosen(p)
	}
	return p.Rounds[len(p.Rounds)-1].Starts
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

package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/config"
	"ramp/agents/exit"
	"ramp/agents/user"
	"ramp/agents/words"
	"ramp/protocol/message"
)

// ConfigPath is the configuration file of a daemon.
func ConfigPath(c *cobra.Command, file, kind string) (string, error) {
	if file != "" {
		return file, nil
	}
	dir, err := DirOf(c, kind)
	return filepath.Join(dir, config.Name), err
}

// ParseTimes reads --from and --to.
func ParseTimes(from, to string) (begin, end time.Time, err error) {
	if begin, err = parseTime("--from", from); err != nil {
		return begin, end, err
	}
	if end, err = parseTime("--to", to); err != nil {
		return begin, end, err
	}
	if !end.IsZero() && !begin.Before(end) {
		return begin, end, exit.Fail(exit.Usage, "", "--from %q, --to %q: --to must be later than --from", from, to)
	}
	return begin, end, nil
}

func parseTime(flag, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(form, s, time.Local); err == nil && t.Unix() >= 0 {
			return t, nil
		}
	}
	return time.Time{}, exit.Fail(exit.Usage, "", "%s %q: want a time from 1970 on, such as 2026-01-31T12:00:00Z or 2026-01-31", flag, s)
}

// printWhen shows when the units of an offer would start and end.
func printWhen(w io.Writer, p message.Purchase, now time.Time) {
	if p.State != user.StateQuoted && p.State != user.StateApproval || len(p.Units) == 0 {
		return
	}
	starts := func(x, y message.PurchasedUnit) int { return x.Start.Compare(y.Start) }
	ends := func(x, y message.PurchasedUnit) int { return x.End.Compare(y.End) }
	first, last, end := slices.MinFunc(p.Units, starts).Start, slices.MaxFunc(p.Units, starts).Start, slices.MaxFunc(p.Units, ends).End
	text := "starts " + words.AtMinute(first) + ", in " + words.Ago(first.Sub(now))
	if last.After(first) {
		text += ", its last unit " + words.ClockTime(last)
	}
	fmt.Fprintf(w, "  %s; ends %s%s\n", text, words.ClockTime(end), howSure(p.Units))
}

// offerWords are the total of the units that were chosen, and when the first of them starts.
func offerWords(p message.Purchase, now time.Time) string {
	if p.State != user.StateApproval && p.State != user.StateVoting || len(p.Units) == 0 {
		return ""
	}
	first := slices.MinFunc(p.Units, func(x, y message.PurchasedUnit) int { return x.Start.Compare(y.Start) }).Start
	return fmt.Sprintf(", %s %s in total, starts in %s", p.Total.Cents(), p.Currency, words.Ago(first.Sub(now)))
}

// howSure compares a reservation with the queue: the probability that the queue alone would
// start every unit by then. It is empty unless all sellers report it.
func howSure(units []message.PurchasedUnit) string {
	least := units[0].Queued
	for _, u := range units {
		if _, known := u.Queued.Chance(); !known {
			return ""
		}
		least = min(least, u.Queued)
	}
	return "; certain once bought, " + least.String() + " by the queue alone"
}

// surelyBy describes the latest start on offer, and the probability that the sellers' queues
// alone would meet it. It is empty unless all of them report it.
func surelyBy(starts []message.RoundStart) string {
	if len(starts) == 0 {
		return ""
	}
	last := slices.MaxFunc(starts, func(x, y message.RoundStart) int { return x.Start.Compare(y.Start) }).Start
	least := starts[0].Queued
	for _, s := range starts {
		if _, known := s.Queued.Chance(); !known {
			return ""
		}
		least = min(least, s.Queued)
	}
	whose := "its queue"
	if len(starts) > 1 {
		whose = "their queues"
	}
	return fmt.Sprintf("; starts by %s, %s sure by %s alone", words.AtMinute(last), least, whose)
}

// chosen are the starts of the units that were chosen in a running purchase.
func chosen(p message.Purchase) []message.RoundStart {
	if !slices.Contains([]string{user.StateApproval, user.StateVoting, user.StateConfirming, user.StateDeciding}, p.State) {
		return nil
	}
	var starts []message.RoundStart
	for _, u := range p.Units {
		starts = append(starts, message.RoundStart{Start: u.Start, Queued: u.Queued})
	}
	return starts
}

// standing are the starts of the chosen units, or of the best offers in the last round.
func standing(p message.Purchase) []message.RoundStart {
	if p.State != user.StateBidding || len(p.Rounds) == 0 {
		return chosen(p)
	}
	return p.Rounds[len(p.Rounds)-1].Starts
}

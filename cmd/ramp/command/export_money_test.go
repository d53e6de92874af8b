package command

import (
	"time"

	"ramp/protocol/message"
)

// Lasts is how long an account lasts of which, and of whose group, these are all entries.
func Lasts(now time.Time, over time.Duration, b message.Balance, own, group []message.StatementLine) runwayLine {
	return lasts(now, over, "bank", b, burnedBy(now.Add(-over), own), burnedBy(now.Add(-over), group))
}

func burnedBy(since time.Time, lines []message.StatementLine) burned {
	var b burned
	for _, l := range lines {
		if !l.Time.Before(since) {
			b.spent += fell(l)
		}
	}
	b.first = firstFall(message.Statement{Lines: lines}, "CPU")
	return b
}

// RunwayRows is the table of one account.
func RunwayRows(l runwayLine) [][]string { return runwayRows([]runwayLine{l}) }

// ReservationRows is what a site is shown of its reservations.
func ReservationRows(l ...message.ReservationLine) [][]string { return reservationRows(l) }

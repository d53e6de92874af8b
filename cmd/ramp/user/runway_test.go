package user_test

import (
	"testing"
	"time"

	"ramp/agents/control"
	"ramp/agents/words"
	"ramp/cmd/ramp/user"
	"ramp/protocol"
)

func TestARunwayIsMarkedWhenItIsShort(t *testing.T) {
	const day = 24 * time.Hour
	lasts := day.Seconds()
	rows := user.RunwayRows(control.RunwayLine{
		Spent: 2 * protocol.Credit, OverS: day.Seconds(), LastsS: &lasts, Low: true, Ends: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC),
		Counts: control.CountsBoth, Group: "A",
	})
	if got, want := rows[1][5], "24 hours"; got != want {
		t.Errorf("the rate covers %q, want %q", got, want)
	}
	if got, want := rows[1][6], "LOW: 24 hours, until "+words.AtMinute(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)); got != want {
		t.Errorf("the money lasts %q, want %q", got, want)
	}
	if got, want := rows[1][7], "its own and group:A"; got != want {
		t.Errorf("it counts %q, want %q", got, want)
	}
}

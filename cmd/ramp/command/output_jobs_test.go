package command_test

import (
	"testing"
	"time"

	"ramp/cmd/ramp/command"
	"ramp/protocol"
	"ramp/protocol/message"
)

func TestWhatAUsageRestsOnIsPrinted(t *testing.T) {
	u := message.PurchasedUnit{Usage: &protocol.Usage{CPU: 2 * time.Hour, Wall: time.Hour}, Due: 5 * protocol.Credit}
	for by, want := range map[protocol.Measured]string{
		"":                          "used 2h0m0s of core time in 1h0m0s, 5 due; countersigned",
		protocol.MeasuredAccounting: "used 2h0m0s of core time in 1h0m0s (as the accounting of the seller's cluster says), 5 due; countersigned",
		protocol.MeasuredJobs:       "used 2h0m0s of core time in 1h0m0s (the cores of the jobs that ran in the slot), 5 due; countersigned",
		protocol.MeasuredSlot:       "used 2h0m0s of core time in 1h0m0s (the whole slot: its seller knows of no job in it), 5 due; countersigned",
	} {
		u.Measured = by
		if got := command.UnitLine(u); got != want {
			t.Errorf("%q: %s; want %s", by, got, want)
		}
	}
}

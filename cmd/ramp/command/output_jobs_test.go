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

func TestHowAGuaranteeWasKeptIsPrinted(t *testing.T) {
	u := message.PurchasedUnit{Usage: &protocol.Usage{CPU: time.Hour, Wall: time.Hour}, Due: 5 * protocol.Credit}
	for want, g := range map[string]protocol.Guarantee{
		"promised 4 cores, kept: never fewer than 4.5 were there":                            {Of: protocol.GuaranteesShare, Promised: 4 * protocol.Core, Had: 4.5 * protocol.Core, Kept: true},
		"promised 4 cores, BROKEN BY 1: at the least 3 were there":                           {Of: protocol.GuaranteesShare, Promised: 4 * protocol.Core, Had: 3 * protocol.Core},
		"promised 0.5 cores, kept: 1 used":                                                   {Of: protocol.GuaranteesRate, Promised: protocol.Core / 2, Had: protocol.Core, Kept: true},
		"promised 0.5 cores, MISSED BY 0.2 if the program was always ready to run: 0.3 used": {Of: protocol.GuaranteesRate, Promised: protocol.Core / 2, Had: 0.3 * protocol.Core},
	} {
		u.Guarantee = &g
		if got, want := command.UnitLine(u), "used 1h0m0s of core time in 1h0m0s, 5 due; "+want+"; countersigned"; got != want {
			t.Errorf("%s; want %s", got, want)
		}
		rows := command.ReservationRows(message.ReservationLine{Guarantee: &g, Due: u.Due}, message.ReservationLine{})
		if got := rows[1]; got[len(got)-1] != want || got[len(got)-2] != "5" || len(rows[2]) != len(rows[0]) {
			t.Errorf("the site reads %q", rows)
		}
	}
}

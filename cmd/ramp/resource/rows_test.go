package resource_test

import (
	"testing"
	"time"

	"ramp/cmd/ramp/resource"
	"ramp/protocol"
	"ramp/protocol/message"
)

func TestHowAGuaranteeWasKeptIsShownToTheSite(t *testing.T) {
	u := message.PurchasedUnit{Usage: &protocol.Usage{CPU: time.Hour, Wall: time.Hour}, Due: 5 * protocol.Credit}
	for want, g := range map[string]protocol.Guarantee{
		"promised 4 cores, met: at least 4.5 at all times":                                   {Of: protocol.GuaranteesShare, Promised: 4 * protocol.Core, Had: 4.5 * protocol.Core, Kept: true},
		"promised 4 cores, MISSED BY 1: 3 at the lowest":                                     {Of: protocol.GuaranteesShare, Promised: 4 * protocol.Core, Had: 3 * protocol.Core},
		"promised 0.5 cores, met: 1 used":                                                    {Of: protocol.GuaranteesRate, Promised: protocol.Core / 2, Had: protocol.Core, Kept: true},
		"promised 0.5 cores, MISSED BY 0.2 if the program was always ready to run: 0.3 used": {Of: protocol.GuaranteesRate, Promised: protocol.Core / 2, Had: 0.3 * protocol.Core},
	} {
		u.Guarantee = &g
		rows := resource.ReservationRows(message.ReservationLine{Guarantee: &g, Due: u.Due}, message.ReservationLine{})
		if got := rows[1]; got[len(got)-1] != want || got[len(got)-2] != "5.00" || len(rows[2]) != len(rows[0]) {
			t.Errorf("the site reads %q", rows)
		}
	}
}

func TestASoldSlotThatHasEndedIsOver(t *testing.T) {
	slot := func(end time.Duration) protocol.Slot {
		return protocol.Slot{Start: time.Now().Add(-time.Hour), End: time.Now().Add(end), Cores: 1}
	}
	rows := resource.ReservationRows(
		message.ReservationLine{State: "sold", Slot: slot(-time.Minute)},
		message.ReservationLine{State: "sold", Slot: slot(time.Minute)},
		message.ReservationLine{State: "given back", Slot: slot(-time.Minute)})
	if rows[1][1] != "over" || rows[2][1] != "sold" || rows[3][1] != "given back" {
		t.Errorf("the site reads %q", rows)
	}
}

func TestWhereAllNodesAreDrainedSalesAreOpenForNothing(t *testing.T) {
	for want, q := range map[string]message.QueueStatus{
		"open": {State: "up", Capacity: 1}, "open, but no node can run a job": {State: "up"},
	} {
		if got := resource.SalesWords(message.ResourceStatus{Sales: message.SalesOpen, Queue: q}); got != want {
			t.Errorf("%+v: %q, want %q", q, got, want)
		}
	}
}

package order_test

import (
	"testing"
	"time"

	"ramp/agents/order"
	"ramp/protocol"
	"ramp/protocol/message"
)

func TestWhatAUsageRestsOnIsPrinted(t *testing.T) {
	u := message.PurchasedUnit{Usage: &protocol.Usage{CPU: 2*time.Minute + 193_404_885, Wall: time.Minute + 499_999}, Due: 5 * protocol.Credit}
	for by, want := range map[protocol.Measured]string{
		"":                          "used 2m0.193s of core time in 1m0s, 5.00 due; countersigned",
		protocol.MeasuredAccounting: "used 2m0.193s of core time in 1m0s (from the accounting of the seller's cluster), 5.00 due; countersigned",
		protocol.MeasuredJobs:       "used 2m0.193s of core time in 1m0s (the cores of the jobs that ran in the slot), 5.00 due; countersigned",
		protocol.MeasuredSlot:       "used 2m0.193s of core time in 1m0s (the whole slot: the seller knows of no job in it), 5.00 due; countersigned",
	} {
		u.Measured = by
		if got := order.EndLine(u); got != want {
			t.Errorf("%q: %s; want %s", by, got, want)
		}
	}
}

func TestHowAGuaranteeWasKeptIsPrinted(t *testing.T) {
	u := message.PurchasedUnit{Usage: &protocol.Usage{CPU: time.Hour, Wall: time.Hour}, Due: 5 * protocol.Credit}
	for want, g := range map[string]protocol.Guarantee{
		"promised 4 cores, met: at least 4.5 at all times":                                   {Of: protocol.GuaranteesShare, Promised: 4 * protocol.Core, Had: 4.5 * protocol.Core, Kept: true},
		"promised 4 cores, MISSED BY 1: 3 at the lowest":                                     {Of: protocol.GuaranteesShare, Promised: 4 * protocol.Core, Had: 3 * protocol.Core},
		"promised 0.5 cores, met: 1 used":                                                    {Of: protocol.GuaranteesRate, Promised: protocol.Core / 2, Had: protocol.Core, Kept: true},
		"promised 0.5 cores, MISSED BY 0.2 if the program was always ready to run: 0.3 used": {Of: protocol.GuaranteesRate, Promised: protocol.Core / 2, Had: 0.3 * protocol.Core},
	} {
		u.Guarantee = &g
		if got, want := order.EndLine(u), "used 1h0m0s of core time in 1h0m0s, 5.00 due; "+want+"; countersigned"; got != want {
			t.Errorf("%s; want %s", got, want)
		}
	}
}

package reserve_test

import (
	"fmt"
	"testing"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// tariffs are what an offer's units cost, as meter writes them into a bundle.
func (w *world) tariffs(o protocol.Offer, a args) map[int]protocol.Tariff {
	b := protocol.Bundle{Mode: protocol.ModeMetered}
	for _, it := range o.Items {
		b.Units = append(b.Units, protocol.BundleUnit{Unit: it.Unit, Slot: it.Slot, Price: it.Price, Cost: it.Cost})
	}
	w.meter(&b, a)
	list := map[int]protocol.Tariff{}
	for _, u := range b.Units {
		list[u.Unit] = u.Tariff
	}
	return list
}

// meter gives the units of a metered bundle their tariff: their price for what is
// used, with limit= as time limit and prepay=yes as prepayment of the ceiling.
func (w *world) meter(b *protocol.Bundle, a args) {
	for i := range b.Units {
		if u := &b.Units[i]; b.Mode == protocol.ModeMetered {
			u.Tariff = protocol.Tariff{TimeLimit: a.wait("limit", u.Slot.Wall().String()), P: protocol.Ramp{Top: u.Price}}
			u.Tariff.P.Lo = int64(a.number("rmin", 0)) * protocol.Core
			u.Tariff.P.Hi = u.Tariff.P.Lo
			if a["prepay"] == "yes" {
				u.Tariff.Prepay = u.Cost
			}
		}
	}
}

// late adds to a receipt its mode and, with ends=HOW and paid=N, how unit 0 ended.
func (w *world) late(r *protocol.Receipt, mode protocol.Mode, a args) {
	if mode == protocol.ModeOnReservation || r.Outcome != protocol.OutcomeSettled {
		return
	}
	r.Mode = mode
	if a["ends"] != "" {
		r.Ends = []protocol.UnitEnd{{How: protocol.End(a["ends"]), Paid: protocol.Credits(a.number("paid", 0)) * protocol.Credit, Entry: 9, Time: w.now}}
	}
}

// used is the batch system's word on r=: state=, exit=, cpu= and wall=, and what that
// rests on: measured=.
func (w *world) used(t *testing.T, a args) string {
	s := protocol.JobStatus{
		State: protocol.JobState(a.text("state", "expired")), Exit: a.number("exit", 0),
		Usage: protocol.Usage{CPU: a.wait("cpu", "0s"), Wall: a.wait("wall", "0s"), Share: int64(a.number("share", 0)) * protocol.Core},
	}
	if s.State.Over() {
		s.Ended = w.now
	}
	return w.receive(t, args{"from": ".queue"}, protocol.Inform, message.SlotUsed{ID: w.full(a["r"]), At: w.now, Status: s, Measured: protocol.Measured(a["measured"])})
}

// job is a record as a transcript shows it.
func job(m message.JobReport) string {
	n := m.Signed.Note
	by := ""
	if n.Measured != "" {
		by = ", measured by " + string(n.Measured)
	}
	return fmt.Sprintf("job of unit %d: success %t, used %s in %s%s, %s due", n.Unit, n.Success, n.Usage.CPU, n.Usage.Wall.Round(time.Second), by, n.Due)
}

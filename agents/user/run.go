package user

import (
	"slices"
	"strconv"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// TableRuns has one message.Run per purchase that runs a program, by ID.
const TableRuns = "runs"

// run is a program in the units of a purchase. Its site is asked again, with
// growing pauses, until it has answered, and then now and then.
type run struct {
	self protocol.AgentID
	view message.Run
	pace []pace // by index in view.Units
}

// pace is when a unit's site is asked next.
type pace struct {
	at    time.Time
	tries int
	// Questions after AskedUntil, and how many of them in a row had no answer.
	late, silent int
}

func (p *pace) wait(now time.Time) {
	p.at = now.Add(retryAfter(p.tries))
	p.tries++
}

// heard sets when a site that has reported a launch is asked again: soon, if the
// stage is passing and its next report may be lost.
func (p *pace) heard(now time.Time, s message.LaunchStatus, changed bool) {
	p.silent = 0
	switch {
	case !passing(s):
		p.tries, p.at = maxDoublings, now.Add(protocol.RetryMost)
	case changed:
		p.tries = 0
		p.wait(now)
	}
}

// next is when the site is asked next. No pause is as long as one from before the clock was set back.
func (p *pace) next(now time.Time) time.Time {
	if p.at.Sub(now) > protocol.RetryMost {
		return now
	}
	return p.at
}

// passing reports whether a stage is over in a moment, if all is well.
func passing(s message.LaunchStatus) bool {
	return s.Stage == message.StageSubmitting || s.Stage == message.StageCollecting || s.Stage == message.StageStaging && s.Missing == 0
}

func begun(s message.LaunchStage) bool { return rank(s) >= rank(message.StageSubmitting) }

func rank(s message.LaunchStage) int {
	return slices.Index([]message.LaunchStage{
		message.StageAsked, message.StageStaging, message.StageGathering, message.StageReady, message.StageSubmitting,
		message.StageSubmitted, message.StageCollecting, message.StageDone, message.StageFailed,
	}, s)
}

// runUnits are the units of a purchase, none of them launched yet.
func runUnits(p *Purchase) []message.RunUnit {
	var list []message.RunUnit
	for _, u := range p.Units {
		list = append(list, message.RunUnit{
			Unit: u.Unit, Launch: p.ID + "." + strconv.Itoa(u.Unit+1), Resource: u.Resource, Seller: u.Seller,
			Slot:   protocol.Slot{Start: u.Start, End: u.End, Cores: u.Cores},
			Status: message.LaunchStatus{Stage: message.StageAsked},
		})
	}
	return list
}

// ReadRun decodes a record of TableRuns.
func ReadRun(value []byte) (message.Run, error) { return decode[message.Run]("a run", value) }

func (x *run) save() protocol.Record { return record(TableRuns, x.view.ID, x.view) }

func (x *run) report() protocol.Output {
	v := x.view
	v.Units = slices.Clone(v.Units)
	return toOwner(v.ID, message.RunProgress{Run: v})
}

// due is when the first of its units is due, or when nothing can be fetched any more.
func (x *run) due(now time.Time) time.Time {
	var at, fetch time.Time
	switch {
	case x.view.Discarding:
		return x.pace[0].next(now)
	case x.view.Over && x.view.Sweep != "": // until its outputs are fetched
		return time.Time{}
	}
	for i, u := range x.view.Units {
		if !u.Lost && !u.Status.Stage.Over() {
			at = protocol.Earlier(at, x.pace[i].next(now))
		}
		fetch = protocol.Later(fetch, u.Status.Keep)
	}
	if x.view.Over {
		return fetch
	}
	return at
}

func (x *run) hurry(now time.Time) {
	for i := range x.pace {
		x.pace[i].at, x.pace[i].tries = now, 0
	}
}

// waits reports whether a unit of the run is being bought again.
func (x *run) waits() bool {
	return slices.ContainsFunc(x.view.Units, func(u message.RunUnit) bool { return u.Lost })
}

// Sites are asked beyond the end of the slot, because their answers may have been
// lost although the program ran.
const (
	unanswered = time.Hour      // a site that never answered
	unheard    = 24 * time.Hour // a site that has the launch

	leastKept = time.Hour // what a site has not forgotten
)

// So often a site is asked then, since the clock may be ahead for a while.
const (
	mostSilent = 20                                // without an answer
	mostLate   = int(unheard / protocol.RetryMost) // altogether
)

// AskedUntil is when a unit's site is no longer asked about its launch.
func AskedUntil(u message.RunUnit) time.Time {
	if u.Status.Stage == message.StageAsked {
		return u.Slot.End.Add(unanswered)
	}
	return u.Slot.End.Add(unheard)
}

// expire ends a unit whose site has not answered for long after the slot's end.
func (x *run) expire(now time.Time, i int) bool {
	u, p := &x.view.Units[i], &x.pace[i]
	switch {
	case now.Before(AskedUntil(*u)):
		p.late, p.silent = 0, 0
		return false
	case p.tries < maxDoublings:
		return false
	case p.silent < mostSilent && p.late < mostLate:
		p.late, p.silent = p.late+1, p.silent+1
		return false
	}
	why := "its site has not reported how it ended"
	if u.Status.Stage == message.StageAsked {
		why = "its site does not answer"
	}
	u.Status.Stage, u.Status.Why, u.Status.Keep = message.StageFailed, why, now
	return true
}

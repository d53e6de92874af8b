package user

import (
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// begun reports whether a launch cannot be brought elsewhere any more.
func begun(s message.LaunchStage) bool { return rank(s) >= rank(message.StageSubmitting) }

// runCanWait reports whether a run can go on in another slot. Once any of it has
// begun it cannot: it runs as a whole.
func (r *Role) runCanWait(l *lostUnit) bool {
	x, _ := r.runAt(l)
	return x != nil && !x.view.Killing && !x.view.Over && !slices.ContainsFunc(x.view.Units, func(u message.RunUnit) bool { return begun(u.Status.Stage) })
}

// runWaits has the run of a unit, if there is one, wait for another slot.
func (r *Role) runWaits(now time.Time, l *lostUnit) protocol.Output {
	x, i := r.runAt(l)
	if x == nil {
		return protocol.Output{}
	}
	gone := []protocol.Message{r.orderOf(x, i, message.LaunchOrder{Verb: message.VerbKill}), r.stageStop(x, i)}
	x.view.Units[i].Lost = true
	x.view.Units[i].Status = message.LaunchStatus{Stage: message.StageAsked}
	out := r.told(now, x, true)
	out.Send = append(out.Send, gone...)
	return out
}

// runAt is the run that waits for a unit, and the unit's place in it.
func (r *Role) runAt(l *lostUnit) (*run, int) {
	first, unit, _ := l.first()
	x := r.runs[first]
	if x == nil {
		return nil, 0
	}
	i := slices.IndexFunc(x.view.Units, func(u message.RunUnit) bool { return u.Unit == unit })
	if i < 0 {
		return nil, 0
	}
	return x, i
}

// runMoves goes on with a run in what was bought in the place of a lost unit. The
// others are told where it is.
func (r *Role) runMoves(now time.Time, l *lostUnit, p *message.Purchase) protocol.Output {
	x, i := r.runAt(l)
	if x == nil || !x.view.Units[i].Lost || len(p.Units) != 1 {
		return protocol.Output{} // its owner has ended it
	}
	b, u := p.Units[0], &x.view.Units[i]
	*u = message.RunUnit{
		Unit: u.Unit, Launch: p.ID + ".1", Resource: b.Resource, Seller: b.Seller, Contract: p.Contract,
		Slot:   protocol.Slot{Start: b.Start, End: b.End, Cores: b.Cores},
		Status: message.LaunchStatus{Stage: message.StageAsked},
	}
	x.hurry(now)
	return r.driveRun(now, x, true)
}

// runLoses ends a run that waits for a slot which is not bought.
func (r *Role) runLoses(now time.Time, l *lostUnit, why string) protocol.Output {
	x, i := r.runAt(l)
	if x == nil || !x.view.Units[i].Lost {
		return protocol.Output{}
	}
	failLost(now, &x.view.Units[i], why)
	return r.endRun(now, x)
}

func failLost(now time.Time, u *message.RunUnit, why string) {
	u.Lost = false
	u.Status.Stage, u.Status.Keep = message.StageFailed, now
	u.Status.Why = u.Resource + " has lost its slot, and it is not bought again: " + why
}

// endRun ends what is left of a run.
func (r *Role) endRun(now time.Time, x *run) protocol.Output {
	x.view.Killing = true
	x.hurry(now)
	return r.driveRun(now, x, true)
}

// dropLost gives up the lost units of a run that its owner has ended, or that has
// begun without them.
func (r *Role) dropLost(now time.Time, x *run) protocol.Output {
	var out protocol.Output
	for i := range x.view.Units {
		if !x.view.Units[i].Lost {
			continue
		}
		failLost(now, &x.view.Units[i], "the program is ended")
		out = out.Join(r.stopFor(now, x.view.ID, x.view.Units[i].Unit))
	}
	return out
}

// stopFor stops buying the slot that a unit of a run waits for.
func (r *Role) stopFor(now time.Time, first string, unit int) protocol.Output {
	for _, l := range r.lost { // in any order: there is one
		if id, u, _ := l.first(); id == first && u == unit {
			return r.stopLost(now, l.row.Purchase.ID, l.unit)
		}
	}
	return protocol.Output{}
}

// waits reports whether a unit of the run is being bought again.
func (x *run) waits() bool {
	return slices.ContainsFunc(x.view.Units, func(u message.RunUnit) bool { return u.Lost })
}

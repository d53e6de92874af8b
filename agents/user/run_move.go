package user

import (
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// canWait reports whether a run can continue in another slot. Once any of it has
// begun it cannot, since it runs as a whole, unless it is an array.
func (r *runs) canWait(l *rebuy) bool {
	x, _ := r.at(l)
	return x != nil && !x.view.Killing && !x.view.Over && (x.view.Program.Array || !slices.ContainsFunc(x.view.Units, func(u message.RunUnit) bool { return begun(u.Status.Stage) }))
}

// wait has the run of a unit, if there is one, wait for another slot.
func (r *runs) wait(now time.Time, l *rebuy) protocol.Output {
	x, i := r.at(l)
	if x == nil {
		return protocol.Output{}
	}
	gone := []protocol.Message{x.order(i, message.LaunchOrder{Verb: message.VerbKill}), x.stageStop(i)}
	x.view.Units[i].Lost = true
	x.view.Units[i].Status = message.LaunchStatus{Stage: message.StageAsked}
	out := r.update(now, x, true)
	out.Send = append(out.Send, gone...)
	return out
}

// at is the run that waits for a unit, and the unit's index in it.
func (r *runs) at(l *rebuy) (*run, int) {
	first, unit, _ := l.first()
	return r.find(first, func(_ *message.Run, u message.RunUnit) bool { return u.Unit == unit })
}

// move continues a run in the slot that replaces a lost unit's, and informs the other units.
func (r *runs) move(now time.Time, l *rebuy, p *Purchase) protocol.Output {
	x, i := r.at(l)
	if x == nil || !x.view.Units[i].Lost || len(p.Units) != 1 {
		return protocol.Output{} // its owner has ended it
	}
	u, bought := &x.view.Units[i], runUnits(p)[0]
	bought.Unit, bought.Contract = u.Unit, p.Contract
	*u = bought
	x.hurry(now)
	return r.drive(now, x, true)
}

// lose ends a run that waits for a slot which is not bought.
func (r *runs) lose(now time.Time, l *rebuy, why string) protocol.Output {
	x, i := r.at(l)
	if x == nil || !x.view.Units[i].Lost {
		return protocol.Output{}
	}
	failLost(now, &x.view.Units[i], why)
	return r.endWhole(now, x)
}

func failLost(now time.Time, u *message.RunUnit, why string) {
	u.Lost = false
	u.Status.Stage, u.Status.Keep = message.StageFailed, now
	if u.Status.Why = why; u.Launch != "" {
		u.Status.Why = u.Resource + " has lost its slot, and it is not bought again: " + why
	}
}

// dropLost gives up the lost units of a run that its owner has ended, or that has
// begun without them.
func (r *runs) dropLost(now time.Time, x *run) protocol.Output {
	var out protocol.Output
	for i := range x.view.Units {
		if u := &x.view.Units[i]; u.Lost {
			failLost(now, u, "its program was ended")
			out = out.Join(r.stopFor(now, x.view.ID, u.Unit))
		}
	}
	return out
}

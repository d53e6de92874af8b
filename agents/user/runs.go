package user

import (
	"maps"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// runs holds the programs that are not over, or whose outputs are not fetched yet.
type runs struct {
	cfg *Config
	by  map[string]*run // by purchase
	// stopFor stops seeking the slot that a unit of a run waits for.
	stopFor func(now time.Time, purchase string, unit int) protocol.Output
	// ran takes each attempt of a sweep that is over.
	ran func(now time.Time, v message.Run) protocol.Output
}

// begin launches the program of a purchase that was settled just now. The record is
// durable before the first site is asked.
func (r *runs) begin(now time.Time, row *Row) protocol.Output {
	program, p := row.Order.Program, &row.Purchase
	if program == nil {
		return protocol.Output{}
	}
	return r.launch(now, message.Run{ID: p.ID, Name: p.RFQ, Contract: p.Contract, Created: now, Program: *program, Units: runUnits(p)})
}

// maxRuns bounds the programs that are not over or not fetched; beyond it, the outputs of the oldest that is
// over are given up.
const maxRuns = 1 << 14

func (r *runs) launch(now time.Time, v message.Run) protocol.Output {
	var out protocol.Output
	if len(r.by) >= maxRuns {
		var oldest *run
		for _, x := range r.by { // in any order: there is one oldest
			if x.view.Over && (oldest == nil || x.view.Created.Before(oldest.view.Created) || x.view.Created.Equal(oldest.view.Created) && x.view.ID < oldest.view.ID) {
				oldest = x
			}
		}
		if oldest != nil {
			out = r.collected(now, message.RunCollected{ID: oldest.view.ID})
		}
	}
	return out.Join(r.drive(now, r.add(v), true))
}

func (r *runs) add(v message.Run) *run {
	x := &run{self: r.cfg.self(), view: v, pace: make([]pace, len(v.Units))}
	r.by[v.ID] = x
	return x
}

// restore resumes programs after a restart.
func (r *runs) restore(t protocol.Tables, now time.Time) (protocol.Output, error) {
	var out protocol.Output
	err := t.Each(TableRuns, func(_ string, value []byte) error {
		v, err := ReadRun(value)
		if err == nil && !v.Collected {
			x := r.add(v)
			if v.Discarding {
				x.hurry(now)
			}
			out = out.Join(r.drive(now, x, false))
		}
		return err
	})
	return out, err
}

// drive asks the sites that are due, and saves and reports what has changed.
func (r *runs) drive(now time.Time, x *run, changed bool) protocol.Output {
	var out protocol.Output
	if x.view.Killing && x.waits() {
		out, changed = r.dropLost(now, x), true
	}
	for i, u := range x.view.Units {
		switch {
		case u.Lost || u.Status.Stage.Over() || now.Before(x.pace[i].next(now)):
		case x.expire(now, i):
			changed = true
		default:
			out.Send = append(out.Send, x.question(i))
			x.pace[i].wait(now)
		}
	}
	return out.Join(r.update(now, x, changed))
}

// update saves and reports a run if it has changed, and sets its alarm.
func (r *runs) update(now time.Time, x *run, changed bool) protocol.Output {
	var out protocol.Output
	if changed {
		x.view.State, x.view.Exit, x.view.Over = summary(x.view)
		out = x.report()
		out.Save = []protocol.Record{x.save()}
		if x.view.Sweep != "" && x.view.Over {
			out = out.Join(r.ran(now, x.view))
		}
	}
	if x.view.Collected {
		delete(r.by, x.view.ID)
		return out
	}
	out.WakeAt = x.due(now)
	return out
}

// endWhole ends a run if one of its units does not run, unless the units are independent.
func (r *runs) endWhole(now time.Time, x *run) protocol.Output {
	if x.view.Program.Array {
		return r.drive(now, x, true)
	}
	return r.end(now, x)
}

func (r *runs) end(now time.Time, x *run) protocol.Output {
	x.view.Killing = true
	x.hurry(now)
	return r.drive(now, x, true)
}

// of finds the run, and the index of the unit in it, that a message is about.
func (r *runs) of(m protocol.Message) (*run, int) {
	return r.find(m.Conversation, func(v *message.Run, u message.RunUnit) bool {
		s, ok := m.Body.(message.LaunchStatus)
		if !ok {
			return m.InReplyTo == launchTag(u) && m.Sender == u.Seller && !u.Lost
		}
		contract, unit := v.Bought(u)
		return !u.Lost && unit == s.Unit && u.Seller == m.Sender && u.Launch == s.ID && s.Contract == contract
	})
}

// find is the run of a purchase, and the index of the first unit that matches; nil without one.
func (r *runs) find(purchase string, match func(v *message.Run, u message.RunUnit) bool) (*run, int) {
	if x := r.by[purchase]; x != nil {
		for i, u := range x.view.Units {
			if match(&x.view, u) {
				return x, i
			}
		}
	}
	return nil, 0
}

// receive takes a site's answer or report.
func (r *runs) receive(now time.Time, x *run, i int, m protocol.Message) protocol.Output {
	if x.view.Discarding {
		return r.discarded(x, m)
	}
	if x.view.Units[i].Status.Stage.Over() {
		return protocol.Output{} // overtaken, or replayed
	}
	switch body := m.Body.(type) {
	case message.LaunchStatus:
		return r.status(now, x, i, body)
	case message.Refusal:
		return r.refused(now, x, i, m, body)
	}
	return protocol.Output{}
}

func (r *runs) status(now time.Time, x *run, i int, s message.LaunchStatus) protocol.Output {
	u := &x.view.Units[i]
	if rank(s.Stage) < rank(u.Status.Stage) && !(u.Status.Stage == message.StageSubmitted && s.Stage == message.StageSubmitting) {
		return protocol.Output{} // overtaken on the way
	}
	first := u.Status.Stage == message.StageAsked
	changed := s.Stage != u.Status.Stage || s.Missing != u.Status.Missing || s.Job != u.Status.Job
	u.Status, u.Heard = s, now
	if !s.Keep.IsZero() && s.Keep.Before(now) { // its clock is behind, or it forgets the launch soon
		u.Status.Keep = now.Add(leastKept)
	}
	u.Joined = u.Joined || rank(s.Stage) > rank(message.StageGathering)
	x.pace[i].heard(now, s, changed)
	var out protocol.Output
	if s.Stage == message.StageStaging && s.Missing > 0 && !x.view.Killing {
		out.Send = append(out.Send, x.stageIn(i))
	}
	if s.Stage != message.StageStaging && !x.view.Killing {
		x.view.Fault = "" // the inputs arrived at last
	}
	if s.Stage.Over() {
		out.Send = append(out.Send, x.stageStop(i))
	}
	if len(x.view.Units) > 1 && (first || s.Stage == message.StageGathering || s.Stage == message.StageFailed) {
		x.hurry(now) // the units that wait for this one can go on
	}
	if !x.view.Program.Array && (s.Stage == message.StageFailed || begun(s.Stage) && x.waits()) {
		x.view.Killing = true // a purchase runs as a whole
	}
	out = out.Join(r.drive(now, x, changed))
	if !changed {
		out = out.Join(x.report()) // its owner may have asked
	}
	return out
}

// refused takes a site's refusal. A site that refuses for now is asked again. Once a site has
// the launch, it ends only if the site does not know it any more: other refusals are of an
// order about it.
func (r *runs) refused(now time.Time, x *run, i int, m protocol.Message, body message.Refusal) protocol.Output {
	u := &x.view.Units[i]
	why := protocol.Reason{Code: protocol.CodeUnknown, Note: "no reason was given"}
	if len(body.Reasons) > 0 {
		why = body.Reasons[0]
	}
	busy := why.Code == protocol.CodeLimit && x.view.Sweep != "" // until earlier launches of its unit are discarded
	ordered := u.Status.Stage != message.StageAsked && why.Code != protocol.CodeUnknown
	if m.Performative == protocol.Failure || busy || ordered || why.Code == protocol.CodeUnavailable {
		return protocol.Output{WakeAt: x.due(now)}
	}
	u.Status.Stage, u.Status.Why, u.Status.Keep = message.StageFailed, string(why.Code)+": "+why.Note, now
	return protocol.Output{Send: []protocol.Message{x.stageStop(i)}}.Join(r.endWhole(now, x))
}

// stageFault ends a run whose inputs cannot be sent to a site, or records why they
// have not arrived yet.
func (r *runs) stageFault(now time.Time, f message.StageFault) protocol.Output {
	for _, id := range slices.Sorted(maps.Keys(r.by)) {
		x, i := r.find(id, func(_ *message.Run, u message.RunUnit) bool { return u.Launch == f.Launch })
		if x == nil || x.view.Units[i].Status.Stage != message.StageStaging {
			continue
		}
		changed := x.view.Fault != f.Why
		x.view.Fault = f.Why
		if f.Again {
			return r.update(now, x, changed)
		}
		return r.end(now, x)
	}
	return protocol.Output{}
}

func (r *runs) wake(now time.Time) protocol.Output {
	var out protocol.Output
	for _, id := range slices.Sorted(maps.Keys(r.by)) {
		x := r.by[id]
		due := x.due(now)
		switch {
		case due.IsZero() || now.Before(due):
			out.WakeAt = protocol.Earlier(out.WakeAt, due)
		case x.view.Discarding:
			out = out.Join(r.discarding(now, x))
		case x.view.Over: // nothing can be fetched any more
			x.view.Collected = true
			out = out.Join(r.update(now, x, true))
		default:
			out = out.Join(r.drive(now, x, false))
		}
	}
	return out
}

// collected forgets a run whose outputs its owner has fetched.
func (r *runs) collected(now time.Time, c message.RunCollected) protocol.Output {
	x := r.by[c.ID]
	if x == nil || !x.view.Over {
		return protocol.Output{}
	}
	x.view.Collected = true
	return r.update(now, x, true)
}

// control takes the owner's order about a run.
func (r *runs) control(now time.Time, c message.RunControl) protocol.Output {
	x := r.by[c.ID]
	if x == nil || x.view.Over {
		return protocol.Output{}
	}
	switch c.Verb {
	case message.VerbKill:
		return r.end(now, x)
	case message.VerbStatus:
		x.hurry(now)
		return r.drive(now, x, true)
	}
	var out protocol.Output
	for i, u := range x.view.Units {
		if !u.Status.Stage.Over() && u.Status.Stage != message.StageAsked {
			out.Send = append(out.Send, x.order(i, message.LaunchOrder{Verb: c.Verb}))
		}
	}
	return out
}

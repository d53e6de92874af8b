package user

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// TableRuns has one message.Run per purchase that runs a program, by ID.
const TableRuns = "runs"

// launchPrefix marks the reply-with of what is asked of a launch; the unit follows,
// and of one that was bought again its contract.
const launchPrefix = "launch-"

// run is a program in the units of a purchase. Its site is asked again, with
// pauses that grow, until it has answered, and then now and then.
type run struct {
	view message.Run
	pace []pace // by place in view.Units
}

type pace struct {
	at    time.Time
	tries int
}

// The pauses between questions about a launch that goes on; sites tell of every
// change by themselves.
const maxRunDoublings = 6 // RetryFirst doubled so often is above RetryMost

func (p *pace) wait(now time.Time) {
	pause := protocol.RetryMost
	if p.tries < maxRunDoublings {
		pause = min(pause, protocol.RetryFirst<<p.tries)
	}
	p.tries++
	p.at = now.Add(pause)
}

// heard is when a site is asked again that has told of a launch: soon, if what it
// told passes in a moment, and its next word may be lost.
func (p *pace) heard(now time.Time, s message.LaunchStatus, changed bool) {
	switch {
	case !passing(s):
		*p = pace{tries: maxRunDoublings, at: now.Add(protocol.RetryMost)}
	case changed:
		*p = pace{}
		p.wait(now)
	}
}

// passing reports whether a stage is over in a moment, if all is well.
func passing(s message.LaunchStatus) bool {
	return s.Stage == message.StageSubmitting || s.Stage == message.StageCollecting || s.Stage == message.StageStaging && s.Missing == 0
}

// beginRun launches the program of a purchase that was settled just now. The
// record is durable before the first site is asked.
func (r *Role) beginRun(now time.Time, p *purchase) protocol.Output {
	program := p.row.Order.Program
	if program == nil {
		return protocol.Output{}
	}
	v := message.Run{ID: p.view.ID, Name: p.view.RFQ, Contract: p.view.Contract, Created: now, Program: *program}
	for _, u := range p.view.Units {
		v.Units = append(v.Units, message.RunUnit{
			Unit: u.Unit, Launch: v.ID + "." + strconv.Itoa(u.Unit+1), Resource: u.Resource, Seller: u.Seller,
			Slot:   protocol.Slot{Start: u.Start, End: u.End, Cores: u.Cores},
			Status: message.LaunchStatus{Stage: message.StageAsked},
		})
	}
	x := r.addRun(v)
	return r.driveRun(now, x, true)
}

func (r *Role) addRun(v message.Run) *run {
	x := &run{view: v, pace: make([]pace, len(v.Units))}
	r.runs[v.ID] = x
	return x
}

// restoreRuns goes on with programs after a restart.
func (r *Role) restoreRuns(t protocol.Tables, now time.Time) (protocol.Output, error) {
	var out protocol.Output
	err := t.Each(TableRuns, func(_ string, value []byte) error {
		v, err := ReadRun(value)
		if err == nil && !v.Collected {
			out = out.Join(r.driveRun(now, r.addRun(v), false))
		}
		return err
	})
	return out, err
}

// ReadRun decodes a record of TableRuns.
func ReadRun(value []byte) (message.Run, error) {
	var v message.Run
	if err := json.Unmarshal(value, &v); err != nil {
		return v, fmt.Errorf("record of a run: %w", err)
	}
	return v, nil
}

func (x *run) record() protocol.Record {
	value, err := json.Marshal(x.view)
	if err != nil {
		panic(fmt.Sprintf("user: run %s cannot be encoded: %v", x.view.ID, err)) // only our own types come here
	}
	return protocol.Record{Table: TableRuns, Key: x.view.ID, Value: value}
}

// driveRun asks what is to be asked now, and saves and tells what has changed.
func (r *Role) driveRun(now time.Time, x *run, changed bool) protocol.Output {
	var out protocol.Output
	if x.view.Killing && x.waits() {
		out, changed = r.dropLost(now, x), true
	}
	for i := range x.view.Units {
		if x.view.Units[i].Lost || x.view.Units[i].Status.Stage.Over() || now.Before(x.pace[i].at) {
			continue
		}
		var gone bool
		if gone = r.giveUp(now, x, i); !gone {
			out.Send = append(out.Send, r.question(x, i)...)
			x.pace[i].wait(now)
		}
		changed = changed || gone
	}
	return out.Join(r.told(now, x, changed))
}

// told saves and tells a run, if it has changed, and says when it is due.
func (r *Role) told(now time.Time, x *run, changed bool) protocol.Output {
	var out protocol.Output
	if changed {
		x.view.State, x.view.Exit, x.view.Over = summary(x.view)
		out.Save = append(out.Save, x.record())
		out.Send = append(out.Send, x.progress())
	}
	if x.view.Collected {
		delete(r.runs, x.view.ID)
		return out
	}
	out.WakeAt = x.due()
	return out
}

// due is when the first of its units is due, or when nothing can be fetched any
// more.
func (x *run) due() time.Time {
	var at, keep time.Time
	for i, u := range x.view.Units {
		if !u.Lost && !u.Status.Stage.Over() {
			at = protocol.Earlier(at, x.pace[i].at)
		}
		if u.Status.Keep.After(keep) {
			keep = u.Status.Keep
		}
	}
	if x.view.Over {
		return keep
	}
	return at
}

// Sites are asked beyond the end of the slot: what they have answered may have been
// lost, and the program may have run.
const (
	unanswered = time.Hour      // one that never answered
	unheard    = 24 * time.Hour // one that has the launch
)

// AskedUntil is when a unit's site is asked no more how a program stands.
func AskedUntil(u message.RunUnit) time.Time {
	if u.Status.Stage == message.StageAsked {
		return u.Slot.End.Add(unanswered)
	}
	return u.Slot.End.Add(unheard)
}

// giveUp ends a unit whose site does not answer for long after the slot's end.
func (r *Role) giveUp(now time.Time, x *run, i int) bool {
	u := &x.view.Units[i]
	why := "its site has not told how it ended"
	if u.Status.Stage == message.StageAsked {
		why = "its site does not answer"
	}
	if now.Before(AskedUntil(*u)) {
		return false
	}
	u.Status.Stage, u.Status.Why, u.Status.Keep = message.StageFailed, why, now
	return true
}

// runOf finds the run, and the place of the unit in it, that a message is about.
func (r *Role) runOf(m protocol.Message) (*run, int) {
	x := r.runs[m.Conversation]
	if x == nil {
		return nil, 0
	}
	about := func(u message.RunUnit) bool { return m.InReplyTo == launchTag(u) && m.Sender == u.Seller && !u.Lost }
	if s, ok := m.Body.(message.LaunchStatus); ok {
		about = func(u message.RunUnit) bool {
			contract, unit := x.view.Bought(u)
			return !u.Lost && unit == s.Unit && u.Seller == m.Sender && u.Launch == s.ID && s.Contract == contract
		}
	}
	i := slices.IndexFunc(x.view.Units, about)
	if i < 0 {
		return nil, 0
	}
	return x, i
}

// runHears takes a site's answer, or what it tells by itself.
func (r *Role) runHears(now time.Time, x *run, i int, m protocol.Message) protocol.Output {
	u := &x.view.Units[i]
	if u.Status.Stage.Over() {
		return protocol.Output{} // overtaken, or replayed
	}
	switch body := m.Body.(type) {
	case message.LaunchStatus:
		return r.statusTold(now, x, i, body)
	case message.Refusal:
		return r.launchRefused(now, x, i, m, body)
	}
	return protocol.Output{}
}

func (r *Role) statusTold(now time.Time, x *run, i int, s message.LaunchStatus) protocol.Output {
	u := &x.view.Units[i]
	if rank(s.Stage) < rank(u.Status.Stage) && !(u.Status.Stage == message.StageSubmitted && s.Stage == message.StageSubmitting) {
		return protocol.Output{} // overtaken on the way
	}
	first := u.Status.Stage == message.StageAsked
	changed := s.Stage != u.Status.Stage || s.Missing != u.Status.Missing || s.Job != u.Status.Job
	u.Status, u.Heard = s, now
	u.Joined = u.Joined || rank(s.Stage) > rank(message.StageGathering)
	x.pace[i].heard(now, s, changed)
	var out protocol.Output
	if s.Stage == message.StageStaging && s.Missing > 0 && !x.view.Killing {
		out.Send = append(out.Send, r.stageIn(x, i))
	}
	if s.Stage != message.StageStaging && !x.view.Killing {
		x.view.Fault = "" // it was brought there at last
	}
	if s.Stage.Over() {
		out.Send = append(out.Send, r.stageStop(x, i))
	}
	if len(x.view.Units) > 1 && (first || s.Stage == message.StageGathering || s.Stage == message.StageFailed) {
		x.hurry(now) // those that wait for this one can go on
	}
	if s.Stage == message.StageFailed || begun(s.Stage) && x.waits() {
		x.view.Killing = true // a purchase runs as a whole
	}
	out = out.Join(r.driveRun(now, x, changed))
	if !changed {
		out.Send = append(out.Send, x.progress()) // its owner may have asked, and hears that it is so still
	}
	return out
}

// hurry asks about every unit at once.
func (x *run) hurry(now time.Time) {
	for i := range x.pace {
		x.pace[i] = pace{at: now}
	}
}

// rank orders the stages of a launch.
func rank(s message.LaunchStage) int {
	return slices.Index([]message.LaunchStage{
		message.StageAsked, message.StageStaging, message.StageGathering, message.StageReady, message.StageSubmitting,
		message.StageSubmitted, message.StageCollecting, message.StageDone, message.StageFailed,
	}, s)
}

// launchRefused takes a site's no. One that cannot now is asked again.
func (r *Role) launchRefused(now time.Time, x *run, i int, m protocol.Message, body message.Refusal) protocol.Output {
	u := &x.view.Units[i]
	why := protocol.Reason{Code: protocol.CodeUnknown, Note: "no reason was given"}
	if len(body.Reasons) > 0 {
		why = body.Reasons[0]
	}
	if m.Performative == protocol.Failure || why.Code == protocol.CodeUnavailable || why.Code == protocol.CodeExpired && u.Status.Stage != message.StageAsked {
		return protocol.Output{WakeAt: x.due()}
	}
	u.Status.Stage, u.Status.Why, u.Status.Keep = message.StageFailed, string(why.Code)+": "+why.Note, now
	x.view.Killing = true
	x.hurry(now)
	return protocol.Output{Send: []protocol.Message{r.stageStop(x, i)}}.Join(r.driveRun(now, x, true))
}

// stageFault ends a run whose inputs cannot be brought to a site, or notes why
// they are not there yet.
func (r *Role) stageFault(now time.Time, f message.StageFault) protocol.Output {
	for _, id := range r.runOrder() {
		x := r.runs[id]
		i := slices.IndexFunc(x.view.Units, func(u message.RunUnit) bool { return u.Launch == f.Launch })
		if i < 0 || x.view.Units[i].Status.Stage != message.StageStaging {
			continue
		}
		if f.Again {
			changed := x.view.Fault != f.Why
			x.view.Fault = f.Why
			return r.told(now, x, changed)
		}
		x.view.Killing, x.view.Fault = true, f.Why
		x.hurry(now)
		return r.driveRun(now, x, true)
	}
	return protocol.Output{}
}

func (r *Role) runOrder() []string { return slices.Sorted(maps.Keys(r.runs)) }

// wakeRuns asks what is due.
func (r *Role) wakeRuns(now time.Time) protocol.Output {
	var out protocol.Output
	for _, id := range r.runOrder() {
		x := r.runs[id]
		due := x.due()
		switch {
		case due.IsZero() || now.Before(due):
			out.WakeAt = protocol.Earlier(out.WakeAt, due)
		case x.view.Over: // nothing can be fetched any more
			x.view.Collected = true
			out = out.Join(r.told(now, x, true))
		default:
			out = out.Join(r.driveRun(now, x, false))
		}
	}
	return out
}

// controlRun takes the owner's word.
func (r *Role) controlRun(now time.Time, body protocol.Body) protocol.Output {
	switch c := body.(type) {
	case message.RunCollected:
		if x := r.runs[c.ID]; x != nil && x.view.Over {
			x.view.Collected = true
			return r.told(now, x, true)
		}
	case message.RunControl:
		if x := r.runs[c.ID]; x != nil && !x.view.Over {
			return r.command(now, x, c.Verb)
		}
	}
	return protocol.Output{}
}

func (r *Role) command(now time.Time, x *run, verb message.LaunchVerb) protocol.Output {
	if verb == message.VerbKill || verb == message.VerbStatus {
		x.view.Killing = x.view.Killing || verb == message.VerbKill
		x.hurry(now)
		return r.driveRun(now, x, true)
	}
	var out protocol.Output
	for i, u := range x.view.Units {
		if !u.Status.Stage.Over() && u.Status.Stage != message.StageAsked {
			out.Send = append(out.Send, r.orderOf(x, i, message.LaunchOrder{Verb: verb}))
		}
	}
	return out
}

func (x *run) progress() protocol.Message {
	v := x.view
	v.Units = slices.Clone(v.Units)
	return protocol.Message{
		Performative: protocol.Inform, Receivers: []protocol.AgentID{protocol.LocalControl},
		Protocol: protocol.ProtocolControl, Conversation: v.ID, Body: message.RunProgress{Run: v},
	}
}

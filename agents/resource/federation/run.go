package federation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/english"
	"ramp/protocol/message"
)

// TableRuns has the jobs that were sold to this site, by contract.
const TableRuns = "federation-runs"

// Run is a job that was sold to this site; the JSON names are stored.
type Run struct {
	Contract  protocol.ContractID `json:"-"`              // the record's key
	Home      protocol.AgentID    `json:"home,omitempty"` // empty: a local job, which never moves
	Job       string              `json:"job"`
	Owner     protocol.AgentID    `json:"owner"`
	Terms     message.JobTerms    `json:"terms"`
	Award     int                 `json:"award"`
	State     message.JobState    `json:"state"`
	Got       int                 `json:"got,omitempty"` // modules, from its first begin on
	Preempted int                 `json:"preempted,omitempty"`
	Ran       time.Duration       `json:"ran,omitempty"`
	Suspended time.Duration       `json:"suspended,omitempty"`
	Memory    int64               `json:"memory,omitempty"` // most bytes that it had at once
	Sold      time.Time           `json:"sold"`
	Begun     time.Time           `json:"begun,omitzero"`
	Since     time.Time           `json:"since"` // it is in its state
	Exit      int                 `json:"exit,omitempty"`
	Why       string              `json:"why,omitempty"`
}

// seat is what a run has of the site's modules.
type seat int

const (
	seatNone    seat = iota
	seatClaimed      // they are its own, but the jobs on some of them do not stand still yet
	seatHeld         // it runs on them, or was ordered to
	seatLeaving      // it was ordered to leave them
)

// run is a Run and what is not durable of it.
type run struct {
	Run
	seat    seat
	alarm   time.Time // of an order without an answer, or of staging
	ordered message.JobSignal
	late    bool // its input is
	later   bool // it begins in the next reservation
}

func readRun(id string, value []byte) (*run, error) {
	r := &run{}
	if err := json.Unmarshal(value, &r.Run); err != nil {
		return nil, fmt.Errorf("journal: table %s: %s: %w", TableRuns, id, err)
	}
	r.Contract = protocol.ContractID(id)
	switch r.State {
	case message.JobRunning:
		r.seat = seatHeld // its batch system is asked; it may be suspended
	case message.JobSuspended:
		r.seat = seatLeaving // it may run: that it was to go on may have been ordered, and not been reported
	case message.JobStaging, message.JobWaiting, message.JobDone, message.JobFailed, message.JobReturned:
	default:
		return nil, fmt.Errorf("journal: table %s: %s: state %q", TableRuns, id, r.State)
	}
	return r, nil
}

func (r *run) save() protocol.Output {
	value, err := json.Marshal(r.Run)
	if err != nil {
		panic(fmt.Sprintf("federation: job %s cannot be encoded: %v", r.Job, err)) // it has only our own types
	}
	return protocol.Output{Save: []protocol.Record{{Table: TableRuns, Key: string(r.Contract), Value: value}}}
}

func (r *run) ended() bool { return r.State.Over() || r.State == message.JobReturned }

// become changes the state, and counts the time in the last one.
func (r *run) become(now time.Time, next message.JobState) {
	if !edge(r.State, next) {
		panic(fmt.Sprintf("federation: job %s cannot go from %q to %q", r.Job, r.State, next))
	}
	switch r.State {
	case message.JobRunning:
		r.Ran += now.Sub(r.Since)
	case message.JobSuspended:
		r.Suspended += now.Sub(r.Since)
	}
	r.State, r.Since = next, now
}

func edge(from, to message.JobState) bool {
	switch from {
	case message.JobStaging:
		return to == message.JobWaiting || to == message.JobReturned || to == message.JobFailed
	case message.JobWaiting:
		return to == message.JobRunning || to == message.JobFailed
	case message.JobRunning:
		return to == message.JobSuspended || to.Over()
	case message.JobSuspended:
		return to == message.JobRunning || to.Over()
	}
	return false
}

// take makes a run of a job that was sold to this site.
func (s *Site) take(now time.Time, home protocol.AgentID, job string, b *english.Bidder) protocol.Output {
	r := &run{Run: Run{
		Contract: message.JobContract(home, job, b.Award()), Home: home, Job: job, Owner: b.Owner(), Terms: b.Terms(), Award: b.Award(),
		State: message.JobStaging, Sold: now, Since: now,
	}}
	s.runs[string(r.Contract)] = r
	return r.save().Join(s.report(r)).Join(s.works.Stage(now, r.Run)).Join(wake(s.lateAt(r)))
}

// Local takes a job of the site's own, which never moves. ID is unique at the site.
func (s *Site) Local(now time.Time, id string, terms message.JobTerms) protocol.Output {
	if _, known := s.Find(protocol.ContractID(id)); known {
		return protocol.Output{}
	}
	r := &run{Run: Run{Contract: protocol.ContractID(id), Job: id, Terms: terms, State: message.JobWaiting, Sold: now, Since: now}}
	s.runs[id] = r
	return s.settle(now, r.save())
}

// runsAlready reports whether a job of a home is at this site and not over.
func (s *floor) runsAlready(home protocol.AgentID, job string) bool {
	for _, r := range s.runs { // in any order: it is there or not
		if r.Home == home && r.Job == job {
			return true
		}
	}
	return false
}

// report informs the home of a run how it stands.
func (s *floor) report(r *run) protocol.Output {
	if r.Home == "" {
		return protocol.Output{}
	}
	return protocol.Output{Send: []protocol.Message{mail(s.cfg.Self, r.Job, protocol.Inform, r.progress(s.cfg.Self), r.Home)}}
}

func (r *run) progress(self protocol.AgentID) message.JobProgress {
	return message.JobProgress{
		State: r.State, Award: r.Award, Site: self, Got: r.Got, Preempted: r.Preempted, Ran: r.Ran, Suspended: r.Suspended, Exit: r.Exit, Why: r.Why,
	}
}

// change saves and reports a run after a change of its state.
func (s *floor) change(r *run) protocol.Output {
	s.seat(r)
	return r.save().Join(s.report(r))
}

// seat puts a run where it belongs.
func (s *floor) seat(r *run) {
	id := string(r.Contract)
	if !r.ended() {
		s.runs[id] = r
		return
	}
	delete(s.runs, id)
	s.past[id] = r
}

// Find is a run of this site; false: it is not known, or not any more.
func (s *floor) Find(contract protocol.ContractID) (Run, bool) {
	for _, m := range []map[string]*run{s.runs, s.past} {
		if r := m[string(contract)]; r != nil {
			return r.Run, true
		}
	}
	return Run{}, false
}

// Taken is the owner of a job to which this site has agreed, and which its home has not
// confirmed yet; false: no such job. Its owner may hear of the sale first.
func (s *Site) Taken(contract protocol.ContractID) (protocol.AgentID, bool) {
	for k, b := range s.bids { // in any order: one job has the contract
		home, job, _ := strings.Cut(k, "|")
		if b.State() == english.BidderTaken && message.JobContract(protocol.AgentID(home), job, b.Award()) == contract {
			return b.Owner(), true
		}
	}
	return "", false
}

// wakeRun does what is due for a run.
func (s *Site) wakeRun(now time.Time, r *run) protocol.Output {
	switch {
	case r.State == message.JobStaging && !now.Before(r.Since.Add(s.cfg.Stage)):
		return s.giveBack(now, r, "its input did not arrive within "+s.cfg.Stage.String())
	case r.State == message.JobStaging && now.Before(s.lateAt(r)):
		return wake(s.lateAt(r))
	case r.State == message.JobStaging:
		if !r.late {
			r.late = true
			s.late.add(r.Home, r.Owner)
		}
		return wake(r.Since.Add(s.cfg.Stage))
	case r.ordered != "" && !now.Before(r.alarm):
		return s.signal(now, r, r.ordered)
	}
	return wake(r.alarm)
}

// lateAt is when the input of a job should be here: after twice the time that the rules give
// it, and some.
func (s *floor) lateAt(r *run) time.Time {
	t := 2*s.cfg.Rules.Transfer(r.Terms.Where, s.cfg.Self, r.Terms.Bytes) + lateFirst
	return r.Since.Add(min(s.cfg.Stage, t))
}

// giveBack returns a job that never began to its home, which auctions it again.
func (s *floor) giveBack(now time.Time, r *run, why string) protocol.Output {
	r.Why = why
	r.become(now, message.JobReturned)
	return s.change(r).Join(s.works.Drop(now, r.Run))
}

// Staged reports that the input of a run is here.
func (s *Site) Staged(now time.Time, contract protocol.ContractID) protocol.Output {
	r := s.runs[string(contract)]
	if r == nil || r.State != message.JobStaging {
		return protocol.Output{}
	}
	s.late.forget(r.Home, r.Owner)
	r.become(now, message.JobWaiting)
	return s.settle(now, s.change(r))
}

// Never reports that a run ended before it began, by its owner's word or by its fault.
func (s *Site) Never(now time.Time, contract protocol.ContractID, why string) protocol.Output {
	r := s.runs[string(contract)]
	if r == nil {
		return protocol.Output{}
	}
	r.Exit, r.Why, r.seat, r.ordered = message.JobNever, why, seatNone, ""
	r.become(now, message.JobFailed)
	return s.settle(now, s.change(r))
}

// Heard takes the batch system's status of a run: it is what counts, whatever was ordered.
func (s *Site) Heard(now time.Time, contract protocol.ContractID, j protocol.JobStatus) protocol.Output {
	r := s.runs[string(contract)]
	if r == nil || r.State == message.JobStaging || r.State == message.JobWaiting {
		return protocol.Output{}
	}
	r.Memory = max(r.Memory, j.Memory)
	switch {
	case j.State.Over():
		return s.settle(now, s.end(now, r, j))
	case j.State == protocol.JobSuspended && r.ordered != message.SignalResume && r.State == message.JobRunning:
		r.seat, r.ordered, r.alarm = seatNone, "", time.Time{}
		r.become(now, message.JobSuspended)
		r.Preempted++
		return s.settle(now, s.change(r))
	case j.State == protocol.JobSuspended && r.ordered == message.SignalSuspend && r.State == message.JobSuspended: // it was about to go on
		r.seat, r.ordered, r.alarm = seatNone, "", time.Time{}
		return s.settle(now, protocol.Output{})
	case j.State == protocol.JobRunning && r.ordered == message.SignalResume && r.State == message.JobSuspended:
		r.ordered, r.alarm = "", time.Time{}
		r.become(now, message.JobRunning)
		return s.settle(now, s.change(r))
	case j.State == protocol.JobRunning && r.State == message.JobSuspended && r.ordered == "": // a restart has lost the order to resume
		r.seat = seatLeaving
		return s.settle(now, s.signal(now, r, message.SignalSuspend))
	}
	return protocol.Output{}
}

// end ends a run as its batch system reports.
func (s *floor) end(now time.Time, r *run, j protocol.JobStatus) protocol.Output {
	next, why := message.JobFailed, "it was "+string(j.State)
	switch j.State {
	case protocol.JobExited:
		next, why = message.JobDone, ""
	case protocol.JobExpired:
		why = "it was ended at its time limit"
	}
	r.Exit, r.Why, r.seat, r.ordered = j.ExitCode(), cmp.Or(j.Note, why), seatNone, ""
	r.become(now, next)
	return s.change(r)
}

func wake(at time.Time) protocol.Output { return protocol.Output{WakeAt: at} }

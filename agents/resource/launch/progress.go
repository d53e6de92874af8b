package launch

import (
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// prepared takes the number of missing inputs.
func (s *Site) prepared(now time.Time, j *job, p message.Prepared) protocol.Output {
	switch {
	case j.Stage != message.StageStaging:
		return protocol.Output{}
	case p.Why != "":
		return s.fault(now, j, p.Why)
	case p.Missing == j.Missing && p.Missing > 0:
		return wake(j.due())
	case p.Missing > 0:
		j.Missing = p.Missing
		return s.composer.inform(j).Join(wake(j.due())) // not saved: a restart counts the files again
	}
	j.Missing = 0
	if j.Units > 1 && len(j.Peers) == 0 {
		j.become(message.StageGathering)
	} else {
		j.become(message.StageReady)
	}
	return s.jobs.save(j).Join(s.composer.inform(j)).Join(wake(j.due()))
}

// changed takes the status of a job. It neither saves nor forwards mere progress of
// the meter: a restart asks for it again.
func (s *Site) changed(now time.Time, j *job, c message.JobChanged) protocol.Output {
	switch {
	case !j.submitted():
		return wake(j.due())
	case c.Status.Validate() != nil:
		return wake(j.due()) // a driver with an impossible status
	case j.Stage == message.StageSubmitted && sameBut(c.Status, j.Status):
		j.Status = c.Status
		return wake(j.due())
	}
	j.Status = s.stopped(j, c.Status)
	if c.Status.State.Over() {
		j.become(message.StageCollecting)
		return s.jobs.save(j).Join(s.composer.inform(j)).Join(s.collect(now, j))
	}
	if j.Stage == message.StageSubmitting {
		j.become(message.StageSubmitted)
		j.retryAt = now.Add(s.checkPause(j))
	}
	return s.jobs.save(j).Join(s.composer.inform(j)).Join(s.stop(j)).Join(wake(j.due()))
}

// stopped distinguishes who killed a job: if not its buyer, then the seller did
// because its contract was over.
func (s *Site) stopped(j *job, status protocol.JobStatus) protocol.JobStatus {
	u, ok := s.sold.Unit(j.Contract, j.Unit)
	if status.State == protocol.JobKilled && !j.Killed && ok && u.Reported {
		status.State, status.Note = protocol.JobExpired, "the contract ended: its time limit was reached, or its prepayment used up"
	}
	return status
}

// sameBut reports whether two statuses differ at most in the usage so far.
func sameBut(a, b protocol.JobStatus) bool {
	a.Usage, a.Memory = b.Usage, b.Memory
	return a == b
}

// jobRefused takes the reason why the batch system refused a request about a job.
func (s *Site) jobRefused(now time.Time, j *job, r message.JobRefused) protocol.Output {
	switch {
	case r.Verb != "" && j.submitted() && r.Reason.Code == protocol.CodeForbidden:
		return s.cannot(now, j, r).Join(wake(j.due()))
	case r.Verb != "" || !j.submitted():
		return wake(j.due()) // the buyer sees that nothing changed
	case r.Reason.Code == protocol.CodeUnavailable:
		j.refusal = r.Reason.Note
		return wake(j.due()) // the request is repeated
	case j.Stage == message.StageSubmitting:
		return s.fault(now, j, "the batch system refused the job: "+r.Reason.Note)
	case r.Reason.Code == protocol.CodeUnknown:
		return s.lost(now, j)
	}
	return wake(j.due())
}

// cannot informs the buyer that the batch system never allows a request, once for a
// repeated kill. The job continues.
func (s *Site) cannot(now time.Time, j *job, r message.JobRefused) protocol.Output {
	if r.Verb == message.SignalKill {
		informed := j.forbidden
		if j.forbidden, j.retryAt = true, now.Add(checkPeriod); informed {
			return protocol.Output{}
		}
	}
	status := s.composer.status(j)
	status.Why = string(r.Verb) + ": " + r.Reason.Note
	return s.composer.send(j.User, protocol.Inform, protocol.ProtocolRequest, j.Conversation, status)
}

// lost handles a job that the batch system no longer knows. If the job was never seen
// to begin, it is submitted again; the driver makes sure that it begins once.
func (s *Site) lost(now time.Time, j *job) protocol.Output {
	if j.Status.Started.IsZero() && now.Before(j.Slot.End) {
		j.become(message.StageSubmitting)
		return s.jobs.save(j).Join(s.submit(now, j))
	}
	j.Status.State, j.Status.Ended = protocol.JobLost, now
	j.Status.Note = "the batch system lost the job"
	j.become(message.StageCollecting)
	return s.jobs.save(j).Join(s.composer.inform(j)).Join(s.collect(now, j))
}

func (s *Site) collected(now time.Time, j *job, c message.Collected) protocol.Output {
	if j.Stage != message.StageCollecting {
		return wake(j.due())
	}
	j.Outputs, j.Why, j.Keep = c.Outputs, c.Why, now.Add(s.cfg.Keep)
	return s.deliver(now, j)
}

// deliver makes the outputs of a job available. Those of a metered unit wait for the
// bank's word on its usage, at most as long as outputs are kept: a buyer must not take
// them and then dispute the usage.
func (s *Site) deliver(now time.Time, j *job) protocol.Output {
	late := !now.Before(j.Keep)
	switch {
	case j.Keep.IsZero():
		return s.collect(now, j)
	case s.waits(j) && !late:
		j.retryAt = j.Keep
		return s.jobs.save(j).Join(s.composer.inform(j)).Join(wake(j.retryAt))
	case s.waits(j):
		j.Outputs, j.Why = nil, "its usage was not decided while the site kept its outputs"
	case !late:
		j.Keep = now.Add(s.cfg.Keep)
	}
	j.become(message.StageDone)
	return s.jobs.save(j).Join(s.composer.inform(j)).Join(wake(j.due()))
}

// waits reports whether a job that had its cores left outputs, and its usage can still be
// disputed.
func (s *Site) waits(j *job) bool {
	u, ok := s.sold.Unit(j.Contract, j.Unit)
	return len(j.Outputs) > 0 && j.Status.Delivered() && ok && u.Metered && u.Unpaid
}

// Decided delivers what waits for the bank's word on a contract.
func (s *Site) Decided(now time.Time, contract protocol.ContractID) protocol.Output {
	var out protocol.Output
	for _, j := range s.jobs.running() {
		if j.Contract == contract && j.withheld() && !s.waits(j) {
			out = out.Join(s.deliver(now, j))
		}
	}
	return out
}

// fail ends a launch that never ran.
func (s *Site) fail(now time.Time, j *job, why string) protocol.Output {
	j.Why, j.Keep = why, now.Add(s.cfg.Keep)
	j.become(message.StageFailed)
	return s.jobs.save(j).Join(s.composer.inform(j)).Join(wake(j.due()))
}

// fault ends a launch that failed by the site's fault, so that nobody pays for it.
func (s *Site) fault(now time.Time, j *job, why string) protocol.Output {
	j.Fault = true
	return s.fail(now, j, why)
}

// Grant is a buyer's access to the files of a job.
type Grant struct {
	Job     string
	Stage   message.LaunchStage
	Inputs  []protocol.StagedFile
	Outputs []protocol.StagedFile
	Over    bool // the job has ended
	Unpaid  bool // its usage is not paid yet, and can be disputed
}

// Grant returns the buyer's access to the files of one of its launches; false: it has none.
func (s *Site) Grant(user protocol.AgentID, contract protocol.ContractID, unit int, id string) (Grant, bool) {
	j := s.jobs.byKey[key{user, contract, unit, id}]
	if j == nil || j.Discarded {
		return Grant{}, false
	}
	g := Grant{Job: j.ID, Stage: j.Stage, Inputs: j.Inputs, Over: j.Stage == message.StageCollecting || j.Stage.Over()}
	if !j.withheld() {
		g.Outputs = j.Outputs
	}
	u, ok := s.sold.Unit(contract, unit)
	g.Unpaid = ok && u.Metered && u.Unpaid
	return g, true
}

// Knows reports whether the files of a job are kept.
func (s *Site) Knows(job string) bool {
	j := s.jobs.byID[job]
	return j != nil && !j.Discarded
}

// Staging reports whether inputs may still come.
func (g Grant) Staging() bool { return g.Stage == message.StageStaging }

// Status returns the status of a buyer's launch, as the buyer sees it.
func (s *Site) Status(user protocol.AgentID, contract protocol.ContractID, unit int, id string) (message.LaunchStatus, bool) {
	j := s.jobs.byKey[key{user, contract, unit, id}]
	if j == nil {
		return message.LaunchStatus{}, false
	}
	return s.composer.status(j), true
}

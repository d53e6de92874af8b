package launch

import (
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// prepared takes how many inputs are missing.
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
		return s.tell(j).Join(wake(j.due())) // nothing rests on it: after a restart the files are counted anew
	}
	j.Missing = 0
	if j.Units > 1 && len(j.Peers) == 0 {
		j.become(message.StageGathering)
	} else {
		j.become(message.StageReady)
	}
	return s.save(j).Join(s.tell(j)).Join(wake(j.due()))
}

// changed takes how a job stands. That only its meter went on is news for nobody,
// and is asked for again after a restart.
func (s *Site) changed(now time.Time, j *job, c message.JobChanged) protocol.Output {
	switch {
	case !j.submitted():
		return wake(j.due())
	case c.Status.Validate() != nil:
		return wake(j.due()) // a driver that says what no batch system can say
	case j.Stage == message.StageSubmitted && sameBut(c.Status, j.Status):
		j.Status = c.Status
		return wake(j.due())
	}
	j.Status = s.stopped(j, c.Status)
	if c.Status.State.Over() {
		j.become(message.StageCollecting)
		return s.save(j).Join(s.tell(j)).Join(s.collect(now, j))
	}
	if j.Stage == message.StageSubmitting {
		j.become(message.StageSubmitted)
		j.retryAt = now.Add(s.checkPause(j))
	}
	return s.save(j).Join(s.tell(j)).Join(s.stop(j)).Join(wake(j.due()))
}

// stopped tells apart who has killed a job: one that its buyer did not kill was
// stopped because its contract let the seller do so.
func (s *Site) stopped(j *job, status protocol.JobStatus) protocol.JobStatus {
	u, ok := s.sold.Unit(j.Contract, j.Unit)
	if status.State == protocol.JobKilled && !j.Killed && ok && u.Reported {
		status.State, status.Note = protocol.JobExpired, "its contract was over: the time limit was reached, or the prepayment used up"
	}
	return status
}

// sameBut reports whether two statuses tell the same, but for what was used so far.
func sameBut(a, b protocol.JobStatus) bool {
	a.Usage, a.Memory = b.Usage, b.Memory
	return a == b
}

// jobRefused takes why a request about a job was not carried out.
func (s *Site) jobRefused(now time.Time, j *job, r message.JobRefused) protocol.Output {
	switch {
	case r.Verb != "" && j.submitted() && r.Reason.Code == protocol.CodeForbidden:
		return s.cannot(now, j, r).Join(wake(j.due()))
	case r.Verb != "" || !j.submitted():
		return wake(j.due()) // the buyer sees that nothing changed
	case r.Reason.Code == protocol.CodeUnavailable:
		return wake(j.due()) // it is asked again
	case j.Stage == message.StageSubmitting:
		return s.fault(now, j, "the batch system does not run it: "+r.Reason.Note)
	case r.Reason.Code == protocol.CodeUnknown:
		return s.lost(now, j)
	}
	return wake(j.due())
}

// cannot tells the buyer why what was asked of a job is never done, and of a kill that is
// tried again does so once. The job goes on.
func (s *Site) cannot(now time.Time, j *job, r message.JobRefused) protocol.Output {
	if r.Verb == message.SignalKill {
		told := j.forbidden
		if j.forbidden, j.retryAt = true, now.Add(checkPeriod); told {
			return protocol.Output{}
		}
	}
	status := s.status(j)
	status.Why = string(r.Verb) + ": " + r.Reason.Note
	return s.send(j.User, protocol.Inform, protocol.ProtocolRequest, j.Conversation, status)
}

// lost takes that the batch system does not know a job that it had. One of which
// nobody saw that it began is submitted again: the driver makes sure that it
// begins once.
func (s *Site) lost(now time.Time, j *job) protocol.Output {
	if j.Status.Started.IsZero() && now.Before(j.Slot.End) {
		j.become(message.StageSubmitting)
		return s.save(j).Join(s.submit(now, j))
	}
	j.Status.State, j.Status.Ended = protocol.JobLost, now
	j.Status.Note = "the batch system does not know what became of it"
	j.become(message.StageCollecting)
	return s.save(j).Join(s.tell(j)).Join(s.collect(now, j))
}

// collected takes what a job has left.
func (s *Site) collected(now time.Time, j *job, c message.Collected) protocol.Output {
	if j.Stage != message.StageCollecting {
		return wake(j.due())
	}
	j.Outputs, j.Why, j.Keep = c.Outputs, c.Why, now.Add(s.cfg.Keep)
	j.become(message.StageDone)
	return s.save(j).Join(s.tell(j)).Join(wake(j.due()))
}

// fail ends a launch that never ran.
func (s *Site) fail(now time.Time, j *job, why string) protocol.Output {
	j.Why, j.Keep = why, now.Add(s.cfg.Keep)
	j.become(message.StageFailed)
	return s.save(j).Join(s.tell(j)).Join(wake(j.due()))
}

// fault ends a launch that the site could not run: nobody is to pay for it.
func (s *Site) fault(now time.Time, j *job, why string) protocol.Output {
	j.Fault = true
	return s.fail(now, j, why)
}

// Grant is what somebody may do with a job's files.
type Grant struct {
	Job     string
	Stage   message.LaunchStage
	Inputs  []protocol.StagedFile
	Outputs []protocol.StagedFile
	Over    bool // it prints no more
}

// Grant looks up the files of a launch for whom it belongs to.
func (s *Site) Grant(user protocol.AgentID, contract protocol.ContractID, unit int, id string) (Grant, bool) {
	j := s.byKey[key{user, contract, unit, id}]
	if j == nil {
		return Grant{}, false
	}
	return Grant{Job: j.ID, Stage: j.Stage, Inputs: j.Inputs, Outputs: j.Outputs, Over: j.Stage == message.StageCollecting || j.Stage.Over()}, true
}

// Staging reports whether inputs may still come.
func (g Grant) Staging() bool { return g.Stage == message.StageStaging }

// Status is how a launch of a buyer's stands, as it is told.
func (s *Site) Status(user protocol.AgentID, contract protocol.ContractID, unit int, id string) (message.LaunchStatus, bool) {
	j := s.byKey[key{user, contract, unit, id}]
	if j == nil {
		return message.LaunchStatus{}, false
	}
	return s.status(j), true
}

package market

import (
	"time"

	"ramp/agents/sim"
	"ramp/protocol"
	"ramp/protocol/message"
)

// programs are the jobs that were launched in a batch system: each begins once, in
// the reservation that it names, and ends by itself or with its slot.
type programs struct {
	jobs   map[string]*program
	begins func(job message.Job, now time.Time) // nil: nobody watches
}

// program is one of them.
type program struct {
	job    message.Job
	status protocol.JobStatus
	length time.Duration // of its run
	exit   int
	told   protocol.JobState
	since  time.Time // until then it is metered; zero: it does not run
}

// JobBegins has f called when a job begins, with the batch system's time.
func (b *Batch) JobBegins(f func(job message.Job, now time.Time)) { b.programs.begins = f }

// request carries out a request about a job; nil: it is about something else.
func (b *Batch) request(now time.Time, body protocol.Body) protocol.Body {
	switch r := body.(type) {
	case message.Submit:
		return b.submit(now, r.Job)
	case message.JobQuery:
		return b.programs.status(now, r.Job.ID)
	case message.Signal:
		return b.programs.signal(now, r)
	}
	return nil
}

func (b *Batch) submit(now time.Time, job message.Job) protocol.Body {
	p := &b.programs
	if p.jobs[job.ID] == nil {
		if _, _, why := b.system.Find(now, job.Reservation); why != nil {
			return message.JobRefused{ID: job.ID, Reason: protocol.Reason{Code: protocol.CodeExpired, Unit: protocol.AllUnits, Note: "no such reservation"}}
		}
		most := max(2, int(2*job.Slot.Wall()/time.Minute))
		p.jobs[job.ID] = &program{
			job: job, status: protocol.JobStatus{State: protocol.JobWaiting},
			length: time.Duration(1+b.chance.N(most)) * time.Minute, exit: b.chance.N(3),
		}
	}
	return p.status(now, job.ID)
}

func (p *programs) status(now time.Time, id string) protocol.Body {
	x := p.jobs[id]
	if x == nil {
		return message.JobRefused{ID: id, Reason: protocol.Reason{Code: protocol.CodeUnknown, Unit: protocol.AllUnits, Note: "no such job"}}
	}
	p.advance(now, x)
	x.metered(now)
	x.told = x.status.State
	return message.JobChanged{ID: id, At: now, Status: x.status}
}

func (p *programs) signal(now time.Time, s message.Signal) protocol.Body {
	x := p.jobs[s.ID]
	if x == nil || x.status.State.Over() {
		return message.JobRefused{ID: s.ID, Verb: s.Verb, Reason: protocol.Reason{Code: protocol.CodeUnknown, Unit: protocol.AllUnits, Note: "no such job, or it is over"}}
	}
	p.advance(now, x)
	x.metered(now)
	switch {
	case x.status.State.Over():
	case s.Verb == message.SignalKill:
		x.status.State, x.status.Ended = protocol.JobKilled, now
	case s.Verb == message.SignalSuspend && x.status.State == protocol.JobRunning:
		x.status.State, x.since = protocol.JobSuspended, time.Time{}
	case s.Verb == message.SignalResume && x.status.State == protocol.JobSuspended:
		x.status.State, x.since = protocol.JobRunning, now
	}
	return p.status(now, s.ID)
}

// rates are how busy programs keep their cores, in thousandths.
const rates = 1000

// metered counts what a program has used by now, at a rate of its own.
func (x *program) metered(now time.Time) {
	s := &x.status
	if s.State.Over() {
		now = s.Ended
	}
	if x.since.IsZero() || s.State == protocol.JobWaiting || !now.After(x.since) {
		return
	}
	wall := now.Sub(x.since)
	s.Usage.Wall += wall
	s.Usage.CPU += time.Duration(x.job.Slot.Cores) * wall / rates * x.rate()
	s.Usage.Share = int64(x.job.Slot.Cores) * protocol.Core
	x.since = now
	if s.State.Over() {
		x.since = time.Time{}
	}
}

// rate hangs on the job's name alone, and is at least a half.
func (x *program) rate() time.Duration {
	sum := 0
	for _, b := range []byte(x.job.ID) {
		sum = (31*sum + int(b)) % (rates/2 + 1)
	}
	return time.Duration(rates - sum)
}

// used is what all programs of a reservation have used by now.
func (p *programs) used(reservation string) (all protocol.Usage, any bool) {
	for _, x := range p.jobs { // in any order: a sum
		if x.job.Reservation == reservation {
			all.CPU, all.Wall, any = all.CPU+x.status.Usage.CPU, all.Wall+x.status.Usage.Wall, true
		}
	}
	return all, any
}

// advance lets a job begin or end if it is time.
func (p *programs) advance(now time.Time, x *program) {
	s := &x.status
	if s.State == protocol.JobWaiting && !now.Before(x.job.Slot.Start) && now.Before(x.job.Slot.End) {
		s.State, s.Started, x.since = protocol.JobRunning, now, now
		if p.begins != nil {
			p.begins(x.job, now)
		}
	}
	switch end := s.Started.Add(x.length); {
	case s.State.Over():
	case s.State == protocol.JobRunning && !now.Before(end) && end.Before(x.job.Slot.End):
		s.State, s.Ended, s.Exit = protocol.JobExited, end, x.exit
	case !now.Before(x.job.Slot.End):
		s.State, s.Ended = protocol.JobExpired, x.job.Slot.End
	}
}

// changed are the jobs whose state is news, and when the next may be.
func (p *programs) changed(now time.Time) (news []protocol.Body, next time.Time) {
	for _, id := range sorted(p.jobs) {
		x := p.jobs[id]
		p.advance(now, x)
		if x.status.State != x.told {
			news = append(news, p.status(now, id))
		}
		if x.status.State.Over() {
			continue
		}
		for _, at := range []time.Time{x.job.Slot.Start, x.status.Started.Add(x.length), x.job.Slot.End} {
			if at.After(now) {
				next = protocol.Earlier(next, at)
			}
		}
	}
	return news, next
}

// shelf is where a site keeps the files of jobs, of which there are none.
type shelf struct{ agent protocol.AgentID }

// Receive answers at once.
func (s shelf) Receive(_ time.Time, m protocol.Message) []sim.Later {
	var body protocol.Body
	switch r := m.Body.(type) {
	case message.Prepare:
		body = message.Prepared{Job: r.Job}
	case message.Collect:
		body = message.Collected{Job: r.Job}
	default:
		return nil
	}
	return []sim.Later{{After: time.Millisecond, Message: protocol.Message{
		Performative: protocol.Inform, Sender: protocol.LocalFiles, Receivers: []protocol.AgentID{s.agent}, Protocol: protocol.ProtocolQueue, Body: body,
	}}}
}

// Advance has nothing to do.
func (shelf) Advance(time.Time) ([]sim.Later, time.Time) { return nil, time.Time{} }

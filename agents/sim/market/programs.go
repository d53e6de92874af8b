package market

import (
	"slices"
	"strings"
	"time"

	"ramp/agents/sim"
	"ramp/protocol"
	"ramp/protocol/message"
)

// programs owns the jobs launched in a batch system. Each begins once, in the reservation
// that it names, and ends by itself or with its slot.
type programs struct {
	jobs   map[string]*program
	begins func(job message.Job, now time.Time) // nil: no observer

	behaves Behavior // nil: by chance
}

// program is one such job.
type program struct {
	job    message.Job
	status protocol.JobStatus
	length time.Duration // its run time
	exit   int
	told   protocol.JobState
	since  time.Time // metered up to this time; zero: it does not run
}

// JobBegins makes the batch system call f with its time whenever a job begins.
func (b *Batch) JobBegins(f func(job message.Job, now time.Time)) { b.programs.begins = f }

// request carries out a request about a job; it returns nil for other requests.
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
		if slices.Contains(job.Argv, Fails) {
			p.jobs[job.ID].exit = 1
		}
		if p.behaves != nil {
			if length, exit, ok := p.behaves(now, job); ok {
				p.jobs[job.ID].length, p.jobs[job.ID].exit = length, exit
			}
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

// Rates are the load of programs on their cores, in thousandths.
const rates = 1000

// metered adds up the processor time of a program at its rate.
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

// Programs that behave as they are called; others exit with 0, 1 or 2.
const (
	Fails = "/bin/false" // exits with 1, after a while
	Idles = "/bin/sleep" // uses no core
)

// rate depends on the job's name alone, and is at least a half, unless it idles.
func (x *program) rate() time.Duration {
	if slices.Contains(x.job.Argv, Idles) {
		return 0
	}
	sum := 0
	for _, b := range []byte(x.job.ID) {
		sum = (31*sum + int(b)) % (rates/2 + 1)
	}
	return time.Duration(rates - sum)
}

// used sums up the usage of all programs of a reservation.
func (p *programs) used(reservation string) (all protocol.Usage, any bool) {
	for _, x := range p.jobs { // in any order: a sum
		if x.job.Reservation == reservation {
			all.CPU, all.Wall, any = all.CPU+x.status.Usage.CPU, all.Wall+x.status.Usage.Wall, true
		}
	}
	return all, any
}

// advance begins and ends jobs that are due.
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

// changed returns the jobs whose state has changed, and when to check again.
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

// shelf is a site's store for files of jobs, which all leave the same.
type shelf struct{ agent protocol.AgentID }

// Receive answers at once.
func (s shelf) Receive(_ time.Time, m protocol.Message) []sim.Later {
	var body protocol.Body
	switch r := m.Body.(type) {
	case message.Prepare:
		body = message.Prepared{Job: r.Job}
	case message.Collect:
		body = message.Collected{Job: r.Job, Outputs: []protocol.StagedFile{{Path: "result", Size: 1, SHA256: strings.Repeat("0", 64)}}}
	default:
		return nil
	}
	return []sim.Later{{After: time.Millisecond, Message: protocol.Message{
		Performative: protocol.Inform, Sender: protocol.LocalFiles, Receivers: []protocol.AgentID{s.agent}, Protocol: protocol.ProtocolQueue, Body: body,
	}}}
}

// Advance has nothing to do.
func (shelf) Advance(time.Time) ([]sim.Later, time.Time) { return nil, time.Time{} }

package federation

import (
	"math"
	"strings"
	"time"

	"ramp/agents"
	"ramp/agents/resource/federation"
	"ramp/agents/sim"
	"ramp/protocol"
	"ramp/protocol/english"
	"ramp/protocol/message"
)

// role is a site: the real decisions, with a batch system and files as correspondents.
type role struct {
	self protocol.AgentID
	site *federation.Site
}

// newRole restores a site.
func newRole(cfg federation.Config, tables protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
	r := &role{self: cfg.Self}
	var out protocol.Output
	var err error
	if r.site, out, err = federation.New(cfg, r, tables, now); err != nil {
		return nil, out, err
	}
	for _, x := range r.site.Runs() { // the batch system may not have got what was decided
		if x.State == message.JobRunning || x.State == message.JobSuspended {
			out = out.Join(r.tell(protocol.LocalQueue, protocol.QueryRef, message.JobQuery{Job: message.Job{ID: string(x.Contract)}}))
		}
	}
	return r, out, nil
}

func (r *role) Wake(now time.Time) protocol.Output { return r.site.Wake(now) }

func (r *role) Receive(now time.Time, m protocol.Message) protocol.Output {
	switch b := m.Body.(type) {
	case message.JobChanged:
		return r.site.Heard(now, protocol.ContractID(b.ID), b.Status)
	case message.JobRefused:
		if x, ok := r.site.Find(protocol.ContractID(b.ID)); ok && b.Reason.Code == protocol.CodeUnknown && !x.State.Over() {
			return r.Begin(now, x) // the order was lost with the process
		}
		return protocol.Output{}
	case message.Prepared:
		return r.site.Staged(now, protocol.ContractID(b.Job))
	case localJob:
		return r.site.Local(now, b.job.ID, b.job.Terms)
	}
	out, _ := r.site.Receive(now, m)
	return out
}

// Stage implements federation.Works, like the other three.
func (r *role) Stage(_ time.Time, x federation.Run) protocol.Output {
	return r.tell(protocol.LocalFiles, protocol.Request, message.Prepare{Job: string(x.Contract), Inputs: []protocol.StagedFile{{Path: "in", Size: x.Terms.Bytes, SHA256: string(x.Terms.Where)}}})
}

func (r *role) Begin(now time.Time, x federation.Run) protocol.Output {
	return r.tell(protocol.LocalQueue, protocol.Request, message.Submit{Job: message.Job{
		ID: string(x.Contract), Argv: []string{x.Job}, Slot: protocol.Slot{Start: now, Cores: x.Got},
	}})
}

func (r *role) Signal(_ time.Time, x federation.Run, verb message.JobSignal) protocol.Output {
	return r.tell(protocol.LocalQueue, protocol.Request, message.Signal{ID: string(x.Contract), Verb: verb})
}

func (r *role) Drop(time.Time, federation.Run) protocol.Output { return protocol.Output{} }

func (r *role) tell(to protocol.AgentID, p protocol.Performative, body protocol.Body) protocol.Output {
	return protocol.Output{Send: []protocol.Message{{Performative: p, Sender: r.self, Receivers: []protocol.AgentID{to}, Protocol: protocol.ProtocolQueue, Body: body}}}
}

// localJob is a job of a site's own (local).
type localJob struct{ job Job }

func (localJob) Kind() string { return "local-local-job" }

// process is a program in a batch system.
type process struct {
	id, job string
	got     int
	left    time.Duration // of its run
	since   time.Time     // it runs; zero: it is suspended, or has ended
	status  protocol.JobStatus
}

// batch is a site's batch system. It survives crashes of the agent.
type batch struct {
	site  *member
	by    map[string]*process
	order []*process // that have not ended
	told  time.Time  // when its last answer arrives: answers stay in order, as a driver's do
}

// Receive implements sim.Local.
func (b *batch) Receive(now time.Time, m protocol.Message) []sim.Later {
	switch x := m.Body.(type) {
	case message.Submit:
		if b.by[x.Job.ID] == nil {
			b.start(now, x.Job)
		}
		return b.answer(now, x.Job.ID)
	case message.JobQuery:
		return b.answer(now, x.Job.ID)
	case message.Signal:
		if p := b.by[x.ID]; p != nil && !p.status.State.Over() {
			b.signal(now, p, x.Verb)
		}
		return b.answer(now, x.ID)
	}
	return nil
}

// Advance ends the programs that are done.
func (b *batch) Advance(now time.Time) (said []sim.Later, next time.Time) {
	kept := b.order[:0]
	for _, p := range b.order {
		if end := p.since.Add(p.left); !p.since.IsZero() && !now.Before(end) {
			p.status.State, p.status.Ended, p.since = protocol.JobExited, now, time.Time{}
			b.site.world.ended(p.job, now)
			said = append(said, b.answer(now, p.id)...)
			continue
		} else if !p.since.IsZero() {
			next = protocol.Earlier(next, end)
		}
		kept = append(kept, p)
	}
	b.order = kept
	return said, next
}

func (b *batch) start(now time.Time, j message.Job) {
	p := &process{id: j.ID, job: j.Argv[0], got: j.Slot.Cores, since: now}
	p.left = b.site.world.length(p.job, p.got)
	p.status = protocol.JobStatus{State: protocol.JobRunning, Started: now}
	b.by[p.id] = p
	b.order = append(b.order, p)
	b.site.world.began(b.site, p, now)
}

func (b *batch) signal(now time.Time, p *process, verb message.JobSignal) {
	switch {
	case verb == message.SignalSuspend && p.status.State == protocol.JobRunning:
		p.left -= now.Sub(p.since)
		p.since, p.status.State = time.Time{}, protocol.JobSuspended
		b.site.world.suspended(b.site, p)
	case verb == message.SignalResume && p.status.State == protocol.JobSuspended:
		p.since, p.status.State = now, protocol.JobRunning
		b.site.world.runs(b.site)
	}
}

func (b *batch) answer(now time.Time, id string) []sim.Later {
	var body protocol.Body = message.JobRefused{ID: id, Reason: protocol.Reason{Code: protocol.CodeUnknown, Unit: protocol.AllUnits}}
	if p := b.by[id]; p != nil {
		body = message.JobChanged{ID: id, At: now, Status: p.status}
	}
	b.told = protocol.Later(b.told, now.Add(b.site.world.chance.For(b.site.world.cfg.Faults.Slow)))
	return []sim.Later{{After: b.told.Sub(now), Message: protocol.Message{
		Performative: protocol.Inform, Sender: protocol.LocalQueue, Receivers: []protocol.AgentID{b.site.id}, Protocol: protocol.ProtocolQueue, Body: body,
	}}}
}

// files brings input to a site.
type files struct{ site *member }

// Receive implements sim.Local.
func (f *files) Receive(_ time.Time, m protocol.Message) []sim.Later {
	x, ok := m.Body.(message.Prepare)
	if !ok {
		return nil
	}
	in := x.Inputs[0]
	if strings.Contains(in.SHA256, NeverBrings) { // it is where nobody gives it away
		return nil
	}
	return []sim.Later{{After: f.site.world.rules.Transfer(protocol.AgentID(in.SHA256), f.site.id, in.Size), Message: protocol.Message{
		Performative: protocol.Inform, Sender: protocol.LocalFiles, Receivers: []protocol.AgentID{f.site.id}, Protocol: protocol.ProtocolQueue, Body: message.Prepared{Job: x.Job},
	}}}
}

// Advance implements sim.Local.
func (f *files) Advance(time.Time) ([]sim.Later, time.Time) { return nil, time.Time{} }

// speedUp is k^0.9 in thousandths: how much faster a job is on k modules.
func speedUp(k int) time.Duration { return time.Duration(math.Round(1000 * math.Pow(float64(k), 0.9))) }

// user offers jobs to their homes until these have them, and asks how they stand.
type user struct {
	self    protocol.AgentID
	jobs    []*offered
	patient time.Duration // until it orders a rerun of a job that does not begin
	quiet   bool          // it does not ask how a job stands that its home has
}

type offered struct {
	job   Job
	home  protocol.AgentID
	known bool
	over  bool
	code  protocol.Code // why it was refused
	next  time.Time
	sold  time.Time // when the home reported it as sold
	state message.JobState
}

// offerJob has a user offer a job (local).
type offerJob struct {
	job  Job
	home protocol.AgentID
}

func (offerJob) Kind() string { return "local-offer-job" }

const userPeriod = 20 * time.Second

func (u *user) Receive(now time.Time, m protocol.Message) protocol.Output {
	if o, ok := m.Body.(offerJob); ok {
		u.jobs = append(u.jobs, &offered{job: o.job, home: o.home, next: now})
		return u.Wake(now)
	}
	for _, o := range u.jobs {
		if o.job.ID != m.Conversation || o.home != m.Sender {
			continue
		}
		switch b := m.Body.(type) {
		case message.JobProgress:
			u.hear(now, o, b)
		case message.JobHistory:
			u.hear(now, o, b.Progress)
		case message.Refusal:
			if code := b.Reasons[0].Code; code == protocol.CodeForbidden || code == protocol.CodeMalformed {
				o.over, o.code = true, code
			}
		}
	}
	return protocol.Output{}
}

func (u *user) hear(now time.Time, o *offered, p message.JobProgress) {
	o.known, o.over, o.state = true, p.State.Over(), p.State
	if waits := p.State == message.JobTaken || p.State == message.JobStaging; !waits {
		o.sold = time.Time{}
	} else if o.sold.IsZero() {
		o.sold = now
	}
}

func (u *user) Wake(now time.Time) protocol.Output {
	var out protocol.Output
	for _, o := range u.jobs {
		if o.over || o.known && u.quiet {
			continue
		}
		if !now.Before(o.next) {
			o.next = now.Add(userPeriod)
			var body protocol.Body = message.JobOffer{Terms: o.job.Terms}
			if o.known {
				body = message.JobOrder{Verb: message.JobShow}
			}
			if u.patient > 0 && !o.sold.IsZero() && now.Sub(o.sold) > u.patient {
				body, o.sold = message.JobOrder{Verb: message.JobRerun}, time.Time{}
			}
			out.Send = append(out.Send, protocol.Message{
				Performative: protocol.Request, Sender: u.self, Receivers: []protocol.AgentID{o.home}, Protocol: protocol.ProtocolEnglish,
				Conversation: o.job.ID, Body: body,
			})
		}
		out.WakeAt = protocol.Earlier(out.WakeAt, o.next)
	}
	return out
}

var _ = english.Patience

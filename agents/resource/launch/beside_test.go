package launch_test

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"ramp/agents/resource/launch"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

func agentsRecord(run message.Run) (protocol.Record, error) {
	b, err := json.Marshal(run)
	return protocol.Record{Table: user.TableRuns, Key: run.ID, Value: b}, err
}

// batch is a batch system: it outlives the agent, which has to ask about a job
// again before it is told of it by itself.
type batch struct {
	jobs    map[string]*batchJob
	watched map[string]bool
	length  time.Duration // of a program; 0: until its slot ends
	exit    int
	refuses string // what is submitted
	away    bool   // it answers that it cannot now
	mute    bool   // it answers nothing
}

type batchJob struct {
	job    message.Job
	begun  int
	gone   bool // forgotten before it began
	status protocol.JobStatus
}

func (b *batch) take(now time.Time, m protocol.Message) []protocol.Message {
	if b.mute {
		return nil
	}
	var body protocol.Body
	switch r := m.Body.(type) {
	case message.Submit:
		body = b.submit(now, r.Job)
	case message.JobQuery:
		body = b.query(now, r.Job.ID)
	case message.Signal:
		body = b.signal(now, r)
	default:
		return nil
	}
	return []protocol.Message{local(m.Sender, protocol.LocalQueue, body)}
}

func (b *batch) submit(now time.Time, job message.Job) protocol.Body {
	if b.refuses != "" {
		return message.JobRefused{ID: job.ID, Reason: protocol.Reason{Code: protocol.CodeForbidden, Note: b.refuses}}
	}
	if !b.away {
		j := b.jobs[job.ID]
		if j == nil {
			j = &batchJob{job: job, status: protocol.JobStatus{State: protocol.JobWaiting}}
			b.jobs[job.ID] = j
		}
		j.gone = false
		j.go1(now, b)
	}
	return b.query(now, job.ID)
}

// go1 lets a job begin or end if it is time.
func (j *batchJob) go1(now time.Time, b *batch) {
	if j.status.State == protocol.JobWaiting && !j.gone && !now.Before(j.job.Slot.Start) {
		j.begun++
		j.status = protocol.JobStatus{State: protocol.JobRunning, Started: now}
	}
	if end := j.end(b); j.status.State == protocol.JobRunning && !now.Before(end) {
		j.status.State, j.status.Ended, j.status.Exit = protocol.JobExited, end, b.exit
	}
	if !j.status.State.Over() && !now.Before(j.job.Slot.End) {
		j.status.State, j.status.Ended, j.status.Exit = protocol.JobExpired, j.job.Slot.End, 0
	}
}

func (j *batchJob) end(b *batch) time.Time {
	if b.length == 0 {
		return j.job.Slot.End.Add(time.Hour)
	}
	return j.status.Started.Add(b.length)
}

func (b *batch) query(now time.Time, id string) protocol.Body {
	j := b.jobs[id]
	switch {
	case b.away:
		return message.JobRefused{ID: id, Reason: protocol.Reason{Code: protocol.CodeUnavailable, Note: "later"}}
	case j == nil || j.gone:
		return message.JobRefused{ID: id, Reason: protocol.Reason{Code: protocol.CodeUnknown, Note: "no such job"}}
	}
	if b.watched == nil {
		b.watched = map[string]bool{}
	}
	b.watched[id] = !j.status.State.Over()
	return message.JobChanged{ID: id, At: now, Status: j.status}
}

func (b *batch) signal(now time.Time, s message.Signal) protocol.Body {
	j := b.jobs[s.ID]
	if b.away || j == nil || j.gone || j.status.State.Over() || !b.watched[s.ID] {
		return message.JobRefused{ID: s.ID, Verb: s.Verb, Reason: protocol.Reason{Code: protocol.CodeUnknown, Note: "no such job, or it is over"}}
	}
	switch {
	case s.Verb == message.SignalKill:
		j.status.State, j.status.Ended = protocol.JobKilled, now
	case s.Verb == message.SignalSuspend && j.status.State == protocol.JobRunning:
		j.status.State = protocol.JobSuspended
	case s.Verb == message.SignalResume && j.status.State == protocol.JobSuspended:
		j.status.State = protocol.JobRunning
	}
	return message.JobChanged{ID: s.ID, At: now, Status: j.status}
}

// advance tells what has changed of jobs that are watched.
func (b *batch) advance(now time.Time) []protocol.Body {
	var said []protocol.Body
	for _, id := range slices.Sorted(maps.Keys(b.jobs)) {
		j := b.jobs[id]
		before := j.status.State
		j.go1(now, b)
		if j.status.State != before && b.watched[id] && !b.away && !b.mute {
			said = append(said, b.query(now, id))
		}
	}
	return said
}

func (b *batch) next(now time.Time) time.Time {
	var at time.Time
	for _, j := range b.jobs { // in any order: the earliest counts
		for _, t := range []time.Time{j.job.Slot.Start, j.end(b), j.job.Slot.End} {
			if t.After(now) && !j.status.State.Over() {
				at = protocol.Earlier(at, t)
			}
		}
	}
	return at
}

// sorted are the jobs in order of ID.
func (b *batch) sorted() []*batchJob {
	var list []*batchJob
	for _, id := range slices.Sorted(maps.Keys(b.jobs)) {
		list = append(list, b.jobs[id])
	}
	return list
}

// depot has the files of a site's jobs, which outlive the agent.
type depot struct {
	have    map[string]bool // by job, 0 and path
	jobs    map[string][]protocol.StagedFile
	outputs []protocol.StagedFile
	why     string // there is no place
	mute    bool
}

func (d *depot) take(m protocol.Message) []protocol.Message {
	if d.mute {
		return nil
	}
	var body protocol.Body
	switch r := m.Body.(type) {
	case message.Prepare:
		d.jobs[r.Job] = r.Inputs
		body = d.prepared(r.Job)
	case message.Collect:
		body = message.Collected{Job: r.Job, Outputs: d.outputs}
	default:
		return nil
	}
	return []protocol.Message{local(m.Sender, protocol.LocalFiles, body)}
}

func (d *depot) prepared(job string) message.Prepared {
	p := message.Prepared{Job: job, Why: d.why}
	for _, f := range d.jobs[job] {
		if !d.have[job+"\x00"+f.Path] {
			p.Missing++
		}
	}
	return p
}

// porter brings what is to be staged at once, file by file; those whose source is
// "gone" cannot be.
func (p *pair) porter(m protocol.Message) []protocol.Message {
	r, ok := m.Body.(message.StageIn)
	if !ok {
		return nil
	}
	for i, h := range p.sites {
		if h.id != r.Seller {
			continue
		}
		g, ok := h.role.(siteRole).Grant(buyerID, r.Contract, r.Unit, r.Launch)
		if !ok || !g.Staging() {
			return nil
		}
		for _, in := range r.Inputs {
			if in.Source == "gone" {
				return []protocol.Message{local(buyerID, protocol.LocalFiles, message.StageFault{Launch: r.Launch, Why: "gone cannot be sent"})}
			}
			p.depots[i].jobs[g.Job] = g.Inputs
			p.depots[i].have[g.Job+"\x00"+in.File.Path] = true
			p.say(h, protocol.LocalFiles, p.depots[i].prepared(g.Job))
		}
	}
	return nil
}

// open lets everybody run anything.
func open() launch.Policy {
	return launch.Policy{Accounts: map[protocol.AgentID]launch.Account{launch.Everybody: {User: "guest", Commands: true}}}
}

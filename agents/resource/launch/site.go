// Package launch is the seller's side of running programs in what was sold: who
// may run what, and one job per launch whatever crashes.
//
// A Site is a state machine without I/O. Every launch goes through these stages;
// each is durable before anybody hears of it:
//
//	staging --every input is there--> gathering | ready
//	gathering --told where the other units are--> ready
//	ready --its slot begins--> submitting
//	submitting --the batch system has it--> submitted
//	submitted --the job is over--> collecting --outputs counted--> done
//	staging, gathering, ready, submitting --killed, refused, slot over--> failed
//
// One that is killed before it was launched is failed at once, and what comes
// after that does not begin.
//
// The stage submitting is saved before the batch system is asked, and a job is
// asked for under an ID that the driver finds again. So a crash on either side of
// the question leads to the same job. A done or failed launch is forgotten, with
// its files, when the time for which they are kept is over.
package launch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// Table has one record per launch, by job.
const Table = "launches"

// Bounds and times of a Site.
const (
	MaxLaunches = 1 << 14         // remembered at once; more are refused with limit
	MaxPerUnit  = 16              // launches of one unit, one after the other
	checkPeriod = time.Minute     // between questions about a job that the batch system has
	stopPeriod  = 5 * time.Second // and about one that is to end: a signal may be lost, or refused for now
	DefaultKeep = 24 * time.Hour
	MaxKeep     = 90 * 24 * time.Hour
)

// Config is what a site says about programs.
type Config struct {
	Self    protocol.AgentID
	Policy  Policy
	Address string        // where programs run, as others reach them
	Root    string        // of the jobs' directories; a job's is Root, '/' and its ID
	Keep    time.Duration // how long what a job has left is kept; zero: DefaultKeep
}

// Sold is where a Site looks units up.
type Sold interface {
	Unit(id protocol.ContractID, unit int) (reserve.Unit, bool)
}

// Site is the seller's side of every launch.
type Site struct {
	cfg   Config
	sold  Sold
	jobs  map[string]*job // by the batch system's ID
	byKey map[key]*job    // by the buyer's
	units map[unitKey]int // launches so far
}

// key names a launch: an ID means something only with whom it comes from.
type key struct {
	user     protocol.AgentID
	contract protocol.ContractID
	unit     int
	id       string
}

type unitKey struct {
	contract protocol.ContractID
	unit     int
}

// New restores a Site. Its first Output goes on where the last process stopped:
// directories are prepared again, jobs that were being submitted are submitted
// again under their IDs, and those that the batch system has are asked about.
func New(cfg Config, sold Sold, tables protocol.Tables, now time.Time) (*Site, protocol.Output, error) {
	if cfg.Keep == 0 {
		cfg.Keep = DefaultKeep
	}
	s := &Site{cfg: cfg, sold: sold, jobs: map[string]*job{}, byKey: map[key]*job{}, units: map[unitKey]int{}}
	err := tables.Each(Table, func(id string, value []byte) error {
		j, err := readJob(id, value)
		if err == nil {
			s.add(j)
		}
		return err
	})
	if err != nil {
		return nil, protocol.Output{}, err
	}
	var out protocol.Output
	for _, id := range s.order() {
		out = out.Join(s.resume(now, s.jobs[id]))
	}
	return s, out, nil
}

// order is every job, always the same way round.
func (s *Site) order() []string { return slices.Sorted(maps.Keys(s.jobs)) }

func (s *Site) add(j *job) {
	s.jobs[j.ID] = j
	s.byKey[j.key()] = j
	u := unitKey{j.Contract, j.Unit}
	s.units[u] = max(s.units[u], j.Number)
}

// resume does again what may have been lost with the process.
func (s *Site) resume(now time.Time, j *job) protocol.Output {
	switch j.Stage {
	case message.StageStaging:
		return s.prepare(now, j)
	case message.StageSubmitting:
		return s.submit(now, j)
	case message.StageSubmitted:
		return s.ask(now, j)
	case message.StageCollecting:
		return s.collect(now, j)
	}
	return wake(j.due())
}

// Receive takes a message about launches. It reports whether it was one.
func (s *Site) Receive(now time.Time, m protocol.Message) (protocol.Output, bool) {
	switch body := m.Body.(type) {
	case message.Launch:
		if m.Performative == protocol.Request && !m.Sender.Local() {
			return s.launch(now, m, body), true
		}
	case message.LaunchOrder:
		if m.Performative == protocol.Request && !m.Sender.Local() {
			return s.obey(now, m, body), true
		}
	default:
		return s.hear(now, m)
	}
	return protocol.Output{}, false
}

// hear takes what the batch system and the files tell.
func (s *Site) hear(now time.Time, m protocol.Message) (protocol.Output, bool) {
	switch body := m.Body.(type) {
	case message.JobChanged:
		return s.local(m, protocol.LocalQueue, body.ID, func(j *job) protocol.Output { return s.changed(now, j, body) })
	case message.JobRefused:
		return s.local(m, protocol.LocalQueue, body.ID, func(j *job) protocol.Output { return s.jobRefused(now, j, body) })
	case message.Prepared:
		return s.local(m, protocol.LocalFiles, body.Job, func(j *job) protocol.Output { return s.prepared(now, j, body) })
	case message.Collected:
		return s.local(m, protocol.LocalFiles, body.Job, func(j *job) protocol.Output { return s.collected(now, j, body) })
	}
	return protocol.Output{}, false
}

// local takes what a local correspondent says of a job that is remembered.
func (s *Site) local(m protocol.Message, from protocol.AgentID, id string, f func(j *job) protocol.Output) (protocol.Output, bool) {
	if m.Sender != from {
		return protocol.Output{}, false
	}
	if j := s.jobs[id]; j != nil {
		return f(j), true
	}
	return protocol.Output{}, true // of a launch that is forgotten
}

// Wake does what is due.
func (s *Site) Wake(now time.Time) protocol.Output {
	var out protocol.Output
	for _, id := range s.order() {
		j := s.jobs[id]
		if due := j.due(); !due.IsZero() && !now.Before(due) {
			out = out.Join(s.wakeJob(now, j))
		} else {
			out = out.Join(wake(due))
		}
	}
	return out
}

func wake(at time.Time) protocol.Output { return protocol.Output{WakeAt: at} }

func (s *Site) wakeJob(now time.Time, j *job) protocol.Output {
	switch j.Stage {
	case message.StageReady:
		return s.begin(now, j)
	case message.StageStaging:
		if !now.Before(j.Slot.End) {
			return s.tooLate(now, j)
		}
		return s.prepare(now, j)
	case message.StageGathering:
		return s.tooLate(now, j)
	case message.StageSubmitting:
		if !now.Before(j.Slot.End) {
			return s.fault(now, j, "the batch system did not take it before the end of the slot")
		}
		return s.submit(now, j)
	case message.StageSubmitted:
		return s.ask(now, j)
	case message.StageCollecting:
		return s.collect(now, j)
	}
	return s.over(now, j)
}

// over forgets a launch, unless its unit's end rests on it and is not reported.
func (s *Site) over(now time.Time, j *job) protocol.Output {
	if u, ok := s.sold.Unit(j.Contract, j.Unit); ok && u.Owed {
		j.retryAt = now.Add(checkPeriod)
		return wake(j.retryAt)
	}
	return s.forget(j)
}

func (s *Site) tooLate(now time.Time, j *job) protocol.Output {
	if j.Stage == message.StageStaging {
		return s.fail(now, j, fmt.Sprintf("%d of its %d inputs were not there before the end of the slot", j.Missing, len(j.Inputs)))
	}
	return s.fail(now, j, "it was not told where the other units are before the end of the slot")
}

// begin submits a job whose slot has begun, unless the unit is no longer sold.
func (s *Site) begin(now time.Time, j *job) protocol.Output {
	u, ok := s.sold.Unit(j.Contract, j.Unit)
	switch {
	case !ok || u.State != reserve.ClaimSold || u.Reported:
		return s.fail(now, j, "the unit is not sold any more")
	case !now.Before(j.Slot.End):
		return s.fault(now, j, "the slot was over before it could begin")
	}
	j.become(message.StageSubmitting)
	return s.save(j).Join(s.submit(now, j)).Join(s.tell(j))
}

// submit asks the batch system to run a job. It is asked under the same ID again
// until it answers.
func (s *Site) submit(now time.Time, j *job) protocol.Output {
	j.backOff(now)
	return s.queue(protocol.Request, message.Submit{Job: s.spec(j)}).Join(wake(j.retryAt))
}

// ask asks the batch system how a job stands.
func (s *Site) ask(now time.Time, j *job) protocol.Output {
	j.retryAt = now.Add(s.checkPause(j))
	return s.queue(protocol.QueryRef, message.JobQuery{Job: s.spec(j)}).Join(s.stop(j)).Join(wake(j.retryAt))
}

func (s *Site) collect(now time.Time, j *job) protocol.Output {
	j.backOff(now)
	return s.files(message.Collect{Job: j.ID, Inputs: j.Inputs}).Join(wake(j.retryAt))
}

func (s *Site) forget(j *job) protocol.Output {
	delete(s.jobs, j.ID)
	delete(s.byKey, j.key())
	out := protocol.Output{Save: []protocol.Record{{Table: Table, Key: j.ID}}}
	return out.Join(s.files(message.Discard{Job: j.ID}))
}

// spec is a job as the batch system is asked to run it.
func (s *Site) spec(j *job) message.Job {
	return message.Job{
		ID: j.ID, Reservation: j.Reservation, Slot: j.Slot, Argv: j.Argv, Env: s.environment(j), User: j.Account,
		Dir: s.Dir(j.ID), Memory: s.cfg.Policy.MemoryPerCore * int64(j.Slot.Cores), FileSize: s.cfg.Policy.filled().MaxOutput,
	}
}

// Dir is a job's directory. IDs of jobs have no character that a path parts at.
func (s *Site) Dir(job string) string { return s.cfg.Root + "/" + job }

func (s *Site) queue(p protocol.Performative, body protocol.Body) protocol.Output {
	return s.send(protocol.LocalQueue, p, protocol.ProtocolQueue, "", body)
}

func (s *Site) files(body protocol.Body) protocol.Output {
	return s.send(protocol.LocalFiles, protocol.Request, protocol.ProtocolQueue, "", body)
}

func (s *Site) send(to protocol.AgentID, p protocol.Performative, token, conversation string, body protocol.Body) protocol.Output {
	return protocol.Output{Send: []protocol.Message{{
		Performative: p, Sender: s.cfg.Self, Receivers: []protocol.AgentID{to}, Protocol: token, Conversation: conversation, Body: body,
	}}}
}

// tell tells the buyer how a launch stands.
func (s *Site) tell(j *job) protocol.Output {
	return s.send(j.User, protocol.Inform, protocol.ProtocolRequest, j.Conversation, s.status(j))
}

func (s *Site) save(j *job) protocol.Output {
	return protocol.Output{Save: []protocol.Record{j.record()}}
}

// jobID names a launch to the batch system: the reservation, which is unique for
// ever, and the launch's number in it.
func jobID(reservation string, number int) string {
	return fmt.Sprintf("%s.%d", strings.ReplaceAll(reservation, "/", "_"), number)
}

// Package launch runs buyers' programs in the slots they bought: it decides who may
// run what, and starts one job per launch across any crash.
//
// A Site is a state machine without I/O. Every launch goes through these stages, and
// each stage is durable before anybody hears of it:
//
//	staging --all inputs arrived--> gathering | ready
//	gathering --the buyer sent the addresses of the other units--> ready
//	ready --the slot begins--> submitting
//	submitting --the batch system has the job--> submitted
//	submitted --the job ended--> collecting --outputs counted, usage decided--> done
//	staging, gathering, ready, submitting --killed, refused, slot over--> failed
//
// A kill that arrives before its launch records a failed launch, so that the launch
// does not begin when it arrives.
//
// The Site saves the stage submitting before it asks the batch system, and the driver
// finds a job again by its ID. So a crash on either side of the request leads to the
// same job. The Site forgets a done or failed launch, and discards its files, after
// Config.Keep, if its clock then goes right for an hour. If the buyer discards it before,
// the Site keeps a record of it without files until its slot has ended and its usage is
// reported.
package launch

import (
	"cmp"
	"fmt"
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
	MaxLaunches   = 1 << 14         // remembered at once, without the discarded ones; more are refused with limit
	MaxRemembered = 1 << 16         // remembered at once, with the discarded ones
	MaxPerUnit    = 16              // launches of one unit, one after the other, that are not discarded
	MaxInUnit     = 1 << 10         // launches of one unit
	checkPeriod   = time.Minute     // between queries about a submitted job
	stopPeriod    = 5 * time.Second // between kills of a job: a signal may be lost, or refused for now
	vacancyPeriod = time.Second     // between looks for an account that no other buyer has
	doubtTime     = time.Hour       // for which a clock may be ahead
	DefaultKeep   = 24 * time.Hour
	MaxKeep       = 90 * 24 * time.Hour
)

// Config is a site's policy for programs.
type Config struct {
	Self    protocol.AgentID
	Policy  Policy
	Address string        // where other units reach programs
	Root    string        // contains the jobs' directories, each named by its job's ID
	Keep    time.Duration // how long outputs are kept; zero: DefaultKeep
}

// Sold looks up sold units.
type Sold interface {
	Unit(id protocol.ContractID, unit int) (reserve.Unit, bool)
}

// Site takes every launch through its stages. The register owns the launches, and
// composer writes the messages about them.
type Site struct {
	cfg      Config
	sold     Sold
	jobs     register
	composer composer
	woken    time.Time // last
}

// New restores a Site. Its first Output continues where the last process stopped: it prepares
// directories again, submits jobs again under their IDs, and asks about submitted jobs.
func New(cfg Config, sold Sold, tables protocol.Tables, now time.Time) (*Site, protocol.Output, error) {
	cfg.Keep = cmp.Or(cfg.Keep, DefaultKeep)
	jobs := register{byID: map[string]*job{}, byKey: map[key]*job{}, units: map[string][]*job{}, live: map[string]*job{}}
	s := &Site{cfg: cfg, sold: sold, jobs: jobs, composer: composer{cfg}}
	err := tables.Each(Table, func(id string, value []byte) error {
		j, err := readJob(id, value)
		if err == nil {
			s.jobs.add(j)
		}
		return err
	})
	if err != nil {
		return nil, protocol.Output{}, err
	}
	var out protocol.Output
	for _, j := range s.jobs.running() {
		out = out.Join(s.resume(now, j))
	}
	_, next := s.jobs.due(time.Time{})
	return s, out.Join(wake(next)), nil
}

// resume repeats the request that may have been lost, as with the process.
func (s *Site) resume(now time.Time, j *job) protocol.Output {
	switch j.Stage {
	case message.StageStaging:
		return s.prepare(now, j)
	case message.StageSubmitting:
		return s.submit(now, j)
	case message.StageSubmitted:
		return s.ask(now, j)
	case message.StageCollecting:
		return s.deliver(now, j)
	}
	return wake(j.due())
}

// Receive takes a message about launches; false: nobody may send it. Messages about
// a forgotten launch change nothing.
func (s *Site) Receive(now time.Time, m protocol.Message) (protocol.Output, bool) {
	buyer := m.Performative == protocol.Request && !m.Sender.Local()
	queue, files := m.Sender == protocol.LocalQueue, m.Sender == protocol.LocalFiles
	var out protocol.Output
	switch body := m.Body.(type) {
	case message.Launch:
		if buyer {
			return s.launch(now, m, body), true
		}
	case message.LaunchOrder:
		if buyer {
			return s.obey(now, m, body), true
		}
	case message.JobChanged:
		if j := s.jobs.byID[body.ID]; queue && j != nil {
			out = s.changed(now, j, body)
		}
		return out, queue
	case message.JobRefused:
		if j := s.jobs.byID[body.ID]; queue && j != nil {
			out = s.jobRefused(now, j, body)
		}
		return out, queue
	case message.Prepared:
		if j := s.jobs.byID[body.Job]; files && j != nil {
			out = s.prepared(now, j, body)
		}
		return out, files
	case message.Collected:
		if j := s.jobs.byID[body.Job]; files && j != nil {
			out = s.collected(now, j, body)
		}
		return out, files
	}
	return protocol.Output{}, false
}

// Wake does what is due.
func (s *Site) Wake(now time.Time) protocol.Output {
	if now.Before(s.woken) {
		s.jobs.setBack(now)
	}
	s.woken = now
	var out protocol.Output
	due, next := s.jobs.due(now)
	for _, j := range due {
		out = out.Join(s.wakeJob(now, j))
	}
	return out.Join(wake(next))
}

func wake(at time.Time) protocol.Output { return protocol.Output{WakeAt: at} }

func (s *Site) wakeJob(now time.Time, j *job) protocol.Output {
	switch ended := !now.Before(j.Slot.End); {
	case j.Stage.Over():
		return s.over(now, j)
	case j.Stage == message.StageReady:
		return s.begin(now, j)
	case j.Stage == message.StageGathering, j.Stage == message.StageStaging && ended:
		return s.tooLate(now, j)
	case j.Stage == message.StageSubmitting && ended:
		return s.fault(now, j, strings.TrimSuffix("the batch system did not accept it before the end of the slot: "+j.refusal, ": "))
	}
	return s.resume(now, j)
}

// over forgets a launch, unless the report about its unit is still owed. The clock may be ahead: it
// must reach the time twice, and not by being set.
func (s *Site) over(now time.Time, j *job) protocol.Output {
	u, ok := s.sold.Unit(j.Contract, j.Unit)
	if since := now.Sub(j.retryAt); since < checkPeriod && (!ok || !u.Unpaid || u.Reported) {
		return s.forget(j)
	}
	j.retryAt = now.Add(doubtTime)
	s.jobs.file(j)
	return wake(j.retryAt)
}

func (s *Site) tooLate(now time.Time, j *job) protocol.Output {
	if j.Stage == message.StageStaging {
		return s.fail(now, j, fmt.Sprintf("%d of its %d inputs did not arrive before the end of the slot", j.Missing, len(j.Inputs)))
	}
	return s.fail(now, j, "the addresses of the other units did not arrive before the end of the slot")
}

// begin submits a job whose slot has begun, unless the unit is no longer sold.
func (s *Site) begin(now time.Time, j *job) protocol.Output {
	u, ok := s.sold.Unit(j.Contract, j.Unit)
	switch {
	case !ok || u.State != reserve.ClaimSold || u.Reported:
		return s.fail(now, j, "the unit is no longer sold")
	case !now.Before(j.Slot.End):
		return s.fault(now, j, "the slot ended before the program could begin")
	}
	if len(j.Pool) > 0 {
		if j.Account = s.jobs.vacant(j); j.Account == "" {
			return wake(now.Add(vacancyPeriod))
		}
	}
	j.become(message.StageSubmitting)
	return s.jobs.save(j).Join(s.submit(now, j)).Join(s.composer.inform(j))
}

// submit asks the batch system to run a job, under the same ID until it answers.
func (s *Site) submit(now time.Time, j *job) protocol.Output {
	j.backOff(now)
	return s.composer.queue(protocol.Request, message.Submit{Job: s.composer.spec(j)}).Join(wake(j.retryAt))
}

// ask queries the batch system about a job.
func (s *Site) ask(now time.Time, j *job) protocol.Output {
	j.retryAt = now.Add(s.checkPause(j))
	return s.composer.queue(protocol.QueryRef, message.JobQuery{Job: s.composer.spec(j)}).Join(s.stop(j)).Join(wake(j.retryAt))
}

func (s *Site) collect(now time.Time, j *job) protocol.Output {
	j.backOff(now)
	return s.composer.files(message.Collect{Job: j.ID, Inputs: j.Inputs}).Join(wake(j.retryAt))
}

func (s *Site) forget(j *job) protocol.Output {
	s.jobs.remove(j)
	out := protocol.Output{Save: []protocol.Record{{Table: Table, Key: j.ID}}}
	if j.Discarded {
		return out
	}
	return out.Join(s.composer.files(message.Discard{Job: j.ID}))
}

// Sizes reports how many launches the Site remembers, with the bounds.
func (s *Site) Sizes() []protocol.Size {
	return []protocol.Size{
		{Of: "launches", N: len(s.jobs.byID) - s.jobs.discarded, Most: MaxLaunches},
		{Of: "launches, with those discarded", N: len(s.jobs.byID), Most: MaxRemembered},
	}
}

package command

import (
	"cmp"
	"fmt"
	"time"

	"ramp/agents/queue"
	jobs "ramp/agents/queue/script"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Pauses between two queries to the program about jobs.
const (
	jobLeast = time.Second
	jobMost  = 10 * time.Second
)

// maxUsed bounds the usage that a program reports, in seconds: 31 years.
const maxUsed = 1_000_000_000

type submission struct {
	ID          string   `json:"id"`
	Reservation string   `json:"reservation"` // in which it runs
	Slot        *slot    `json:"slot"`        // of the reservation
	User        string   `json:"user"`        // the local account, never empty
	Command     []string `json:"command"`     // to start
	Env         []string `json:"env"`         // its whole environment: NAME=value
	Dir         string   `json:"dir"`         // of the job's files
}

type entry struct {
	ID    string `json:"id"`
	State string `json:"state"` // waiting, running, suspended, exited, cancelled, expired or lost
	Exit  int    `json:"exit"`  // of an exited job
	Start int64  `json:"start"` // Unix seconds; 0: not reported
	End   int64  `json:"end"`
	CPU   int64  `json:"cpu"`  // seconds used so far by all its processes; 0: not reported
	Wall  int64  `json:"wall"` // seconds that it ran, without suspensions; 0: not reported
}

// JobPace is how often to poll running jobs.
func (s *script) JobPace() queue.Pace { return jobs.FilesPace() }

// Submit lets the program start a job's script in its reservation.
func (s *script) Submit(now time.Time, job message.Job) *protocol.Reason {
	who, known, why := s.jobs.Prepare(now, job, s.asker(now))
	if known || why != nil {
		return why
	}
	return s.order(now, request{Do: "submit", Job: &submission{
		ID: job.ID, Reservation: job.Reservation, Slot: slotOf(job.Slot), User: who.Name, Dir: job.Dir,
		Command: append([]string{"/bin/sh", jobs.Path(job)}, jobs.Args(job)...), Env: append(who.Environment(job.Dir), job.Env...),
	}})
}

// order sends the program a request about a job.
func (s *script) order(now time.Time, r request) *protocol.Reason {
	a, err := s.ask(now, r)
	switch {
	case err != nil:
		return queue.Unavailable(err)
	case a.OK:
		return nil
	}
	why := a.reason()
	why.Note = cmp.Or(why.Note, fmt.Sprintf("the program answered %s with %s", r.Do, a.Code))
	return why
}

// Signal lets the program suspend, resume or kill a job. It first records a kill by the
// job's owner.
func (s *script) Signal(now time.Time, job message.Job, verb message.JobSignal) *protocol.Reason {
	if verb == message.SignalKill {
		if err := jobs.Unwanted(now, job); err != nil {
			return queue.Unavailable(err)
		}
	}
	s.jobs.Soon()
	return s.order(now, request{Do: "signal", ID: job.ID, Verb: string(verb)})
}

func (s *script) Statuses(now time.Time, list []message.Job) (map[string]protocol.JobStatus, error) {
	return s.jobs.Statuses(now, list, s.asker(now))
}

// asker queries the program about jobs.
func (s *script) asker(now time.Time) jobs.Ask {
	return func(list []message.Job) (map[string]jobs.Entry, error) {
		r := request{Do: "jobs"}
		slots := map[string]protocol.Slot{}
		for _, job := range list {
			r.IDs = append(r.IDs, job.ID)
			slots[job.ID] = job.Slot
		}
		a, err := s.ask(now, r)
		if err == nil && !a.OK {
			err = fmt.Errorf("%s: jobs: %s: %s", s.cfg.Program, a.Code, queue.OneLine([]byte(a.Note)))
		}
		if err != nil {
			return nil, err
		}
		entries := map[string]jobs.Entry{}
		for _, j := range a.Jobs {
			if _, asked := slots[j.ID]; !asked {
				return nil, fmt.Errorf("%s: jobs: the answer contains %.80q, which was not asked for", s.cfg.Program, j.ID)
			}
			if entries[j.ID], err = j.entry(now); err != nil {
				return nil, fmt.Errorf("%s: jobs: %w", s.cfg.Program, err)
			}
		}
		return entries, nil
	}
}

// ends are the program's words for an ended job.
var ends = map[string]jobs.How{"exited": jobs.Exited, "cancelled": jobs.Cancelled, "expired": jobs.Limit, "lost": jobs.Failed}

// entry checks the program's report on a job.
func (j entry) entry(now time.Time) (jobs.Entry, error) {
	how, over := ends[j.State]
	state := protocol.JobState(j.State)
	switch {
	case !over && state != protocol.JobWaiting && state != protocol.JobRunning && state != protocol.JobSuspended:
		return jobs.Entry{}, fmt.Errorf("job %.80q has the state %.20q: want waiting, running, suspended, exited, cancelled, expired or lost", j.ID, j.State)
	case j.Exit < 0 || j.Exit > protocol.MaxExit || j.Start < 0 || j.Start > maxSecond || j.End < 0 || j.End > maxSecond || j.End != 0 && j.End < j.Start:
		return jobs.Entry{}, fmt.Errorf("job %.80q: start %d, end %d and exit code %d are impossible", j.ID, j.Start, j.End, j.Exit)
	case j.CPU < 0 || j.CPU > maxUsed || j.Wall < 0 || j.Wall > maxUsed:
		return jobs.Entry{}, fmt.Errorf("job %.80q: cpu %d s, wall %d s: want 0..%d", j.ID, j.CPU, j.Wall, int64(maxUsed))
	}
	s := jobs.Entry{State: state, Report: jobs.Report{How: how, Exit: j.Exit, End: now.UTC().Truncate(time.Second)}}
	if over {
		s.State = ""
	}
	if j.End != 0 {
		s.End = time.Unix(j.End, 0).UTC()
	}
	if j.Start != 0 {
		s.Start = time.Unix(j.Start, 0).UTC()
		s.Ran = max(s.End.Sub(s.Start), 0)
	}
	if j.Wall > 0 {
		s.Ran = time.Duration(j.Wall) * time.Second
	}
	s.CPU = time.Duration(j.CPU) * time.Second
	return s, nil
}

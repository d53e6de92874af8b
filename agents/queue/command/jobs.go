package command

import (
	"fmt"
	"time"

	"ramp/agents/queue"
	jobs "ramp/agents/queue/script"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Pauses between two questions to the program about jobs.
const (
	jobLeast = time.Second
	jobMost  = 10 * time.Second
)

// maxUsed bounds what a program says that was used, in seconds: 31 years.
const maxUsed = 1_000_000_000

// submission is a job as the program is asked to run it.
type submission struct {
	ID          string   `json:"id"`
	Reservation string   `json:"reservation"` // in which it is to run
	Slot        *slot    `json:"slot"`        // of the reservation
	User        string   `json:"user"`        // the local account, never empty
	Command     []string `json:"command"`     // that is to be started
	Env         []string `json:"env"`         // its whole environment: NAME=value
	Dir         string   `json:"dir"`         // of the job's files
}

// stand is a job as the program tells it.
type stand struct {
	ID    string `json:"id"`
	State string `json:"state"` // waiting, running, suspended, exited, cancelled, expired or lost
	Exit  int    `json:"exit"`  // of one that exited
	Start int64  `json:"start"` // Unix seconds; 0: not told
	End   int64  `json:"end"`
	CPU   int64  `json:"cpu"`  // seconds used so far, of all its processes; 0: not told
	Wall  int64  `json:"wall"` // seconds that it ran, without those in which it was suspended; 0: not told
}

// JobPace is how often jobs that run are looked at.
func (s *script) JobPace() queue.Pace { return jobs.FilesPace() }

// Submit has the program start the script of a job in its reservation.
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

// order asks the program to do something about a job.
func (s *script) order(now time.Time, r request) *protocol.Reason {
	a, err := s.ask(now, r)
	switch {
	case err != nil:
		return queue.Unavailable(err)
	case a.OK:
		return nil
	}
	why := a.reason()
	if why.Note == "" {
		why.Note = fmt.Sprintf("the program answers %s with %s", r.Do, a.Code)
	}
	return why
}

// Signal has the program suspend, resume or kill a job. That its owner wants it to
// end is written down before.
func (s *script) Signal(now time.Time, job message.Job, verb message.JobSignal) *protocol.Reason {
	if verb == message.SignalKill {
		if err := jobs.Unwanted(now, job); err != nil {
			return queue.Unavailable(err)
		}
	}
	s.jobs.Soon()
	return s.order(now, request{Do: "signal", ID: job.ID, Verb: string(verb)})
}

// Statuses tells how jobs stand.
func (s *script) Statuses(now time.Time, list []message.Job) (map[string]protocol.JobStatus, error) {
	return s.jobs.Statuses(now, list, s.asker(now))
}

// asker asks the program about jobs.
func (s *script) asker(now time.Time) jobs.Ask {
	return func(list []message.Job) (map[string]jobs.Stand, error) {
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
		stands := map[string]jobs.Stand{}
		for _, j := range a.Jobs {
			if _, asked := slots[j.ID]; !asked {
				return nil, fmt.Errorf("%s: jobs: %.80q was not asked for", s.cfg.Program, j.ID)
			}
			if stands[j.ID], err = j.stand(now); err != nil {
				return nil, fmt.Errorf("%s: jobs: %w", s.cfg.Program, err)
			}
		}
		return stands, nil
	}
}

// how is what the word for a job that is over means; false: it is none.
func how(state string) (jobs.How, bool) {
	switch state {
	case "exited":
		return jobs.Exited, true
	case "cancelled":
		return jobs.Cancelled, true
	case "expired":
		return jobs.Limit, true
	case "lost":
		return jobs.Failed, true
	}
	return 0, false
}

// stand checks what the program tells of a job.
func (j stand) stand(now time.Time) (jobs.Stand, error) {
	how, over := how(j.State)
	state := protocol.JobState(j.State)
	switch {
	case !over && state != protocol.JobWaiting && state != protocol.JobRunning && state != protocol.JobSuspended:
		return jobs.Stand{}, fmt.Errorf("%.80q is %.20q: want waiting, running, suspended, exited, cancelled, expired or lost", j.ID, j.State)
	case j.Exit < 0 || j.Exit > protocol.MaxExit || j.Start < 0 || j.Start > maxSecond || j.End < 0 || j.End > maxSecond || j.End != 0 && j.End < j.Start:
		return jobs.Stand{}, fmt.Errorf("%.80q ran from %d to %d and ended with %d", j.ID, j.Start, j.End, j.Exit)
	case j.CPU < 0 || j.CPU > maxUsed || j.Wall < 0 || j.Wall > maxUsed:
		return jobs.Stand{}, fmt.Errorf("%.80q used %d s in %d s: want 0..%d", j.ID, j.CPU, j.Wall, int64(maxUsed))
	}
	s := jobs.Stand{State: state, Report: jobs.Report{How: how, Exit: j.Exit, End: now.UTC().Truncate(time.Second)}}
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

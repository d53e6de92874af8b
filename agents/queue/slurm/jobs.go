package slurm

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// job is an entry of squeue.
type job struct {
	ID          int64  `json:"job_id"`
	Name        string `json:"name"`
	Comment     string `json:"comment"`
	Partition   string `json:"partition"` // several with commas while it waits
	State       words  `json:"job_state"`
	Reason      string `json:"state_reason"`
	Reservation string `json:"resv_name"`
	Nodes       string `json:"nodes"`
	CPUs        number `json:"cpus"`       // threads
	TimeLimit   number `json:"time_limit"` // minutes; none: without limit
	Submit      number `json:"submit_time"`
	Start       number `json:"start_time"`
	Eligible    number `json:"eligible_time"`
	End         number `json:"end_time"`
	Priority    number `json:"priority"`
	Tasks       string `json:"array_task_string"` // of an array, while it waits: 3,5-9:2%4
	User        string `json:"user_name"`
	ExitCode    any    `json:"exit_code"`
	Suspend     number `json:"suspend_time"` // when it was last suspended or resumed
	Ran         number `json:"pre_sus_time"` // seconds that it ran until then
}

// readJobs reads all jobs that squeue lists, of every partition.
func readJobs(b []byte) ([]job, error) {
	var doc struct {
		envelope
		Jobs *[]job `json:"jobs"`
	}
	if err := decode("squeue", b, &doc.envelope, &doc); err != nil {
		return nil, err
	}
	if doc.Jobs == nil {
		return nil, fmt.Errorf("squeue printed no list of jobs")
	}
	for _, j := range *doc.Jobs {
		if j.CPUs.n < 0 || j.CPUs.n > protocol.MaxCores || j.TimeLimit.n < 0 {
			return nil, fmt.Errorf("squeue: job %d: %d cores and a time limit of %d minutes are impossible", j.ID, j.CPUs.n, j.TimeLimit.n)
		}
	}
	return *doc.Jobs, nil
}

// occupies reports whether a job has cores now. A completing job still has.
func (j job) occupies() bool {
	return j.State.has("RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STOPPED", "STAGE_OUT", "SIGNALING", "RESIZING")
}

// waits reports whether a job will start by itself.
func (j job) waits() bool {
	if !j.State.has("PENDING") || j.Reservation != "" || j.Priority.n == 0 && !j.Priority.none {
		return false // a job in a reservation needs no other cores; one without priority is held
	}
	return !slices.Contains([]string{"Dependency", "DependencyNeverSatisfied", "JobHeldUser", "JobHeldAdmin", "BadConstraints", "PartitionNodeLimit", "PartitionTimeLimit"}, j.Reason)
}

// in reports whether a waiting job may start in a partition.
func (j job) in(partition string) bool {
	return slices.Contains(strings.Split(j.Partition, ","), partition)
}

func (j job) cores(threads int64) int { return int((j.CPUs.n + threads - 1) / threads) }

// endless is the assumed length of a job without a time limit.
const endless = 365 * 24 * time.Hour

func (j job) wall() time.Duration {
	if j.TimeLimit.none || j.TimeLimit.n == 0 {
		return endless
	}
	return min(time.Duration(j.TimeLimit.n)*time.Minute, endless)
}

// end is the assumed end of a running job. Slurm ends jobs late, see Late.
func (j job) end(now time.Time) time.Time {
	t := j.End.instant()
	switch {
	case t.IsZero():
		t = now.Add(j.wall())
	case t.Before(now):
		t = now
	}
	return t.Add(Late)
}

// message describes a running job in the role's words.
func (j job) message(now time.Time, threads int64) message.RunningJob {
	return message.RunningJob{
		Cores: j.cores(threads), End: j.end(now), ID: strconv.FormatInt(j.ID, 10), Submitted: j.waitsFrom(), Started: j.Start.instant(), Wall: j.wall(),
	}
}

// waitsFrom is when a job could first have started: the wait of a job that asked to
// begin later counts from then.
func (j job) waitsFrom() time.Time {
	if e := j.Eligible.instant(); e.After(j.Submit.instant()) {
		return e
	}
	return j.Submit.instant()
}

// tasks is the number of jobs in a waiting record, at most limit: all unstarted tasks of
// an array share one record.
func (j job) tasks(limit int) int {
	list, _, _ := strings.Cut(j.Tasks, "%")
	if list == "" {
		return 1
	}
	sum := 0
	for _, part := range strings.Split(list, ",") {
		sum = min(sum+span(part), limit)
	}
	return max(sum, 1)
}

// span counts the tasks of first-last:step. A part that Slurm abbreviated counts as one.
func span(part string) int {
	part, by, _ := strings.Cut(part, ":")
	a, b, _ := strings.Cut(part, "-")
	first, err1 := strconv.Atoi(a)
	last, err2 := strconv.Atoi(b)
	step, err3 := strconv.Atoi(by)
	if err3 != nil || step < 1 {
		step = 1
	}
	if err1 != nil || err2 != nil || last < first {
		return 1
	}
	return (last-first)/step + 1
}

// inTurn sorts waiting jobs in Slurm's order.
func inTurn(jobs []job) {
	slices.SortStableFunc(jobs, func(a, b job) int {
		return cmp.Or(cmp.Compare(b.Priority.n, a.Priority.n), cmp.Compare(a.ID, b.ID))
	})
}

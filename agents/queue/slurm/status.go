package slurm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ramp/agents/queue"
	"ramp/agents/queue/script"
	"ramp/protocol"
	"ramp/protocol/message"
)

// JobPace is how often jobs that run are looked at.
func (b *batch) JobPace() queue.Pace { return script.FilesPace() }

// Statuses tells how jobs stand.
func (b *batch) Statuses(now time.Time, jobs []message.Job) (map[string]protocol.JobStatus, error) {
	return b.jobs.Statuses(now, jobs, b.ask(now))
}

func (b *batch) ask(now time.Time) script.Ask {
	return func(jobs []message.Job) (map[string]script.Stand, error) { return b.stands(now, jobs) }
}

// stands asks Slurm about jobs.
func (b *batch) stands(now time.Time, jobs []message.Job) (map[string]script.Stand, error) {
	names := make([]string, len(jobs))
	for i, job := range jobs {
		names[i] = b.recordName(job)
	}
	all, err := b.slow.records(names)
	if err != nil {
		return nil, err
	}
	stands := map[string]script.Stand{}
	for i, job := range jobs {
		r, ok := b.theOne(job, all[names[i]])
		switch {
		case !ok:
		case b.cfg.Hold == HoldJob:
			if s, ok := b.inSlot(now, job, r); ok {
				stands[job.ID] = s
			}
		default:
			stands[job.ID] = r.stand()
			b.dropWaiting(now, job, r)
		}
	}
	return stands, nil
}

// dropWaiting cancels a job that still waits when its slot is over.
func (b *batch) dropWaiting(now time.Time, job message.Job, r record) {
	if r.over() || !r.waits() || now.Before(job.Slot.End) {
		return
	}
	if _, err := b.slow.run("scancel", "--quiet", fmt.Sprint(r.id)); err != nil {
		b.log.Warn("slurm: a job that waits though its slot is over cannot be cancelled now", "job", r.id, "err", err)
	}
}

// recordName is what Slurm calls the job that a program runs in: its own, or the
// placeholder of its slot.
func (b *batch) recordName(job message.Job) string {
	if b.cfg.Hold == HoldJob {
		return b.mark.Name(job.Reservation)
	}
	return b.mark.Name(job.ID)
}

// theOne is the record of a job: that of which the script says that it began it, else
// one that may still begin it, else the last.
func (b *batch) theOne(job message.Job, list []record) (record, bool) {
	of := func(r record) bool { return r.comment == jobComment(job) }
	if b.cfg.Hold == HoldJob {
		of = func(r record) bool { return strings.HasPrefix(r.comment, slotWord) }
	}
	list = slices.DeleteFunc(slices.Clone(list), func(r record) bool { return !of(r) })
	if len(list) == 0 {
		return record{}, false
	}
	slices.SortFunc(list, func(a, b record) int { return int(a.id - b.id) })
	if id, ok := script.BegunBy(job); ok {
		if i := slices.IndexFunc(list, func(r record) bool { return strconv.FormatInt(r.id, 10) == id }); i >= 0 {
			return list[i], true
		}
		return record{}, false
	}
	if i := slices.IndexFunc(list, func(r record) bool { return !r.over() }); i >= 0 {
		return list[i], true
	}
	return list[len(list)-1], true
}

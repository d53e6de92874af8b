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

// JobPace is how often to poll running jobs.
func (b *batch) JobPace() queue.Pace { return script.FilesPace() }

func (b *batch) Statuses(now time.Time, jobs []message.Job) (map[string]protocol.JobStatus, error) {
	return b.jobs.Statuses(now, jobs, b.ask(now))
}

func (b *batch) ask(now time.Time) script.Ask {
	return func(jobs []message.Job) (map[string]script.Entry, error) { return b.entries(now, jobs) }
}

func (b *batch) entries(now time.Time, jobs []message.Job) (map[string]script.Entry, error) {
	names := make([]string, len(jobs))
	for i, job := range jobs {
		names[i] = b.recordName(job)
	}
	all, err := b.slow.records(names)
	if err != nil {
		return nil, err
	}
	entries := map[string]script.Entry{}
	for i, job := range jobs {
		r, ok := b.theOne(job, all[names[i]])
		switch {
		case !ok:
		case b.cfg.Hold == HoldJob:
			if s, ok := b.inSlot(now, job, r); ok {
				entries[job.ID] = s
			}
		default:
			entries[job.ID] = r.entry()
			b.dropWaiting(now, job, r)
		}
	}
	return entries, nil
}

// dropWaiting cancels a job that still waits when its slot has ended.
func (b *batch) dropWaiting(now time.Time, job message.Job, r record) {
	if r.over() || !r.waits() || now.Before(job.Slot.End) {
		return
	}
	if _, err := b.slow.run("scancel", "--quiet", fmt.Sprint(r.id)); err != nil {
		b.log.Warn("slurm: cannot cancel a waiting job whose slot has ended", "job", r.id, "err", err)
	}
}

// recordName is Slurm's name of the job that runs a program: the program's own job, or
// the placeholder of its slot.
func (b *batch) recordName(job message.Job) string {
	if b.cfg.Hold == HoldJob {
		return b.mark.Name(job.Reservation)
	}
	return b.mark.Name(job.ID)
}

// theOne picks the record of a job: the one that its script says began it, or else one
// that may still begin it, or else the last.
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

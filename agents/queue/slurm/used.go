package slurm

import (
	"errors"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
)

// Buyers may submit jobs into their slots themselves (sbatch --reservation). The
// driver measures these jobs when the slot is over, by the first source that knows any:
//
//   - Slurm's accounting (sacct): every job with the processor time it used, or with
//     its cores where Slurm does not measure that (jobacct_gather/none).
//   - The jobs that squeue showed during the slot, with their cores (usage.note).
//   - If neither knows a job, the slot was kept ready and counts as fully used: an
//     idle slot and an unobserved one look the same, and both kept their cores from
//     everybody else.

// Times after the end of a slot.
const (
	// endingGrace is how long to wait for Slurm, or its accounting, to report the end
	// of a job. After that the job counts until the slot's end.
	endingGrace = 5 * time.Minute
	// accountingGrace is how long to wait for accounting that does not answer. After
	// that the observed jobs count.
	accountingGrace = 30 * time.Minute
	// accountingPause is for how long accounting that hangs is not asked again: votes wait for it.
	accountingPause = 5 * time.Minute
	// outageGrace is how long to wait for Slurm itself: even after an outage of two
	// hours it knows how the jobs ended.
	outageGrace = 3 * time.Hour
)

// Used reports what the jobs in a slot have used; before its end, the cores that they
// have had so far.
func (b *batch) Used(now time.Time, id string, slot protocol.Slot) (protocol.JobStatus, protocol.Measured, *protocol.Reason) {
	if b.cfg.Hold == HoldJob || now.Before(slot.Start) { // nobody else runs in a placeholder
		return queue.Model{}.Status(now, id, slot), protocol.MeasuredSlot, nil
	}
	_, err := b.part.fresh(now)
	late := now.Sub(slot.End)
	if err != nil && late < outageGrace {
		return protocol.JobStatus{}, "", queue.Unavailable(err)
	}
	if late < 0 {
		return soFar(slot, b.usage.of(id).Jobs), protocol.MeasuredJobs, nil
	}
	threads := int64(1)
	if b.part.last != nil {
		threads = b.part.last.threads
	}
	return b.usage.measured(now, id, slot, threads)
}

// soFar is the status of a slot before its end: another job may follow.
func soFar(slot protocol.Slot, list []stretch) protocol.JobStatus {
	s := protocol.JobStatus{State: protocol.JobWaiting}
	if len(list) > 0 {
		s = protocol.JobStatus{State: protocol.JobRunning, Started: began(list), Usage: used(slot, list)}
	}
	return s
}

func began(list []stretch) time.Time {
	var at time.Time
	for _, s := range list {
		at = protocol.Earlier(at, s.Start)
	}
	return at
}

// measured is the status of a slot that is over. A core has that many threads.
func (u *usage) measured(now time.Time, id string, slot protocol.Slot, threads int64) (protocol.JobStatus, protocol.Measured, *protocol.Reason) {
	list, by, open, err := u.known(now, id, slot, threads)
	late := now.Sub(slot.End)
	switch {
	case err != nil && late < accountingGrace:
		return protocol.JobStatus{}, "", queue.Unavailable(err)
	case open && late < endingGrace:
		return protocol.JobStatus{}, "", &protocol.Reason{Code: protocol.CodeUnavailable, Unit: protocol.AllUnits, Note: "Slurm has not reported yet how all jobs of the slot ended"}
	case by == protocol.MeasuredSlot:
		return queue.Model{}.Status(now, id, slot), by, nil
	}
	return protocol.JobStatus{State: protocol.JobExpired, Started: began(list), Ended: slot.End, Usage: used(slot, list)}, by, nil
}

// known returns the jobs of a slot that is over, and their source. If open, the end
// of some job is not known. The error is why an existing accounting does not answer.
func (u *usage) known(now time.Time, id string, slot protocol.Slot, threads int64) (list []stretch, by protocol.Measured, open bool, err error) {
	r := u.of(id)
	a := asked{name: u.mark.Name(id), slot: slot, threads: threads, seen: map[int64]bool{}}
	for _, s := range r.Jobs {
		a.seen[s.ID] = true
	}
	told, err := []stretch(nil), u.hangs
	if !now.Before(u.askAt) || now.Sub(slot.End) >= accountingGrace { // it is the last question about this slot
		if told, err = u.slow.accounted(a, u.users); errors.Is(err, queue.ErrTimeLimit) {
			u.hangs, u.askAt = err, now.Add(accountingPause)
		}
	}
	list, open = r.Jobs, r.live()
	if err == nil {
		list, open = joined(r.Jobs, told)
	} else if noAccounting(err) {
		err = nil
	}
	switch {
	case len(told) > 0:
		by = protocol.MeasuredAccounting
	case len(list) == 0 || r.Many: // none, or more than were recorded
		by = protocol.MeasuredSlot
	default:
		by = protocol.MeasuredJobs
	}
	return list, by, open, err
}

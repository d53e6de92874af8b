package slurm

import (
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
)

// What buyers submit into their slots themselves (sbatch --reservation) is measured
// when the slot is over, by the first of these that knows any of it:
//
//   - Slurm's accounting (sacct): every job, with the processor time that it used, or
//     the cores that it had where Slurm does not measure that (jobacct_gather/none).
//   - What was seen of the jobs while the slot was on, and is remembered (note):
//     the cores that they had.
//   - Nobody. Then the slot was kept ready, and counts as used throughout.
//
// A slot that nothing ran in looks just like one of which nothing is known, and counts
// the same: its cores were there for nobody else.

// Times after the end of a slot.
const (
	// endingGrace is how long a job of it may go without its end being told, by Slurm
	// or, later, by its accounting. Then it counts to the slot's end.
	endingGrace = 5 * time.Minute
	// accountingGrace is how long accounting that does not answer is waited for: what
	// was seen will do.
	accountingGrace = 30 * time.Minute
	// outageGrace is how long Slurm itself is waited for: it knows how the jobs ended
	// when it is back, after two hours as well.
	outageGrace = 3 * time.Hour
)

// Used is what the jobs in a slot have used: until it is over, the cores that they had
// so far.
func (b *batch) Used(now time.Time, id string, slot protocol.Slot) (protocol.JobStatus, protocol.Measured, *protocol.Reason) {
	if b.cfg.Hold == HoldJob || now.Before(slot.Start) { // nobody else runs in a placeholder
		return queue.Model{}.Status(now, id, slot), protocol.MeasuredSlot, nil
	}
	_, err := b.fresh(now)
	late := now.Sub(slot.End)
	if err != nil && late < outageGrace {
		return protocol.JobStatus{}, "", queue.Unavailable(err)
	}
	r := b.ranIn(id)
	if late < 0 {
		return soFar(slot, r.Jobs), protocol.MeasuredJobs, nil
	}
	return b.measured(now, id, slot, r)
}

// soFar is how a slot stands that is not over: another job may follow.
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

// measured is how a slot stands that is over.
func (b *batch) measured(now time.Time, id string, slot protocol.Slot, r *ran) (protocol.JobStatus, protocol.Measured, *protocol.Reason) {
	list, by, open, err := b.known(id, slot, r)
	late := now.Sub(slot.End)
	switch {
	case err != nil && late < accountingGrace:
		return protocol.JobStatus{}, "", queue.Unavailable(err)
	case open && late < endingGrace:
		return protocol.JobStatus{}, "", &protocol.Reason{Code: protocol.CodeUnavailable, Unit: protocol.AllUnits, Note: "how jobs of the slot have ended is not told yet"}
	case by == protocol.MeasuredSlot:
		return queue.Model{}.Status(now, id, slot), by, nil
	}
	return protocol.JobStatus{State: protocol.JobExpired, Started: began(list), Ended: slot.End, Usage: used(slot, list)}, by, nil
}

// known is what is known of a slot that is over, and by whom; open: not of every job
// how it ended. The error is why the accounting, of which there is one, does not
// answer.
func (b *batch) known(id string, slot protocol.Slot, r *ran) (list []stretch, by protocol.Measured, open bool, err error) {
	a := asked{name: b.mark.Name(id), slot: slot, threads: 1, seen: map[int64]bool{}}
	if b.last != nil {
		a.threads = b.last.threads
	}
	for _, s := range r.Jobs {
		a.seen[s.ID] = true
	}
	told, err := b.slow.accounted(a, b.cfg.Users)
	list, open = r.Jobs, r.live()
	if err == nil {
		list, open = joined(r.Jobs, told)
	} else if noAccounting(err) {
		err = nil
	}
	switch {
	case len(told) > 0:
		by = protocol.MeasuredAccounting
	case len(list) == 0 || r.Many: // nothing, or more than was remembered
		by = protocol.MeasuredSlot
	default:
		by = protocol.MeasuredJobs
	}
	return list, by, open, err
}

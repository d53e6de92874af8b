package slurm

import (
	"errors"
	"fmt"
	"time"

	"ramp/agents/queue"
	"ramp/agents/queue/script"
	"ramp/protocol"
	"ramp/protocol/message"
)

// order lets the placeholder of a slot run a job. An earlier order stands; the job's
// script makes sure that it begins once, in any placeholder.
func (b *batch) order(now time.Time, job message.Job) *protocol.Reason {
	if b.cfg.Jobs == "" {
		return &protocol.Reason{Code: protocol.CodeForbidden, Note: "the site runs no programs in slots that placeholder jobs hold"}
	}
	who, known, why := b.jobs.Prepare(now, job, b.ask(now))
	if known || why != nil {
		return why
	}
	if why := b.cannotOrder(now, job, who); why != nil {
		return why
	}
	d, name := b.spools.of(job.Reservation), b.mark.Name(job.ID)
	if err := errors.Join(d.write(jobFile, script.Text()), d.write(name, passed(d, job, who))); err != nil {
		return queue.Unavailable(err)
	}
	if err := d.give(line(orderRun, name, job)); err != nil {
		return queue.Unavailable(err)
	}
	return nil
}

// cannotOrder says why the placeholder of a job's slot cannot run it.
func (b *batch) cannotOrder(now time.Time, job message.Job, who queue.Account) *protocol.Reason {
	v, err := b.part.fresh(now)
	if err != nil {
		return queue.Unavailable(err)
	}
	h, held := v.mine(job.Reservation)
	if _, sold := b.slots.ends[b.mark.Name(job.Reservation)]; !held && sold {
		return &protocol.Reason{Code: protocol.CodeUnavailable, Note: "the placeholder job of the slot is missing now"}
	}
	if !held {
		return &protocol.Reason{Code: protocol.CodeExpired, Note: "no such reservation"}
	}
	if h.user != "" && h.user != who.Name {
		note := fmt.Sprintf("programs in this slot run as the account %s of its placeholder job, not as %s", h.user, who.Name)
		return &protocol.Reason{Code: protocol.CodeForbidden, Note: note}
	}
	_, told, err := b.spools.of(job.Reservation).orders()
	switch {
	case err != nil:
		return queue.Unavailable(err)
	case !told:
		return &protocol.Reason{Code: protocol.CodeForbidden, Note: "the placeholder job of the slot was started before the site ran programs"}
	}
	return nil
}

// passed is the argument file of a placeholder, with words that end in a zero byte: the job's
// directory, its environment besides the placeholder's, the script and its arguments.
func passed(d spool, job message.Job, who queue.Account) []byte {
	list := append([]string{job.Dir}, append(who.Environment(job.Dir), job.Env...)...)
	list = append(append(list, "/bin/sh", d.path(jobFile)), script.Args(job)...)
	var text []byte
	for _, w := range list {
		text = append(append(text, w...), 0)
	}
	return text
}

// inSlot is the status of a job in a placeholder with this record. False: the job's own
// files have the status, or it must be ordered again.
func (b *batch) inSlot(now time.Time, job message.Job, r record) (script.Entry, bool) {
	start, begun := script.Started(job)
	switch {
	case begun && start.Over:
		return cutIn(now, start, r)
	case begun:
		return ranIn(start, r), true
	case !r.over():
		return script.Entry{State: protocol.JobWaiting}, b.ordered(job)
	case now.Before(job.Slot.End):
		return script.Entry{}, false // the agent reserves the slot again, or reports the loss
	}
	return r.entry(), b.ordered(job)
}

// ranIn is the status of a job that has begun and recorded no end. If its placeholder
// has ended, so has the job: by itself only if its script was killed.
func ranIn(start script.Start, r record) script.Entry {
	s := r.entry()
	s.Start, s.Ran = start.At, 0
	if !r.over() {
		return s
	}
	s.Ran = max(r.end.Sub(start.At), 0)
	if s.How == script.Exited {
		s.Exit = scriptKilled
	}
	return s
}

// cutGrace is how long the end of a placeholder may come after its job's end.
const cutGrace = 5 * time.Second

// cutIn is the status of a job that has recorded its end. The record counts, unless
// somebody cancelled the placeholder.
func cutIn(now time.Time, start script.Start, r record) (script.Entry, bool) {
	how, over := r.how()
	switch {
	case !start.Cut, over && how == script.Exited:
		return script.Entry{}, false
	case over:
		return script.Entry{Report: script.Report{How: how, Start: start.At, End: start.Ended, Ran: start.Ended.Sub(start.At), Note: r.entry().Note}}, true
	}
	running := script.Entry{State: protocol.JobRunning, Report: script.Report{Start: start.At}}
	return running, now.Sub(start.Ended).Abs() < cutGrace
}

// scriptKilled is the exit code of a job whose script was killed.
const scriptKilled = 128 + 9

func (b *batch) ordered(job message.Job) bool {
	if b.cfg.Jobs == "" {
		return false
	}
	orders, _, err := b.spools.of(job.Reservation).orders()
	return err == nil && has(orders, line(orderRun, b.mark.Name(job.ID), job))
}

// signalInSlot kills a job in a placeholder. Suspending it would suspend the
// placeholder, which needs an operator's rights.
func (b *batch) signalInSlot(now time.Time, job message.Job, verb message.JobSignal) *protocol.Reason {
	if verb != message.SignalKill {
		return &protocol.Reason{Code: protocol.CodeForbidden, Note: "a program in a placeholder job can be killed, but not suspended"}
	}
	if err := b.killInSlot(now, job); err != nil {
		return queue.Unavailable(err)
	}
	return nil
}

// killInSlot ends a job and keeps its slot: a job that has not begun never will, and the
// placeholder ends one that has.
func (b *batch) killInSlot(now time.Time, job message.Job) error {
	if err := script.Unwanted(now, job); err != nil {
		return err
	}
	if never, err := script.Forestall(now, job); never || err != nil {
		return err
	}
	return b.spools.of(job.Reservation).give(line(orderKill, b.mark.Name(job.ID), job))
}

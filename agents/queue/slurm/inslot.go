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

// order has the placeholder of a slot run a job. An order that was given stands; the
// job's script makes sure that it begins once, in whatever placeholder.
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
	d, name := b.desk(job.Reservation), b.mark.Name(job.ID)
	if err := errors.Join(d.write(jobFile, script.Text()), d.write(name, passed(d, job, who))); err != nil {
		return queue.Unavailable(err)
	}
	if err := d.give(line(orderRun, name, job)); err != nil {
		return queue.Unavailable(err)
	}
	return nil
}

// cannotOrder says why the placeholder of a job's slot does not run it.
func (b *batch) cannotOrder(now time.Time, job message.Job, who queue.Account) *protocol.Reason {
	v, err := b.fresh(now)
	if err != nil {
		return queue.Unavailable(err)
	}
	h, held := v.mine(job.Reservation)
	if _, sold := b.ends[b.mark.Name(job.Reservation)]; !held && sold {
		return &protocol.Reason{Code: protocol.CodeUnavailable, Note: "the placeholder job of the slot is not there now"}
	}
	if !held {
		return &protocol.Reason{Code: protocol.CodeExpired, Note: "no such reservation"}
	}
	if h.user != "" && h.user != who.Name {
		note := fmt.Sprintf("programs in slots that placeholder jobs hold run as the account that holds them, %s, and not as %s", h.user, who.Name)
		return &protocol.Reason{Code: protocol.CodeForbidden, Note: note}
	}
	_, told, err := b.desk(job.Reservation).orders()
	switch {
	case err != nil:
		return queue.Unavailable(err)
	case !told:
		return &protocol.Reason{Code: protocol.CodeForbidden, Note: "the placeholder job of the slot was made before the site ran programs"}
	}
	return nil
}

// passed is what a placeholder passes on, each word ended by a zero byte: the job's
// directory, its environment beside that of the placeholder, and the script with what
// that is told.
func passed(d desk, job message.Job, who queue.Account) []byte {
	list := append([]string{job.Dir}, append(who.Environment(job.Dir), job.Env...)...)
	list = append(append(list, "/bin/sh", d.path(jobFile)), script.Args(job)...)
	var text []byte
	for _, w := range list {
		text = append(append(text, w...), 0)
	}
	return text
}

// inSlot is how a job stands whose slot's placeholder is as recorded. False: the
// job's own files tell, or it is to be ordered again.
func (b *batch) inSlot(now time.Time, job message.Job, r record) (script.Stand, bool) {
	start, begun := script.Started(job)
	switch {
	case begun && start.Over:
		return cutIn(now, start, r)
	case begun:
		return ranIn(start, r), true
	case !r.over():
		return script.Stand{State: protocol.JobWaiting}, b.ordered(job)
	case now.Before(job.Slot.End):
		return script.Stand{}, false // the agent makes the slot again, or tells its buyer
	}
	return r.stand(), b.ordered(job)
}

// ranIn is a job that has begun and has not said how it ended. If its placeholder
// is over, it is as well: by itself only if its script was killed.
func ranIn(start script.Start, r record) script.Stand {
	s := r.stand()
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

// cutGrace is how long the end of a placeholder may come after that of its job.
const cutGrace = 5 * time.Second

// cutIn is a job that has said how it ended, which counts; but if somebody cancelled
// its placeholder, that is how.
func cutIn(now time.Time, start script.Start, r record) (script.Stand, bool) {
	how, over := r.how()
	switch {
	case !start.Cut, over && how == script.Exited:
		return script.Stand{}, false
	case over:
		return script.Stand{Report: script.Report{How: how, Start: start.At, End: start.Ended, Ran: start.Ended.Sub(start.At), Note: r.stand().Note}}, true
	}
	running := script.Stand{State: protocol.JobRunning, Report: script.Report{Start: start.At}}
	return running, now.Sub(start.Ended).Abs() < cutGrace
}

// scriptKilled is what a job ends with whose script was killed.
const scriptKilled = 128 + 9

func (b *batch) ordered(job message.Job) bool {
	if b.cfg.Jobs == "" {
		return false
	}
	orders, _, err := b.desk(job.Reservation).orders()
	return err == nil && has(orders, line(orderRun, b.mark.Name(job.ID), job))
}

// signalInSlot kills a job in a placeholder. To suspend one would suspend the
// placeholder, for which Slurm wants an operator's rights.
func (b *batch) signalInSlot(now time.Time, job message.Job, verb message.JobSignal) *protocol.Reason {
	if verb != message.SignalKill {
		return &protocol.Reason{Code: protocol.CodeForbidden, Note: "a program in a slot that a placeholder job holds can be killed, and not suspended"}
	}
	if err := b.killInSlot(now, job); err != nil {
		return queue.Unavailable(err)
	}
	return nil
}

// killInSlot ends a job and leaves its slot: one that has not begun never will, and
// the placeholder ends one that has.
func (b *batch) killInSlot(now time.Time, job message.Job) error {
	if err := script.Unwanted(now, job); err != nil {
		return err
	}
	if never, err := script.Forestall(now, job); never || err != nil {
		return err
	}
	return b.desk(job.Reservation).give(line(orderKill, b.mark.Name(job.ID), job))
}

package slurm

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"time"

	"ramp/agents/queue"
	"ramp/agents/queue/script"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Pauses between two queries to Slurm about jobs: one squeue covers all.
const (
	jobLeast = 250 * time.Millisecond
	jobMost  = 5 * time.Second
)

// Submit submits a job to its reservation. It leaves a job alone that Slurm knows or
// that has begun; if Slurm accepted a job without acknowledging it, the script makes
// sure that it begins once.
func (b *batch) Submit(now time.Time, job message.Job) *protocol.Reason {
	if b.cfg.Hold == HoldJob {
		return b.order(now, job)
	}
	who, known, why := b.jobs.Prepare(now, job, b.ask(now))
	if known || why != nil {
		return why
	}
	if err := b.sbatch(now, job, who); err != nil {
		return b.notSubmitted(job, err)
	}
	return nil
}

// sbatch submits a job as its account. The environment of sbatch becomes the program's,
// and the program's words are arguments: no shell reads them.
func (b *batch) sbatch(now time.Time, job message.Job, who queue.Account) error {
	v, err := b.part.seen(now)
	if err != nil {
		return err
	}
	threads, begins := v.threads, protocol.Later(now, job.Slot.Start)
	if job.Stretch {
		begins = job.Slot.Start // it has its whole time, whenever it begins
	}
	args := []string{
		"--parsable", "--quiet", "--job-name=" + b.mark.Name(job.ID), "--comment=" + jobComment(job), "--partition=" + b.cfg.Partition,
		"--reservation=" + b.mark.Name(job.Reservation), fmt.Sprintf("--ntasks=%d", int64(job.Slot.Cores)*threads), fmt.Sprintf("--time=%d", v.rules.minutes(job.Slot.End.Sub(begins))),
		"--no-requeue", "--output=/dev/null", "--input=/dev/null", "--chdir=/", "--export=ALL",
	}
	if who.Credential != nil {
		args = append(args, fmt.Sprintf("--uid=%d", who.UID), fmt.Sprintf("--gid=%d", who.GID))
	}
	memory, err := b.memory(job, v)
	if err != nil {
		return err
	}
	args = append(append(append(args, memory...), script.Path(job)), script.Args(job)...)
	own := b.slow
	own.p.Prefix = nil // the job belongs to its account, not to the one that may reserve
	own.p.Env = append(who.Environment(job.Dir), job.Env...)
	if conf := cmp.Or(b.cfg.Conf, os.Getenv("SLURM_CONF")); conf != "" {
		own.p.Env = append(own.p.Env, "SLURM_CONF="+conf)
	}
	_, err = own.run("sbatch", args...)
	return err
}

// memory returns the arguments for the memory that the site allows a job, or for its share.
func (b *batch) memory(job message.Job, v *view) ([]string, error) {
	if job.Memory == 0 {
		return b.share(v)
	}
	const mib = 1 << 20
	each := job.Memory / (int64(job.Slot.Cores) * v.threads)
	return []string{fmt.Sprintf("--mem-per-cpu=%dM", max((each+mib-1)/mib, 1))}, nil
}

// jobComment distinguishes jobs with equal names by their directories, for instance
// after a lost journal.
func jobComment(job message.Job) string {
	sum := sha256.Sum256([]byte(job.Dir))
	return "job " + hex.EncodeToString(sum[:8])
}

// notSubmitted says why Slurm refused a job. If Slurm lost the reservation, the agent
// makes it again and repeats the request.
func (b *batch) notSubmitted(job message.Job, err error) *protocol.Reason {
	_, known := b.slots.ends[b.mark.Name(job.Reservation)]
	switch {
	case says(err, saysInvalid) && !known:
		return &protocol.Reason{Code: protocol.CodeExpired, Note: "no such reservation"}
	case says(err, saysNoAccess), says(err, saysNoUser):
		return &protocol.Reason{Code: protocol.CodeForbidden, Note: queue.OneLine([]byte(err.Error()))}
	}
	return queue.Unavailable(err)
}

// Signal suspends, resumes or kills a job.
func (b *batch) Signal(now time.Time, job message.Job, verb message.JobSignal) *protocol.Reason {
	name := b.recordName(job)
	all, err := b.slow.records([]string{name})
	if err != nil {
		return queue.Unavailable(err)
	}
	b.jobs.Soon()
	r, ok := b.theOne(job, all[name])
	if !ok || r.over() {
		return &protocol.Reason{Code: protocol.CodeUnknown, Note: "the job is not running"}
	}
	switch {
	case b.cfg.Hold == HoldJob:
		return b.signalInSlot(now, job, verb)
	case verb == message.SignalKill:
		err = b.kill(now, job, r)
	case verb == message.SignalSuspend && r.waits():
		return &protocol.Reason{Code: protocol.CodeForbidden, Note: "it has not begun yet"}
	case verb == message.SignalSuspend && r.is("RUNNING"):
		_, err = b.slow.run("scontrol", "suspend", fmt.Sprint(r.id))
	case verb == message.SignalResume && r.is("SUSPENDED"):
		_, err = b.slow.run("scontrol", "resume", fmt.Sprint(r.id))
	}
	if says(err, saysForbidden) {
		return &protocol.Reason{Code: protocol.CodeForbidden, Note: queue.OneLine([]byte(err.Error()))}
	}
	if err != nil {
		return queue.Unavailable(err)
	}
	return nil
}

// kill cancels a job, after recording that its owner wanted that. Slurm asks the job to
// end, and kills it some seconds later.
func (b *batch) kill(now time.Time, job message.Job, r record) error {
	if err := script.Unwanted(now, job); err != nil {
		return err
	}
	if r.is("SUSPENDED") {
		if _, err := b.slow.run("scontrol", "resume", fmt.Sprint(r.id)); err != nil {
			return err
		}
	}
	_, err := b.slow.run("scancel", "--quiet", fmt.Sprint(r.id))
	return err
}

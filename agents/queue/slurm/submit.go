package slurm

import (
	"crypto/sha256"
	_ "embed" // the script
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
	"ramp/protocol/message"
)

// jobScript runs every job. What a job is comes in its arguments.
//
//go:embed job.sh
var jobScript []byte

// Files of a job's directory beside work, tmp, stdout and stderr. The account of
// the job can write what is in run, and nothing else of these.
const (
	controlDir = "control"
	scriptFile = "job.sh"
	killFile   = "kill.json"  // the owner wanted it to end
	stateFile  = "state.json" // how it ended, for ever
	runDir     = "run"
	begunLink  = "began" // points at the Slurm job that began; what has it never begins again
	exitFile   = "exit"
)

func control(job message.Job, name string) string { return filepath.Join(job.Dir, controlDir, name) }

// Paces of looking at jobs: often at their files, less often at Slurm, of which one
// squeue tells of all.
const (
	filesLeast = 50 * time.Millisecond
	filesMost  = 500 * time.Millisecond
	jobLeast   = 250 * time.Millisecond
	jobMost    = 5 * time.Second
)

// JobPace is how often jobs that run are looked at.
func (b *batch) JobPace() queue.Pace { return queue.Pace{Least: filesLeast, Most: filesMost} }

// Submit has Slurm run a job in its reservation. One that Slurm knows, or that has
// begun, is left as it is; should Slurm have taken it and not said so, the script
// makes sure that it begins once.
func (b *batch) Submit(now time.Time, job message.Job) *protocol.Reason {
	if why := b.cannotRun(job); why != nil {
		return why
	}
	b.seen.soon()
	known, err := b.Statuses(now, []message.Job{job})
	if err != nil {
		return queue.Unavailable(err)
	}
	if _, ok := known[job.ID]; ok {
		return nil
	}
	who, err := queue.AccountOf(job.User)
	if err != nil {
		return &protocol.Reason{Code: protocol.CodeForbidden, Note: queue.OneLine([]byte(err.Error()))}
	}
	if err := layOut(job, who); err != nil {
		return queue.Unavailable(err)
	}
	b.seen.soon()
	if err := b.sbatch(now, job, who); err != nil {
		return b.notSubmitted(job, err)
	}
	return nil
}

func (b *batch) cannotRun(job message.Job) *protocol.Reason {
	switch {
	case b.cfg.Hold == HoldJob:
		return &protocol.Reason{Code: protocol.CodeForbidden, Note: "slots that are held by placeholder jobs run no programs: the site needs reservations for that"}
	case !filepath.IsAbs(job.Dir) || strings.ContainsAny(job.Dir, "\n\x00"):
		return &protocol.Reason{Code: protocol.CodeMalformed, Note: fmt.Sprintf("the job's directory %q is no path from the root", job.Dir)}
	}
	return nil
}

// layOut makes what the script needs. Only what the job's account owns is its to
// change.
func layOut(job message.Job, who queue.Account) error {
	var failures []error
	for _, d := range []struct {
		name string
		mode os.FileMode
	}{{controlDir, 0o700}, {"work", 0o700}, {"tmp", 0o700}, {runDir, 0o700}} {
		failures = append(failures, os.MkdirAll(filepath.Join(job.Dir, d.name), d.mode))
	}
	for _, name := range []string{"stdout", "stderr"} {
		f, err := os.OpenFile(filepath.Join(job.Dir, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err == nil {
			err = f.Close()
		}
		failures = append(failures, err)
	}
	failures = append(failures, os.WriteFile(control(job, scriptFile), jobScript, 0o600))
	if err := errors.Join(failures...); err != nil {
		return err
	}
	return who.Own(job.Dir, "work", "tmp", runDir, "stdout", "stderr")
}

// sbatch submits a job as its account. The environment of sbatch is that of the
// program, and the program's words are arguments: nothing is read by a shell.
func (b *batch) sbatch(now time.Time, job message.Job, who queue.Account) error {
	threads, err := b.threads(now)
	if err != nil {
		return err
	}
	minutes := max(int((job.Slot.End.Sub(now)+time.Minute-1)/time.Minute), 1)
	args := []string{
		"--parsable", "--quiet", "--job-name=" + b.mark.Name(job.ID), "--comment=" + jobComment(job), "--partition=" + b.cfg.Partition,
		"--reservation=" + b.mark.Name(job.Reservation), fmt.Sprintf("--ntasks=%d", int64(job.Slot.Cores)*threads), fmt.Sprintf("--time=%d", minutes),
		"--no-requeue", "--output=/dev/null", "--input=/dev/null", "--chdir=/", "--export=ALL",
	}
	if who.Credential != nil {
		args = append(args, fmt.Sprintf("--uid=%d", who.UID), fmt.Sprintf("--gid=%d", who.GID))
	}
	if job.Memory > 0 {
		const mib = 1 << 20
		each := job.Memory / (int64(job.Slot.Cores) * threads)
		args = append(args, fmt.Sprintf("--mem-per-cpu=%dM", max((each+mib-1)/mib, 1)))
	}
	args = append(args, control(job, scriptFile), job.Dir, fmt.Sprint(job.Slot.End.UnixMilli()), fmt.Sprint(blocks(job.FileSize)), fmt.Sprint(kib(job.Memory)))
	own := b.slow
	own.p.Prefix = nil // the job is to be its account's, not that of whoever may reserve
	own.p.Env = append(who.Environment(job.Dir), job.Env...)
	if conf := orString(b.cfg.Conf, os.Getenv("SLURM_CONF")); conf != "" {
		own.p.Env = append(own.p.Env, "SLURM_CONF="+conf)
	}
	_, err = own.run("sbatch", append(args, job.Argv...)...)
	return err
}

// blocks and kib are sizes as limits of a shell count them, rounded up.
func blocks(bytes int64) int64 { return (bytes + 511) / 512 }
func kib(bytes int64) int64    { return (bytes + 1023) / 1024 }

// threads is how many of a core Slurm counts.
func (b *batch) threads(now time.Time) (int64, error) {
	if b.last == nil {
		if _, err := b.look(now); err != nil {
			return 0, err
		}
	}
	return b.last.threads, nil
}

// jobComment tells a job of one directory from any other that may have its name,
// such as one of a journal that was lost.
func jobComment(job message.Job) string {
	sum := sha256.Sum256([]byte(job.Dir))
	return "job " + hex.EncodeToString(sum[:8])
}

// notSubmitted is why Slurm did not take a job. A reservation that it has lost is
// made again by the agent, and then it is asked again.
func (b *batch) notSubmitted(job message.Job, err error) *protocol.Reason {
	_, known := b.ends[b.mark.Name(job.Reservation)]
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
	all, err := b.slow.records([]string{b.mark.Name(job.ID)})
	if err != nil {
		return queue.Unavailable(err)
	}
	b.seen.soon()
	r, ok := theOne(job, all[b.mark.Name(job.ID)])
	if !ok || r.over() {
		return &protocol.Reason{Code: protocol.CodeUnknown, Note: "the job does not run"}
	}
	switch {
	case verb == message.SignalKill:
		err = b.kill(now, job, r)
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

// kill cancels a job, after it is written down that its owner wanted that. Slurm
// asks it to end, and ends it some seconds later.
func (b *batch) kill(now time.Time, job message.Job, r record) error {
	if err := queue.WriteFile(control(job, killFile), now.UTC()); err != nil {
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

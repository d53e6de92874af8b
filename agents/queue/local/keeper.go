package local

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ramp/agents/queue"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Times of a keeper.
const (
	// warning is how long before the end of its slot a job gets SIGTERM; at the end it is killed.
	warning = time.Second
	// killGrace is how long after SIGTERM a job that its owner killed gets SIGKILL.
	killGrace = 2 * time.Second
	// writeTime is how long after its slot the keeper tries to record a job's end, and
	// writePause is the pause between two tries.
	writeTime  = 24 * time.Hour
	writePause = time.Second
)

// keeper owns one running job. Its process outlives the agent, and is the parent of all
// processes of the job.
type keeper struct {
	job     message.Job
	plan    plan
	uid     *os.File // the lock of its uid; nil: it has none of its own
	status  protocol.JobStatus
	process *os.Process
	setUp   *os.File  // where bubblewrap says that the program has begun; nil: without it
	paused  time.Time // since when it is suspended
	idle    time.Duration
	ending  protocol.JobState // why it was asked to end
	killAt  time.Time
	meter   *meter
	last    reading          // as saved
	now     func() time.Time // steady

	diskMost int64         // bytes that the job's files may take
	diskAt   time.Time     // when to measure them again; zero: it is being done
	measured chan diskSize // the end of a measurement, which may take long: nothing waits for it
}

// Keep runs the job of a directory until it has ended: the whole life of a process that Submit
// starts. The program begins at most once, see begunFile. When it ends, Keep kills the processes
// that it left, even in sessions of their own. Errors: a directory that cannot be read or written.
func Keep(dir string) error {
	var sp spec
	probe := message.Job{Dir: dir}
	if err := queue.ReadFile(control(probe, specFile), &sp); err != nil {
		return err
	}
	lock, err := lockJob(control(probe, lockFileOf))
	if err != nil {
		return err
	}
	defer lock.Close() //nolint:errcheck // with the process at the latest
	if _, err := os.Stat(control(probe, begunFile)); err == nil {
		return nil // it has begun before; the driver finds its end
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the parent of orphans: %w", err)
	}
	// The agent may have inherited files, for instance from a shell; a job must not.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keep the agent's files from the job: %w", err)
	}
	k := &keeper{job: sp.Job, plan: sp.Plan, meter: newMeter(sp.Job.Slot.Cores), diskAt: time.Now(), measured: make(chan diskSize, 1), now: steady(time.Now, uptime)}
	return k.run()
}

// lockJob takes the lock of a job and records its holder. It waits for others: readers
// hold the lock for moments, and another keeper until the job has ended.
func lockJob(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteString(strconv.Itoa(os.Getpid()))
	}
	return f, err
}

// steady is a clock that nobody sets, and that goes on while the machine sleeps. By it a job gets its
// slot and is paid for it, whatever becomes of the machine's own, which it shows at first.
func steady(wall func() time.Time, uptime func() time.Duration) func() time.Time {
	began, up := wall(), uptime()
	return func() time.Time { return began.Add(uptime() - up) }
}

func uptime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // every Linux has it
	return time.Duration(t.Nano())
}

// run begins the program and stays until it has ended.
func (k *keeper) run() error {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if err := touch(control(k.job, begunFile)); err != nil {
		return err
	}
	k.status = protocol.JobStatus{State: protocol.JobRunning, Started: k.now().UTC()}
	if err := k.begin(); err != nil {
		return k.neverBegan(err)
	}
	if err := k.save(); err != nil {
		k.ending = protocol.JobLost
		return errors.Join(err, k.end(0))
	}
	ended := make(chan syscall.WaitStatus, 1)
	go reap(k.process.Pid, ended)
	return k.stay(signals, ended)
}

// touch creates a file that survives a crash of the machine.
func touch(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: the job has begun before", path)
	}
	if err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(f.Sync(), f.Close(), dir.Sync(), dir.Close())
}

// unrunnable is the fault of a program that cannot be run. Other errors are the site's, and
// nothing is due for them.
type unrunnable struct{ error }

func (u unrunnable) Unwrap() error { return u.error }

// neverBegan maps the error of a program that cannot be run to a shell's exit code.
func (k *keeper) neverBegan(err error) error {
	k.cleanUp()
	k.status.State, k.status.Exit, k.status.Ended = protocol.JobExited, 126, k.now().UTC()
	if errors.Is(err, fs.ErrNotExist) {
		k.status.Exit = 127
	}
	if !errors.As(err, &unrunnable{}) {
		k.status = protocol.JobStatus{State: protocol.JobLost, Ended: k.status.Ended}
	}
	k.status.Note = queue.OneLine([]byte(err.Error()))
	return k.save()
}

// begun reports whether the program ran: bubblewrap says its exit code only then.
func (k *keeper) begun() bool {
	if k.setUp == nil {
		return true
	}
	_ = k.setUp.SetReadDeadline(time.Now().Add(time.Second)) // whoever writes it has ended
	said, _ := io.ReadAll(io.LimitReader(k.setUp, 1<<12))
	return bytes.Contains(said, []byte(`"exit-code"`))
}

func (k *keeper) save() error { return queue.WriteFile(control(k.job, stateFile), k.status) }

// stay obeys signals and timers until the program has ended.
func (k *keeper) stay(signals <-chan os.Signal, ended <-chan syscall.WaitStatus) error {
	looks := time.NewTicker(samplePeriod)
	defer looks.Stop()
	for {
		alarm := time.NewTimer(k.next().Sub(k.now()))
		select {
		case how := <-ended:
			alarm.Stop()
			return k.end(how)
		case s := <-signals:
			k.obey(s)
		case <-alarm.C:
			k.wake(k.now())
		case <-looks.C:
			k.look(k.now())
		case d := <-k.measured:
			k.judge(d)
		}
		alarm.Stop()
	}
}

// look measures the job. It logs a failure to save the reading, and tries again later.
func (k *keeper) look(now time.Time) {
	if err := k.sample(now); err != nil {
		fmt.Fprintln(os.Stderr, "usage:", err)
	}
	k.watchMemory()
	k.watchDisk(now)
}

func (k *keeper) next() time.Time {
	if !k.killAt.IsZero() {
		return k.killAt
	}
	return k.slotEnd(k.now()).Add(-warning)
}

// slotEnd is when the job must have ended. That of a job of a federation moves by the time
// for which it is suspended.
func (k *keeper) slotEnd(now time.Time) time.Time {
	if !k.job.Stretch {
		return k.job.Slot.End
	}
	return k.job.Slot.End.Add(k.idleUntil(now))
}

// idleUntil is for how long the job was suspended.
func (k *keeper) idleUntil(now time.Time) time.Duration {
	if k.paused.IsZero() {
		return k.idle
	}
	return k.idle + now.Sub(k.paused)
}

// wake asks the job to end before its slot does, and kills it at the end.
func (k *keeper) wake(now time.Time) {
	if end := k.slotEnd(now); k.killAt.IsZero() {
		if now.Before(end.Add(-warning)) {
			return // it is suspended, and its end has moved
		}
		k.stop(protocol.JobExpired, end)
		return
	}
	signalAll(k.job.Dir, syscall.SIGKILL, 0)
	k.killAt = now.Add(100 * time.Millisecond) // for processes forked meanwhile
}

// stop asks the job to end by an instant.
func (k *keeper) stop(why protocol.JobState, at time.Time) {
	k.ending = cmp.Or(k.ending, why)
	if k.killAt.IsZero() || at.Before(k.killAt) { // asking again gives it no more time
		k.killAt = at
	}
	signalAll(k.job.Dir, syscall.SIGTERM, k.monitor())
	signalAll(k.job.Dir, syscall.SIGCONT, 0)
	groupOf(k.job.Dir).freeze(false)
}

// monitor is the process that ends the container if it ends, or 0.
func (k *keeper) monitor() int {
	if k.plan.Bwrap == "" {
		return 0
	}
	return k.process.Pid
}

func (k *keeper) obey(s os.Signal) {
	switch {
	case s == syscall.SIGUSR1 && k.status.State == protocol.JobRunning && k.ending == "":
		groupOf(k.job.Dir).freeze(true)
		signalAll(k.job.Dir, syscall.SIGSTOP, 0)
		k.paused, k.status.State = k.now(), protocol.JobSuspended
	case s == syscall.SIGUSR2 && k.status.State == protocol.JobSuspended && k.ending == "":
		signalAll(k.job.Dir, syscall.SIGCONT, 0)
		groupOf(k.job.Dir).freeze(false)
		k.resumed()
		k.status.State = protocol.JobRunning
	case s == syscall.SIGTERM:
		k.stop(protocol.JobKilled, protocol.Earlier(k.now().Add(killGrace), k.slotEnd(k.now())))
		return
	default:
		return // another signal, or nothing to change
	}
	k.look(k.now())
	if err := k.save(); err != nil {
		fmt.Fprintln(os.Stderr, "state:", err)
	}
}

func (k *keeper) resumed() { k.idle, k.paused = k.idleUntil(k.now()), time.Time{} }

// end records how the job ended, once all its processes are gone.
func (k *keeper) end(how syscall.WaitStatus) error {
	k.resumed()
	bury(k.job.Dir)
	k.cleanUp()
	k.status.State, k.status.Ended = protocol.JobExited, k.now().UTC()
	switch {
	case k.ending != "":
		k.status.State = k.ending
	case how.Exited() && !k.begun(): // nothing was used either
		k.status = protocol.JobStatus{State: protocol.JobLost, Ended: k.status.Ended, Note: "its container could not be set up; bubblewrap says why in the program's errors"}
		return k.conclude()
	case how.Exited():
		k.status.Exit = how.ExitStatus()
	case how.Signaled():
		k.status.Exit = 128 + int(how.Signal())
		k.status.Note = cmp.Or(k.status.Note, "ended by signal "+how.Signal().String())
	}
	k.status.Usage, k.status.Memory = k.final()
	return k.conclude()
}

func (k *keeper) cleanUp() {
	if err := k.plan.cleanUp(k.job); err != nil {
		fmt.Fprintln(os.Stderr, "clean up:", err)
	}
	if k.uid != nil {
		_ = k.uid.Close() // unlocks it
	}
}

// conclude records how the job ended as soon as the disk has room: a job that has filled
// the disk is not lost.
func (k *keeper) conclude() error {
	again := time.NewTicker(writePause)
	defer again.Stop()
	for late := k.job.Slot.End.Add(writeTime); ; <-again.C {
		err := k.save()
		if err == nil || errors.Is(err, fs.ErrNotExist) || k.now().After(late) {
			return err
		}
	}
}

package local

import (
	"errors"
	"fmt"
	"io/fs"
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
	// warning is how long before the end of its slot a job is asked to end, by
	// SIGTERM; at the end it is killed.
	warning = time.Second
	// killGrace is how long a job that is killed by its owner has after SIGTERM.
	killGrace = 2 * time.Second
	// writeTime is for how long after its slot one tries to write how a job ended, and
	// writePause between two tries.
	writeTime  = 24 * time.Hour
	writePause = time.Second
)

// keeper runs one job: the process that outlives the agent and is the parent of
// everything that the job starts.
type keeper struct {
	job     message.Job
	status  protocol.JobStatus
	process *os.Process
	paused  time.Time // since when it is suspended
	idle    time.Duration
	ending  protocol.JobState // why it was asked to end
	killAt  time.Time
	meter   *meter
	last    reading // that was written
}

// Keep runs the job of a directory and returns when it is over: the whole of a
// process that Submit starts. The program begins at most once, see begunFile; what
// it leaves running when it ends is killed, even what has made itself a session of
// its own. Errors: a directory that cannot be read or written.
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
		return nil // it has begun before; the driver sees what became of it
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the parent of orphans: %w", err)
	}
	k := &keeper{job: sp.Job, meter: newMeter(sp.Job.Slot.Cores)}
	return k.run()
}

// lockJob takes the lock of a job and writes who has it. It waits for others: who
// only looks has the lock for moments, and another keeper until the job is over.
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

// run begins the program and stays until it is over.
func (k *keeper) run() error {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if err := touch(control(k.job, begunFile)); err != nil {
		return err
	}
	k.status = protocol.JobStatus{State: protocol.JobRunning, Started: time.Now().UTC()}
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

// touch makes a file that outlasts a crash of the machine.
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

// neverBegan says of a program that cannot be run what a shell says of it.
func (k *keeper) neverBegan(err error) error {
	k.status.State, k.status.Exit, k.status.Ended = protocol.JobExited, 126, time.Now().UTC()
	if errors.Is(err, fs.ErrNotExist) {
		k.status.Exit = 127
	}
	k.status.Note = queue.OneLine([]byte(err.Error()))
	return k.save()
}

func (k *keeper) save() error { return queue.WriteFile(control(k.job, stateFile), k.status) }

// stay does what it is told until the program has ended.
func (k *keeper) stay(signals <-chan os.Signal, ended <-chan syscall.WaitStatus) error {
	looks := time.NewTicker(samplePeriod)
	defer looks.Stop()
	for {
		alarm := time.NewTimer(time.Until(k.next()))
		select {
		case how := <-ended:
			alarm.Stop()
			return k.end(how)
		case s := <-signals:
			k.obey(s)
		case <-alarm.C:
			k.wake(time.Now())
		case now := <-looks.C:
			k.look(now)
		}
		alarm.Stop()
	}
}

// look measures the job. What cannot be written down is told, and tried again.
func (k *keeper) look(now time.Time) {
	if err := k.sample(now); err != nil {
		fmt.Fprintln(os.Stderr, "usage:", err)
	}
}

// next is when something has to be done.
func (k *keeper) next() time.Time {
	switch {
	case !k.killAt.IsZero():
		return k.killAt
	default:
		return k.job.Slot.End.Add(-warning)
	}
}

// wake asks the job to end before its slot does, and kills what stays.
func (k *keeper) wake(now time.Time) {
	if k.killAt.IsZero() {
		k.stop(protocol.JobExpired, k.job.Slot.End)
		return
	}
	signalAll(k.job.Dir, syscall.SIGKILL)
	k.killAt = now.Add(100 * time.Millisecond) // what was being forked meanwhile
}

// stop asks the job to end, and says until when.
func (k *keeper) stop(why protocol.JobState, at time.Time) {
	if k.ending == "" {
		k.ending = why
	}
	if k.killAt.IsZero() || at.Before(k.killAt) { // it may be asked again, and gets no more time for that
		k.killAt = at
	}
	signalAll(k.job.Dir, syscall.SIGTERM)
	signalAll(k.job.Dir, syscall.SIGCONT)
}

// obey does what a signal says.
func (k *keeper) obey(s os.Signal) {
	switch {
	case s == syscall.SIGUSR1 && k.status.State == protocol.JobRunning && k.ending == "":
		signalAll(k.job.Dir, syscall.SIGSTOP)
		k.paused, k.status.State = time.Now(), protocol.JobSuspended
	case s == syscall.SIGUSR2 && k.status.State == protocol.JobSuspended && k.ending == "":
		signalAll(k.job.Dir, syscall.SIGCONT)
		k.resumed()
		k.status.State = protocol.JobRunning
	case s == syscall.SIGTERM:
		end := time.Now().Add(killGrace)
		if end.After(k.job.Slot.End) {
			end = k.job.Slot.End
		}
		k.stop(protocol.JobKilled, end)
		return
	default:
		return // the machine's own, or nothing to change
	}
	k.look(time.Now())
	if err := k.save(); err != nil {
		fmt.Fprintln(os.Stderr, "state:", err)
	}
}

func (k *keeper) resumed() {
	if !k.paused.IsZero() {
		k.idle += time.Since(k.paused)
		k.paused = time.Time{}
	}
}

// end writes how the job ended, when everything of it is gone.
func (k *keeper) end(how syscall.WaitStatus) error {
	k.resumed()
	bury(k.job.Dir)
	k.status.State, k.status.Ended = protocol.JobExited, time.Now().UTC()
	switch {
	case k.ending != "":
		k.status.State = k.ending
	case how.Exited():
		k.status.Exit = how.ExitStatus()
	case how.Signaled():
		k.status.Exit = 128 + int(how.Signal())
		k.status.Note = "ended by signal " + how.Signal().String()
	}
	k.status.Usage, k.status.Memory = k.final()
	return k.conclude()
}

// conclude writes how the job ended as soon as that can be written: on a disk that it
// has filled, it is not lost for that.
func (k *keeper) conclude() error {
	again := time.NewTicker(writePause)
	defer again.Stop()
	for late := k.job.Slot.End.Add(writeTime); ; <-again.C {
		err := k.save()
		if err == nil || errors.Is(err, fs.ErrNotExist) || time.Now().After(late) {
			return err
		}
	}
}

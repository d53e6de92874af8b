package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Files of a job's directory besides work, stdout and stderr; see package queue.
const (
	controlDir = "control"
	specFile   = "job.json"   // the keeper's instructions
	lockFileOf = "lock"       // held by the keeper as long as it lives
	begunFile  = "begun"      // made before the program begins, to prevent a second begin
	stateFile  = "state.json" // status of the job
	keeperLog  = "log"
)

type spec struct {
	Job  message.Job `json:"job"`
	Plan plan        `json:"plan"`
}

func control(job message.Job, name string) string { return filepath.Join(job.Dir, controlDir, name) }

// jobPace is how often to poll jobs: each poll reads one small file of each job.
const (
	jobLeast = 20 * time.Millisecond
	jobMost  = 500 * time.Millisecond
	// keeperTime is how long a keeper may take to begin.
	keeperTime = 15 * time.Second
)

// JobPace is how often to poll running jobs.
func (c *cores) JobPace() queue.Pace { return queue.Pace{Least: jobLeast, Most: jobMost} }

// Ended implements queue.Ender. A keeper of an earlier process ends unseen.
func (c *cores) Ended() <-chan struct{} { return c.ended }

// Submit starts a keeper for a job, and waits until it has begun. A job that has
// begun before is left as it is.
func (c *cores) Submit(_ time.Time, job message.Job) *protocol.Reason {
	switch {
	case len(c.keeper) == 0:
		return &protocol.Reason{Code: protocol.CodeForbidden, Note: "local: no program to watch jobs is configured"}
	case c.refused != "":
		return &protocol.Reason{Code: protocol.CodeForbidden, Note: "local: this machine cannot contain jobs: " + c.refused}
	}
	if known, err := c.place(job); err != nil {
		return queue.Unavailable(err)
	} else if !known {
		return &protocol.Reason{Code: protocol.CodeExpired, Note: "no such claim"}
	}
	if status, err := c.status(job); err != nil {
		return queue.Unavailable(err)
	} else if status.State != "" {
		return nil
	}
	if err := c.start(job); err != nil {
		return queue.Unavailable(err)
	}
	return nil
}

// place notes in a job's claim where it runs; false: there is no such claim.
func (c *cores) place(job message.Job) (known bool, err error) {
	err = c.locked(func(claims *[]claim) (bool, error) {
		i := c.index(*claims, job.Reservation)
		if known = i >= 0; !known || job.Stretch || (*claims)[i].Dir == job.Dir {
			return false, nil
		}
		(*claims)[i].Dir = job.Dir
		return true, nil
	})
	return known, err
}

// start starts a keeper. A second keeper does no harm: only one gets the lock.
func (c *cores) start(job message.Job) error {
	if err := os.MkdirAll(filepath.Join(job.Dir, controlDir), 0o700); err != nil {
		return err
	}
	if err := queue.WriteFile(control(job, specFile), spec{job, c.plan}); err != nil {
		return err
	}
	log, err := os.OpenFile(control(job, keeperLog), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // nothing was written here
	argv := append(append(c.plan.enter(), c.keeper...), job.Dir)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = []string{"PATH=" + os.Getenv("PATH")}, "/", log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives the agent
	if err := cmd.Start(); err != nil {
		return err
	}
	gone := make(chan struct{})
	go func() { // it ends with the job, and writes to files
		_ = cmd.Wait()
		close(gone)
		select {
		case c.ended <- struct{}{}:
		default: // another one has ended, and the jobs are polled soon
		}
	}()
	return c.awaitKeeper(job, gone)
}

// awaitKeeper waits until a keeper has written the status of its job.
func (c *cores) awaitKeeper(job message.Job, gone <-chan struct{}) error {
	late := time.NewTimer(keeperTime)
	defer late.Stop()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			if s, err := c.status(job); err == nil && s.State != "" {
				return nil
			}
		case <-gone:
			if s, err := c.status(job); err == nil && s.State != "" {
				return nil
			}
			words, _ := os.ReadFile(control(job, keeperLog)) // whatever can be read
			return fmt.Errorf("the process that watches job %s ended: %s", job.ID, queue.OneLine(words))
		case <-late.C:
			return fmt.Errorf("the process that watches job %s did not start within %s", job.ID, keeperTime)
		}
	}
}

// status reads the status of a job; an empty State: it has not begun.
func (c *cores) status(job message.Job) (protocol.JobStatus, error) {
	alive, err := keeperLives(job)
	if err != nil {
		return protocol.JobStatus{}, err
	}
	var s protocol.JobStatus
	if err := queue.ReadFile(control(job, stateFile), &s); err != nil {
		return protocol.JobStatus{}, err
	}
	if s.State.Over() {
		return s, nil
	}
	if err := readUsage(job, &s); err != nil || alive {
		return s, err
	}
	if _, err := os.Stat(control(job, begunFile)); errors.Is(err, fs.ErrNotExist) {
		return protocol.JobStatus{}, nil
	}
	return c.bury(job, s)
}

// bury kills the processes of a job whose keeper has died. While it holds the lock, no
// other keeper begins; one may have begun, and even ended, before it got the lock.
func (c *cores) bury(job message.Job, s protocol.JobStatus) (protocol.JobStatus, error) {
	lock, err := tryLock(control(job, lockFileOf))
	if err != nil {
		return s, err
	}
	if lock != nil {
		defer lock.Close() //nolint:errcheck // closing unlocks
	}
	used, memory := s.Usage, s.Memory
	if err := queue.ReadFile(control(job, stateFile), &s); err != nil || lock == nil || s.State.Over() {
		return s, err
	}
	if err := killStrays(job.Dir); err != nil {
		return s, err
	}
	if err := c.takeBack(job); err != nil {
		return s, err
	}
	s.Usage, s.Memory = used, memory
	ended := protocol.Later(time.Now().UTC(), s.Started.Add(s.Usage.Wall)) // the clock may be behind
	s.State, s.Ended, s.Note = protocol.JobLost, ended, "the process that watches it, or the machine, died"
	return s, queue.WriteFile(control(job, stateFile), s)
}

// takeBack cleans up after a job whose keeper has died, unless another job has its uid
// already, whose keeper has done it.
func (c *cores) takeBack(job message.Job) error {
	var sp spec
	var uid int
	if err := errors.Join(queue.ReadFile(control(job, specFile), &sp), queue.ReadFile(control(job, uidFile), &uid)); err != nil {
		return err
	}
	if uid == 0 {
		return sp.Plan.cleanUp(job)
	}
	lock, err := sp.Plan.seize(uid)
	if err != nil || lock == nil {
		return err
	}
	return errors.Join(sp.Plan.cleanUp(job), lock.Close())
}

func keeperLives(job message.Job) (bool, error) {
	lock, err := tryLock(control(job, lockFileOf))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || lock == nil {
		return err == nil, err
	}
	return false, lock.Close() // closing unlocks
}

// tryLock takes the lock of a job, shared with other readers; nil if a keeper holds it.
// Closing the file unlocks it.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = nil
	}
	return nil, errors.Join(err, f.Close())
}

// Signal passes a signal to a job's keeper.
func (c *cores) Signal(_ time.Time, job message.Job, verb message.JobSignal) *protocol.Reason {
	sig, ok := map[message.JobSignal]syscall.Signal{
		message.SignalSuspend: syscall.SIGUSR1, message.SignalResume: syscall.SIGUSR2, message.SignalKill: syscall.SIGTERM,
	}[verb]
	if !ok {
		return &protocol.Reason{Code: protocol.CodeMalformed, Note: "want suspend, resume or kill"}
	}
	alive, err := keeperLives(job)
	if err != nil {
		return queue.Unavailable(err)
	}
	var pid int
	if err := queue.ReadFile(control(job, lockFileOf), &pid); !alive || err != nil || pid <= 1 {
		return &protocol.Reason{Code: protocol.CodeUnknown, Note: "the job is not running"}
	}
	if err := syscall.Kill(pid, sig); err != nil {
		return queue.Unavailable(err)
	}
	return nil
}

func (c *cores) Statuses(_ time.Time, jobs []message.Job) (map[string]protocol.JobStatus, error) {
	all := make(map[string]protocol.JobStatus, len(jobs))
	for _, job := range jobs {
		s, err := c.status(job)
		if err != nil {
			return nil, err
		}
		if s.State != "" {
			all[job.ID] = s
		}
	}
	return all, nil
}

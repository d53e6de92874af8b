package local

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"ramp/agents/queue"
	"ramp/protocol/message"
)

// uidFile names the uid of a job, so that its processes are found after its keeper has died.
const uidFile = "uid"

// account is the account that the job runs as: an own uid of the range, if there is one,
// until the keeper ends.
func (k *keeper) account() (queue.Account, error) {
	if k.plan.First == 0 {
		who, err := queue.AccountOf(k.job.User)
		who.Home = cmp.Or(k.job.Home, who.Home)
		if k.plan.Bwrap != "" {
			who.Name, who.Home = "job", home
		}
		return who, err
	}
	for uid := k.plan.First; uid <= k.plan.Last; uid++ {
		lock, err := k.plan.seize(uid)
		if err != nil {
			return queue.Account{}, err
		}
		if lock == nil {
			continue
		}
		if !k.plan.clear(uid) { // others use it: the range is not ours alone
			_ = lock.Close()
			continue
		}
		k.uid = lock
		who := jobAccount(uid)
		if k.plan.Bwrap == "" {
			who.Home = filepath.Join(k.job.Dir, tmpDir, "home")
		}
		return who, queue.WriteFile(control(k.job, uidFile), uid)
	}
	return queue.Account{}, fmt.Errorf("all uids of jobs, %d-%d, are taken", k.plan.First, k.plan.Last)
}

// seize locks a uid; nil if a job has it. Closing the file, or the end of the process, unlocks it.
func (p plan) seize(uid int) (*os.File, error) {
	if err := os.MkdirAll(p.Locks, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(p.Locks, strconv.Itoa(uid)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		return f, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = nil
	}
	return nil, errors.Join(err, f.Close())
}

// clear kills what runs under a uid, and reports whether nothing does any more. In a mapped
// range it kills nothing: other programs of the agent's account may use it.
func (p plan) clear(uid int) bool {
	if !p.Mapped {
		return killUID(uid) == nil
	}
	for pid, q := range processes() {
		if !q.dead && uidOf(pid) == uid {
			return false
		}
	}
	return true
}

func killUID(uid int) error { return killAll(func(pid int) bool { return uidOf(pid) == uid }) }

// uidOf is the real uid of a process, or -1.
func uidOf(pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, found := bytes.Cut(b, []byte("\nUid:"))
	if f := strings.Fields(string(rest[:min(len(rest), 60)])); err == nil && found && len(f) > 0 {
		if uid, err := strconv.Atoi(f[0]); err == nil {
			return uid
		}
	}
	return -1
}

// cleanUp removes what a job has left besides its working directory, and takes that back
// from its account: the next job under the same uid finds nothing.
func (p plan) cleanUp(job message.Job) error {
	var uid int
	if err := queue.ReadFile(control(job, uidFile), &uid); err != nil {
		return err
	}
	if p.Mapped { // other programs of the agent's account may use its range
		return p.takeAllBack(job)
	}
	if uid >= max(p.First, 1) {
		if err := killUID(uid); err != nil {
			return err
		}
	}
	return errors.Join(os.RemoveAll(filepath.Join(job.Dir, tmpDir)), queue.TakeBack(job.Dir))
}

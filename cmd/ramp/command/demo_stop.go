package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stopKept ends a market that was kept: it asks whoever has a journal or ledger
// below the directory open to leave, and waits until they have.
func (d *demo) stopKept(ctx context.Context) error {
	if d.dir == "" {
		return fail(exitUsage, "give the directory that 'ramp demo --keep' has named", "--stop needs --dir DIR")
	}
	if _, err := os.Stat(filepath.Join(d.dir, "ca", caKey)); err != nil {
		return fail(exitUsage, "give the directory that 'ramp demo --keep' has named", "no market in %s", d.dir)
	}
	asked := map[int]bool{}
	deadline, cancel := context.WithTimeout(ctx, 2*shutdownTime)
	defer cancel()
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for {
		pids, err := d.holders()
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			d.say("%d processes have left; its files are still in %s", len(asked), d.dir)
			return nil
		}
		for _, pid := range pids {
			if pid != someProcess && !asked[pid] {
				asked[pid] = true
				_ = syscall.Kill(pid, syscall.SIGTERM) // it may have left meanwhile
			}
		}
		select {
		case <-pause.C:
		case <-deadline.Done():
			return fail(exitFailed, "end them with kill -9", "still running: %s", strings.Trim(fmt.Sprint(pids), "[]"))
		}
	}
}

// holders are the processes that have a journal or ledger of the market open.
func (d *demo) holders() ([]int, error) {
	locks, err := filepath.Glob(filepath.Join(escapeGlob(d.dir), "*", "*.db.lock"))
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, path := range locks {
		pid, err := lockHolder(path)
		if err != nil {
			return nil, fail(exitFailed, "", "%w", err)
		}
		if pid != 0 {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// escapeGlob makes a path stand for itself in a pattern.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// maxLockWords bounds what is read of a lock file, in bytes.
const maxLockWords = 64

// someProcess stands for one that holds a lock and has not written, or has
// already wiped, its number: it begins or leaves just now.
const someProcess = -1

// lockHolder is the process that holds a lock file; zero: nobody does. A number
// in a file that is not locked is of a process that has ended.
func lockHolder(path string) (int, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); {
	case err == nil:
		return 0, nil // closing it gives the lock back
	case !errors.Is(err, syscall.EWOULDBLOCK):
		return 0, fmt.Errorf("lock %s: %w", path, err)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxLockWords))
	if err != nil {
		return 0, err
	}
	number, _, _ := strings.Cut(string(b), " ")
	pid, err := strconv.Atoi(number)
	if err != nil || pid <= 1 {
		return someProcess, nil
	}
	return pid, nil
}

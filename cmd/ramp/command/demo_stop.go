package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"ramp/bank/boltfile"
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
			if pid > 1 && !asked[pid] {
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
	locks, err := filepath.Glob(filepath.Join(escapeGlob(d.dir), "*", "*.db"+boltfile.LockEnd))
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, lock := range locks {
		who, err := boltfile.Holder(strings.TrimSuffix(lock, boltfile.LockEnd))
		if err != nil {
			return nil, fail(exitFailed, "", "%w", err)
		}
		if who != nil {
			pids = append(pids, who.PID)
		}
	}
	return pids, nil
}

// escapeGlob makes a path stand for itself in a pattern.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

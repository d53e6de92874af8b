package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"ramp/agents/config"
	"ramp/agents/exit"
	"ramp/agents/join"
	"ramp/agents/node"
	"ramp/bank/boltfile"
)

// Stop ends a market that was kept: it asks the processes that have a journal or ledger below the
// directory open to stop, and waits until they have.
func (d *Market) Stop(ctx context.Context) error {
	if d.Dir == "" {
		return exit.Fail(exit.Usage, "give the directory that 'ramp demo --keep' printed", "--stop needs --dir DIR")
	}
	if _, err := os.Stat(filepath.Join(d.Dir, "ca", join.KeyFile)); err != nil {
		return exit.Fail(exit.Usage, "give the directory that 'ramp demo --keep' printed", "no market in %s", d.Dir)
	}
	asked := map[int]bool{}
	deadline, cancel := context.WithTimeout(ctx, 2*node.ShutdownTime)
	defer cancel()
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for {
		pids, err := d.running()
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			d.say("stopped %d processes; the files are still in %s", len(asked), d.Dir)
			return nil
		}
		for _, pid := range pids {
			if pid > 1 && !asked[pid] {
				asked[pid] = true
				_ = syscall.Kill(pid, syscall.SIGTERM) // it may have ended in the meantime
			}
		}
		select {
		case <-pause.C:
		case <-deadline.Done():
			return exit.Fail(exit.Failed, "end them with kill -9", "still running: %s", strings.Trim(fmt.Sprint(pids), "[]"))
		}
	}
}

// running are the processes that have a journal or ledger of the market open.
func (d *Market) running() ([]int, error) {
	locks, err := filepath.Glob(filepath.Join(config.EscapeGlob(d.Dir), "*", "*.db"+boltfile.LockEnd))
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, lock := range locks {
		who, err := boltfile.Holder(strings.TrimSuffix(lock, boltfile.LockEnd))
		if err != nil {
			return nil, exit.Fail(exit.Failed, "", "%w", err)
		}
		if who != nil {
			pids = append(pids, who.PID)
		}
	}
	return pids, nil
}

package slurm

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
)

// idle is the script of a placeholder without programs: it sleeps until its slot ends.
const idle = "#!/bin/sh\nexec sleep 31536000\n"

// placehold submits a job that waits for the slot's start. Slurm guarantees it nothing,
// so the driver itself checks that running jobs and held slots leave the cores.
func (b *batch) placehold(now time.Time, id string, slot protocol.Slot) (protocol.Slot, string, *protocol.Reason) {
	v, err := b.part.look(now)
	if err != nil {
		return protocol.Slot{}, "", queue.Unavailable(err)
	}
	if h, ok := v.mine(id); ok {
		return h.again(slot)
	}
	if v.free(slot) < slot.Cores {
		return protocol.Slot{}, "", busy(v, slot)
	}
	if err := b.submitPlaceholder(now, id, slot, v); err != nil {
		return protocol.Slot{}, "", queue.Unavailable(err)
	}
	got, name, why := b.Find(now, id)
	if why != nil && why.Code == protocol.CodeUnknown {
		why = &protocol.Reason{Code: protocol.CodeUnavailable, Note: "Slurm accepted the placeholder job but does not list it"}
	}
	return got, name, why
}

// submitPlaceholder submits a placeholder that waits for its slot's start. If it exported less than
// the commands' own variables, Slurm 26.05 would need a login shell of its account to start it.
func (b *batch) submitPlaceholder(now time.Time, id string, slot protocol.Slot, v *view) error {
	left := slot.Wall()
	if now.After(slot.Start) {
		left = slot.End.Sub(now)
	}
	args := []string{
		"--parsable", "--quiet", "--job-name=" + b.mark.Name(id), fmt.Sprintf("--comment=%s%d %d %d", slotWord, slot.Start.Unix(), slot.End.Unix(), slot.Cores), "--partition=" + b.cfg.Partition,
		fmt.Sprintf("--ntasks=%d", int64(slot.Cores)*v.threads), fmt.Sprintf("--time=%d", v.rules.minutes(left)),
		"--begin=" + slot.Start.Format(stamp), "--no-requeue", "--output=/dev/null", "--input=/dev/null", "--chdir=/", "--export=ALL",
	}
	memory, err := b.share(v)
	if err != nil {
		return err
	}
	args = append(args, memory...)
	if b.cfg.Jobs == "" {
		_, err := b.slow.feed([]byte(idle), "sbatch", args...)
		return err
	}
	d := b.spools.of(id)
	b.spools.clear(b.part.last)
	if err := d.create(); err != nil {
		return err
	}
	_, err = b.slow.run("sbatch", append(args, d.path(holdFile), string(d), fmt.Sprint(slot.End.UnixMilli()))...)
	return err
}

// unplacehold cancels a placeholder in any state.
func (b *batch) unplacehold(now time.Time, id string) *protocol.Reason {
	v, err := b.part.look(now)
	if err != nil {
		return queue.Unavailable(err)
	}
	var failures []error
	for _, h := range append(v.held, v.late...) {
		if h.job != 0 && h.id == id {
			_, err := b.slow.run("scancel", fmt.Sprint(h.job))
			failures = append(failures, err)
		}
	}
	b.part.usable = false
	if err := errors.Join(failures...); err != nil {
		return queue.Unavailable(err)
	}
	delete(b.slots.ends, b.mark.Name(id))
	if b.cfg.Jobs == "" {
		return nil
	}
	if err := os.RemoveAll(string(b.spools.of(id))); err != nil {
		b.log.Warn("slurm: cannot remove the spool directory of a slot", "slot", id, "err", err)
	}
	return nil
}

// ErrForbidden means that Slurm does not let an account reserve.
var ErrForbidden = errors.New("this account may not reserve")

// MayReserve tests whether the account may reserve: it reserves one core for a minute,
// far ahead, and deletes that reservation at once. Slurm checks the rights before the
// nodes, so busy or broken nodes prove the right. The error is ErrForbidden if Slurm
// denies the right; otherwise it is whatever else went wrong.
func MayReserve(cfg Config) error {
	b, err := open(cfg)
	if err != nil {
		return err
	}
	start := cfg.Now().Add(300 * 24 * time.Hour).Truncate(time.Minute)
	b.mark = "ramp-trial-" // not the agent's mark: nobody mistakes it for a sold slot
	const id = "1"
	slot := protocol.Slot{Start: start.UTC(), End: start.Add(time.Minute).UTC(), Cores: 1}
	switch err := b.create(id, slot, coreCount(slot)); {
	case says(err, saysBusy), says(err, saysTooMany):
		return nil
	case says(err, saysForbidden):
		return fmt.Errorf("%w: %s", ErrForbidden, strings.TrimPrefix(err.Error(), "scontrol: "))
	case err != nil && !says(err, saysTwice):
		return err
	}
	if why := b.slots.release(cfg.Now(), b.mark.Name(id)); why != nil {
		return errors.New(why.Note)
	}
	return nil
}

package slurm

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"ramp/agents/queue"
	"ramp/agents/queue/script"
	"ramp/protocol"
	"ramp/protocol/message"
)

// batch is a partition as the Loop drives it. It makes and releases reservations,
// and runs jobs in them; its parts own the state.
type batch struct {
	cfg    Config
	slow   cluster
	mark   queue.Mark
	log    *slog.Logger
	part   partition
	told   *view // in the last answer of State; nil: it failed
	slots  *slots
	usage  *usage
	spools spools
	jobs   *script.Watch
}

// Open makes a driver of a partition. It does not ask Slurm yet, so that an agent
// can start during an outage. Errors: a wrong Config.
func Open(cfg Config) (*queue.Loop, error) {
	b, err := open(cfg)
	if err != nil {
		return nil, err
	}
	return queue.NewLoop(cfg.Agent, b, cfg.Now, cfg.Slog), nil
}

func open(cfg Config) (*batch, error) {
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	slow, mark := newCluster(cfg), queue.MarkOf(cfg.Agent)
	b := &batch{
		cfg: cfg, slow: slow, mark: mark, log: cfg.Slog, slots: newSlots(cfg, slow),
		spools: spools{filepath.Join(cfg.Jobs, spoolsDir), mark, cfg.Slog}, jobs: script.NewWatch("Slurm", jobLeast, jobMost),
	}
	if cfg.Hold == HoldReservation {
		b.usage = newUsage(cfg, slow, mark)
	}
	b.part = partition{
		name: cfg.Partition, slow: slow, mark: mark, slots: b.slots, usage: b.usage, pace: queue.Pace{Least: cfg.Poll, Most: cfg.PollMost},
	}
	return b, nil
}

// Advance looks for changes when a look is due, ends the jobs of slots that are
// over, and drops placeholders that came too late.
func (b *batch) Advance(now time.Time) (changed bool, next time.Time) {
	if b.slots.cancelEnded(now) {
		b.part.usable = false
	}
	changed, next = b.slots.deleteDue(now)
	if changed {
		b.part.usable = false
	}
	if b.part.pace.Due(now) {
		changed = b.poll(now) || changed
	}
	return changed, protocol.Earlier(protocol.Earlier(next, b.part.pace.Next()), b.slots.next())
}

// poll looks for changes since State, and drops late placeholders.
func (b *batch) poll(now time.Time) bool {
	v, err := b.part.look(now)
	if err == nil {
		b.dropLate(v)
	}
	return b.part.pace.Looked(now, err == nil && !v.same(b.told), err)
}

// dropLate cancels placeholders that do not run though their slot has begun, or
// that still run though it is over.
func (b *batch) dropLate(v *view) {
	for _, h := range v.late {
		if _, err := b.slow.run("scancel", fmt.Sprint(h.job)); err != nil {
			b.log.Warn("slurm: cannot cancel a late placeholder; trying again at the next poll", "job", h.job, "err", err)
		}
	}
}

// State returns the partition as it is now. Nothing can be sold while the partition
// starts no jobs; sold slots stand, and wait with it.
func (b *batch) State(now time.Time) (q message.QueueChanged, err error) {
	if b.told, err = b.part.fresh(now); err != nil {
		return q, err
	}
	v := b.told
	if why := v.rules.bars(b.cfg.Partition, v.cpus); why != "" {
		return q, errors.New(why)
	}
	q = v.message()
	if b.Whole() {
		q.NodeCores, q.Whole = v.each, queue.Whole(v.at, v.whole, v.uses())
	}
	return q, nil
}

// Find reads a reservation back from Slurm.
func (b *batch) Find(now time.Time, id string) (protocol.Slot, string, *protocol.Reason) {
	if b.cfg.Hold == HoldReservation {
		return b.readBack(now, id)
	}
	v, err := b.part.look(now)
	if err != nil {
		return protocol.Slot{}, "", queue.Unavailable(err)
	}
	h, ok := v.mine(id)
	if !ok {
		return protocol.Slot{}, "", unknown()
	}
	return h.slot, h.name, nil
}

func unknown() *protocol.Reason {
	return &protocol.Reason{Code: protocol.CodeUnknown, Unit: protocol.AllUnits, Note: "no such reservation"}
}

// Reserve holds a slot, rounded outward to whole seconds.
func (b *batch) Reserve(now time.Time, id string, slot protocol.Slot) (protocol.Slot, string, *protocol.Reason) {
	b.part.changed(now)
	slot = queue.Outward(slot)
	if b.cfg.Hold == HoldJob {
		return b.placehold(now, id, slot)
	}
	return b.reserve(now, id, slot)
}

// Release frees a slot and ends the jobs in it.
func (b *batch) Release(now time.Time, id string) *protocol.Reason {
	b.part.changed(now)
	if b.cfg.Hold == HoldJob {
		return b.unplacehold(now, id)
	}
	return b.slots.release(now, b.mark.Name(id))
}

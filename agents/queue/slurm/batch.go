package slurm

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"ramp/agents/queue"
	"ramp/agents/queue/script"
	"ramp/protocol"
	"ramp/protocol/message"
)

// batch is a partition as the Loop drives it.
type batch struct {
	cfg  Config
	slow cluster
	mark queue.Mark
	log  *slog.Logger

	last   *view // of the last look that succeeded
	usable bool  // last is as fresh as the last change
	pace   queue.Pace
	ends   map[string]time.Time // of our slots, by Slurm's name
	ending map[string]int       // releases that found jobs, by name
	// deleting are the reservations that go when their jobs have ended.
	deleting map[string]deletion
	jobs     *script.Watch
	ran      map[string]*ran // what ran in our slots, by ID
	swept    time.Time       // when files of old ones were removed last
}

// Open makes a driver of a partition. Slurm is not asked yet: an agent starts
// while it is away. Errors: a wrong Config.
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
	return &batch{
		cfg: cfg, slow: newCluster(cfg), mark: queue.MarkOf(cfg.Agent), log: cfg.Slog, pace: queue.Pace{Least: cfg.Poll, Most: cfg.PollMost},
		ends: map[string]time.Time{}, ending: map[string]int{}, deleting: map[string]deletion{}, jobs: script.NewWatch("Slurm", jobLeast, jobMost),
		ran: map[string]*ran{},
	}, nil
}

// look reads the partition as it is. The reservations are read last: a slot that
// was granted before the look is in it, or is lost.
func (b *batch) look(now time.Time) (*view, error) {
	nodes, err := b.slow.nodes(b.cfg.Partition)
	if err != nil {
		return nil, err
	}
	rules, err := b.slow.rules(b.cfg.Partition)
	if err != nil {
		return nil, err
	}
	jobs, err := b.slow.jobs()
	if err != nil {
		return nil, err
	}
	list, err := b.slow.reservations()
	if err != nil {
		return nil, err
	}
	v, err := assemble(now, b.cfg.Partition, b.mark, nodes, jobs, list)
	if err != nil {
		return nil, err
	}
	v.rules = rules
	b.last, b.usable = v, true
	b.learn(v)
	b.note(v, jobs)
	return v, nil
}

// learn remembers when our slots end: Slurm forgets a reservation at its end,
// and lets its jobs run on for a while.
func (b *batch) learn(v *view) {
	for _, h := range v.held {
		if h.mine {
			b.ends[h.name] = h.slot.End
		}
	}
}

// Advance looks for changes when it is time to, ends the jobs of slots that are
// over, and drops placeholders that came too late.
func (b *batch) Advance(now time.Time) (changed bool, next time.Time) {
	b.endSlots(now)
	changed, next = b.deleteDue(now)
	if b.pace.Due(now) {
		changed = b.poll(now) || changed
	}
	next = protocol.Earlier(next, b.pace.Next())
	for _, end := range b.ends {
		next = protocol.Earlier(next, end)
	}
	return changed, next
}

// poll looks, and drops placeholders that are too late.
func (b *batch) poll(now time.Time) bool {
	before := b.last
	v, err := b.look(now)
	if err != nil {
		return b.pace.Looked(now, false, err)
	}
	b.dropLate(v)
	return b.pace.Looked(now, !v.same(before), nil)
}

// endSlots cancels what runs in slots that are over. It is tried again at the
// next look until Slurm has taken it.
func (b *batch) endSlots(now time.Time) {
	for name, end := range b.ends {
		if end.After(now) {
			continue
		}
		if err := b.cancelSlot(name); err != nil {
			b.log.Warn("slurm: the jobs of a slot that is over cannot be cancelled now", "reservation", name, "err", err)
			b.ends[name] = now.Add(b.cfg.Poll)
			continue
		}
		delete(b.ends, name)
		delete(b.ending, name)
		b.usable = false
	}
}

// cancelSlot ends what runs in a slot that is over.
func (b *batch) cancelSlot(name string) error {
	if b.cfg.Hold == HoldReservation {
		return b.cancel(name)
	}
	_, err := b.slow.run("scancel", "--quiet", "--name="+name)
	return err
}

// dropLate cancels placeholders that do not run though their slot has begun, or
// that still run though it is over.
func (b *batch) dropLate(v *view) {
	for _, h := range v.late {
		if _, err := b.slow.run("scancel", fmt.Sprint(h.job)); err != nil {
			b.log.Warn("slurm: a placeholder cannot be cancelled now", "job", h.job, "err", err)
		}
	}
}

// fresh is a look no older than the last change and than a moment.
func (b *batch) fresh(now time.Time) (*view, error) {
	const moment = 250 * time.Millisecond
	if b.usable && now.Sub(b.last.at).Abs() < moment {
		return b.last, nil
	}
	return b.look(now)
}

// State is the partition as it is now. In one in which no job begins nothing can be
// sold; what was sold stands, and waits with it.
func (b *batch) State(now time.Time) (message.QueueChanged, error) {
	v, err := b.fresh(now)
	if err != nil {
		return message.QueueChanged{}, err
	}
	if why := v.rules.bars(b.cfg.Partition, v.cpus); why != "" {
		return message.QueueChanged{}, errors.New(why)
	}
	return v.told(), nil
}

// Find reads a reservation back from Slurm.
func (b *batch) Find(now time.Time, id string) (protocol.Slot, string, *protocol.Reason) {
	if b.cfg.Hold == HoldReservation {
		return b.readBack(now, id)
	}
	v, err := b.look(now)
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

// Reserve holds a slot, to whole seconds outward.
func (b *batch) Reserve(now time.Time, id string, slot protocol.Slot) (protocol.Slot, string, *protocol.Reason) {
	b.changed(now)
	slot = queue.Outward(slot)
	if b.cfg.Hold == HoldJob {
		return b.placehold(now, id, slot)
	}
	return b.reserve(now, id, slot)
}

// Release frees a slot and ends what runs in it.
func (b *batch) Release(now time.Time, id string) *protocol.Reason {
	b.changed(now)
	if b.cfg.Hold == HoldJob {
		return b.unplacehold(now, id)
	}
	return b.unreserve(now, id)
}

// changed notes that the last look is out of date, and looks again soon.
func (b *batch) changed(now time.Time) {
	b.usable = false
	b.pace.Soon(now)
}

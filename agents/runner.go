package agents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"ramp/protocol"
)

// Bounds of a Runner.
const (
	inboxLength   = 1024        // messages waiting for the role; senders block beyond
	pendingLength = 1024        // outputs waiting for the disk; the role blocks beyond
	probeFirst    = time.Second // between tries to write after a failed append
	probeMost     = 30 * time.Second
	probeTable    = "probe"
)

// ErrStopped is returned by calls to a Runner that has stopped.
var ErrStopped = errors.New("the agent has stopped")

// ErrUnavailable is returned while the store cannot be written.
var ErrUnavailable = errors.New("the store cannot be written; nothing was changed")

// Config is what a Runner needs.
type Config struct {
	// Load makes the role from its live tables; its Output is carried out first.
	Load func(t protocol.Tables, now time.Time) (Role, protocol.Output, error)
	// Store keeps what the role saves.
	Store Store
	// Route carries one message to its receivers: agents or local correspondents.
	// It must not block for long.
	Route func(m protocol.Message)
	// Unavailable makes the answer to a message that arrives while the store
	// cannot be written, if it wants one.
	Unavailable func(m protocol.Message) (protocol.Message, bool)
	// Trace, if set, is told every message that arrived or left, in order.
	Trace func(at time.Time, in bool, m protocol.Message)
	// Now is the clock.
	Now func() time.Time
	// Log is told of failures to write.
	Log *slog.Logger
}

// Runner runs one role in one goroutine. What the role wants saved is durable
// before anything of this or any later Output is sent; outputs that wait
// together share one append (group commit).
type Runner struct {
	cfg     Config
	inbox   chan event
	pending chan commit
	failed  chan error // from the committer, one per failed append
	healed  chan struct{}
	done    chan struct{}

	unfinished atomic.Int64 // commits that the committer has not carried out; only the owner adds
}

// event is something for the role: a message, or a call by the owner.
type event struct {
	message protocol.Message
	call    func(now time.Time, r Role) protocol.Output
	durable chan error
}

// commit is an Output on its way to the disk and then to its receivers.
type commit struct {
	at      time.Time
	in      protocol.Message // what it answers, for the trace
	traced  bool
	out     protocol.Output
	durable chan error
}

// NewRunner makes a Runner; Run starts it.
func NewRunner(cfg Config) *Runner {
	return &Runner{
		cfg:     cfg,
		inbox:   make(chan event, inboxLength),
		pending: make(chan commit, pendingLength),
		failed:  make(chan error),
		healed:  make(chan struct{}),
		done:    make(chan struct{}),
	}
}

// Deliver hands the role a message. It blocks while the inbox is full.
func (r *Runner) Deliver(m protocol.Message) error {
	select {
	case r.inbox <- event{message: m}:
		return nil
	case <-r.done:
		return ErrStopped
	}
}

// Do calls f in the goroutine that owns the role and returns when the Output of
// f is durable and on its way.
func (r *Runner) Do(ctx context.Context, f func(now time.Time, r Role) protocol.Output) error {
	e := event{call: f, durable: make(chan error, 1)}
	select {
	case r.inbox <- e:
	case <-r.done:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-e.durable:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-r.done:
	}
	select { // it may have become durable as the Runner stopped
	case err := <-e.durable:
		return err
	default:
		return ErrStopped
	}
}

// Run loads the role and runs it until ctx is done; then it carries out what the
// role had answered so far and returns nil. It returns an error only if the role
// cannot be loaded.
func (r *Runner) Run(ctx context.Context) error {
	defer close(r.done)
	committed := make(chan struct{})
	go func() { defer close(committed); r.commitAll() }()
	defer func() { <-committed }()
	defer close(r.pending)
	for {
		role, first, err := r.cfg.Load(r.cfg.Store, r.cfg.Now())
		if err != nil {
			return fmt.Errorf("load the agent's state: %w", err)
		}
		if err := r.own(ctx, role, first); err == nil {
			return nil
		} else {
			r.cfg.Log.Error("cannot write the store; refusing until it can be written", "err", err)
		}
		if stopped := r.awaitDisk(ctx); stopped {
			return nil
		}
		r.cfg.Log.Info("the store can be written again")
	}
}

// own is the goroutine that owns the role. It returns nil when ctx is done, and
// the error of the append that failed.
func (r *Runner) own(ctx context.Context, role Role, first protocol.Output) error {
	alarm := time.NewTimer(time.Hour)
	defer alarm.Stop()
	at := r.setAlarm(alarm, time.Time{}, first.WakeAt)
	if err := r.push(commit{at: r.cfg.Now(), out: first}); err != nil {
		return err
	}
	for {
		c := commit{}
		select {
		case <-ctx.Done():
			return nil
		case err := <-r.failed:
			return err
		case <-alarm.C:
			c.at, at = r.cfg.Now(), time.Time{}
			c.out = role.Wake(c.at)
		case e := <-r.inbox:
			c = r.handle(role, e)
		}
		at = r.setAlarm(alarm, at, c.out.WakeAt)
		if err := r.carryOut(c); err != nil {
			return err
		}
	}
}

// carryOut sends at once what saves nothing when everything before it is durable
// and sent; what remains goes to the committer. Most of an auction is of the
// first kind, and a change of goroutine costs more than its answers.
func (r *Runner) carryOut(c commit) error {
	if len(c.out.Save) == 0 && r.unfinished.Load() == 0 {
		r.finish(c)
		return nil
	}
	return r.push(c)
}

func (r *Runner) handle(role Role, e event) commit {
	now := r.cfg.Now()
	if e.call != nil {
		return commit{at: now, out: e.call(now, role), durable: e.durable}
	}
	return commit{at: now, in: e.message, traced: true, out: role.Receive(now, e.message)}
}

// push hands c to the committer, unless that reports a failure first.
func (r *Runner) push(c commit) error {
	r.unfinished.Add(1)
	select {
	case r.pending <- c:
		return nil
	case err := <-r.failed:
		r.reject(c)
		return err
	}
}

// reject drops a commit and says so to whoever waits for it: nothing of it was
// saved or sent.
func (r *Runner) reject(c commit) {
	r.unfinished.Add(-1)
	if c.traced {
		r.answerUnavailable(c.in)
	}
	if c.durable != nil {
		c.durable <- ErrUnavailable
	}
}

func (r *Runner) answerUnavailable(m protocol.Message) {
	if answer, ok := r.cfg.Unavailable(m); ok {
		r.cfg.Route(answer)
	}
}

// setAlarm makes the earlier of standing and next the alarm, and returns it.
func (r *Runner) setAlarm(t *time.Timer, standing, next time.Time) time.Time {
	if next.IsZero() || !standing.IsZero() && !next.Before(standing) {
		return standing
	}
	t.Reset(max(0, next.Sub(r.cfg.Now())))
	return next
}

// awaitDisk refuses what arrives until a write succeeds, and then lets the
// committer go on. It reports whether ctx was done first.
func (r *Runner) awaitDisk(ctx context.Context) (stopped bool) {
	defer func() { r.healed <- struct{}{} }()
	wait := probeFirst
	retry := time.NewTimer(wait)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return true
		case e := <-r.inbox:
			r.refuse(e)
		case <-retry.C:
			if r.probe() == nil {
				return false
			}
			wait = min(2*wait, probeMost)
			retry.Reset(wait)
		}
	}
}

func (r *Runner) probe() error {
	return r.cfg.Store.Append([]protocol.Record{{Table: probeTable, Key: "probe", Value: []byte("1")}})
}

// commitAll makes outputs durable, in order, and then sends them.
func (r *Runner) commitAll() {
	for c := range r.pending {
		batch := r.gather(c)
		if err := r.save(batch); err != nil {
			r.dropUntilHealed(batch, err)
			continue
		}
		for _, c := range batch {
			r.finish(c)
			r.unfinished.Add(-1)
		}
	}
}

// gather takes what else is waiting, so that it shares one append.
func (r *Runner) gather(c commit) []commit {
	batch := []commit{c}
	for len(batch) < pendingLength {
		select {
		case c, ok := <-r.pending:
			if !ok {
				return batch
			}
			batch = append(batch, c)
		default:
			return batch
		}
	}
	return batch
}

func (r *Runner) save(batch []commit) error {
	var records []protocol.Record
	for _, c := range batch {
		records = append(records, c.out.Save...)
	}
	if len(records) == 0 {
		return nil
	}
	return r.cfg.Store.Append(records)
}

func (r *Runner) finish(c commit) {
	if r.cfg.Trace != nil && c.traced {
		r.cfg.Trace(c.at, true, c.in)
	}
	for _, m := range c.out.Send {
		if r.cfg.Trace != nil {
			r.cfg.Trace(c.at, false, m)
		}
		r.cfg.Route(m)
	}
	if c.durable != nil {
		c.durable <- nil
	}
}

// dropUntilHealed rejects the batch and everything after it, until the owner has
// dropped the role that made them.
func (r *Runner) dropUntilHealed(batch []commit, err error) {
	for _, c := range batch {
		r.reject(c)
	}
	failed := r.failed
	for {
		select {
		case failed <- err:
			failed = nil
		case c, ok := <-r.pending:
			if !ok {
				return
			}
			r.reject(c)
		case <-r.healed:
			return
		}
	}
}

// refuse answers what arrives while the store cannot be written.
func (r *Runner) refuse(e event) {
	if e.call != nil {
		e.durable <- ErrUnavailable
		return
	}
	r.answerUnavailable(e.message)
}

package agents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"ramp/protocol"
)

// Bounds of a Runner.
const (
	inboxLength   = 1024        // messages waiting for the role; senders block beyond
	pendingLength = 1024        // outputs waiting for the disk; the role waits beyond
	probeFirst    = time.Second // between tries to write after a failed append
	probeMost     = 30 * time.Second
	probeTable    = "probe"
)

// ErrStopped is returned by calls to a Runner that has stopped.
var ErrStopped = errors.New("the agent has stopped")

// ErrUnavailable is returned while the store cannot be written.
var ErrUnavailable = errors.New("the store cannot be written; nothing was changed")

// ErrUncertain is returned by calls of which the store cannot tell whether they were
// written (protocol.Uncertain). Whoever loads the role next knows.
var ErrUncertain = errors.New("the store failed while this was written: it may have been done")

// Config is what a Runner needs.
type Config struct {
	// Load makes the role from its live tables; its Output is carried out first.
	Load func(t protocol.Tables, now time.Time) (Role, protocol.Output, error)
	// Store keeps what the role saves.
	Store Store
	// Route carries one message to its receivers: agents or local correspondents.
	// It must not block for long.
	Route func(m protocol.Message)
	// Prepare, if set, is told a message while what it rests on is being written, if
	// nothing else is to be done, so that work for sending it is done by then.
	// Nothing of it may leave: the write may fail.
	Prepare func(m protocol.Message)
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
// together share one append (group commit). What may leave when is decided by an
// Outbox, as in the simulator; the Runner only appends what it says, in a second
// goroutine, so that the role goes on meanwhile.
type Runner struct {
	cfg      Config
	inbox    chan event
	outbox   Outbox[commit]         // of the goroutine that owns the role
	appends  chan []protocol.Record // to the disk; one at a time
	appended chan error             // from it, one for each of appends
	done     chan struct{}
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
		cfg:      cfg,
		inbox:    make(chan event, inboxLength),
		appends:  make(chan []protocol.Record, 1),
		appended: make(chan error, 1),
		done:     make(chan struct{}),
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
	left := make(chan struct{})
	go func() { defer close(left); r.appendAll() }()
	defer func() { <-left }()
	defer close(r.appends)
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

// appendAll makes durable what it is given, and says how that went.
func (r *Runner) appendAll() {
	for records := range r.appends {
		r.appended <- r.cfg.Store.Append(records)
	}
}

// own is the goroutine that owns the role. It returns nil when ctx is done, and
// the error of the append that failed.
func (r *Runner) own(ctx context.Context, role Role, first protocol.Output) error {
	alarm := time.NewTimer(time.Hour)
	defer alarm.Stop()
	at := r.setAlarm(alarm, time.Time{}, first.WakeAt)
	r.carryOut(commit{at: r.cfg.Now(), out: first})
	for {
		inbox, rings := r.inbox, alarm.C
		if r.outbox.Len() >= pendingLength {
			inbox, rings = nil, nil
		}
		c := commit{}
		select {
		case <-ctx.Done():
			return r.flush()
		case err := <-r.appended:
			if err := r.settle(err); err != nil {
				return err
			}
			continue
		case <-rings:
			c.at, at = r.cfg.Now(), time.Time{}
			c.out = role.Wake(c.at)
		case e := <-inbox:
			c = r.handle(role, e)
		}
		at = r.setAlarm(alarm, at, c.out.WakeAt)
		r.carryOut(c)
	}
}

// carryOut sends what need not wait for the disk at once, and has the rest
// appended.
func (r *Runner) carryOut(c commit) {
	if r.outbox.Put(c, c.out.Save) {
		r.finish(c)
		return
	}
	r.append()
	if r.outbox.Len() == 1 { // under load there is always something better to do
		r.prepare(c)
	}
}

func (r *Runner) prepare(c commit) {
	if r.cfg.Prepare == nil {
		return
	}
	for _, m := range c.out.Send {
		r.cfg.Prepare(m)
	}
}

// append begins the next append, if something waits for one and none goes on.
func (r *Runner) append() {
	if records, ok := r.outbox.Write(); ok {
		r.appends <- records
	}
}

// settle ends an append: what rested on it leaves while the next one goes on. If
// it failed, nothing that waits ever leaves, and whoever waits for it is told.
func (r *Runner) settle(err error) error {
	if err != nil {
		why := ErrUnavailable
		if unsure := protocol.Uncertain(""); errors.As(err, &unsure) {
			why = ErrUncertain
		}
		for _, c := range r.outbox.Failed() {
			r.reject(c, why)
		}
		return err
	}
	leave := r.outbox.Written()
	r.append()
	for _, c := range leave {
		r.finish(c)
	}
	return nil
}

// flush carries out what the role has answered so far. A failure has been told
// to whom it matters.
func (r *Runner) flush() error {
	for r.outbox.Len() > 0 {
		_ = r.settle(<-r.appended)
	}
	return nil
}

func (r *Runner) handle(role Role, e event) commit {
	now := r.cfg.Now()
	if e.call != nil {
		return commit{at: now, out: e.call(now, role), durable: e.durable}
	}
	return commit{at: now, in: e.message, traced: true, out: role.Receive(now, e.message)}
}

// reject drops a commit and says why to whoever waits for it: nothing of it was sent,
// nor saved, unless that is uncertain.
func (r *Runner) reject(c commit, why error) {
	if c.traced {
		r.answerUnavailable(c.in)
	}
	if c.durable != nil {
		c.durable <- why
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

// awaitDisk refuses what arrives until a write succeeds. It reports whether ctx
// was done first.
func (r *Runner) awaitDisk(ctx context.Context) (stopped bool) {
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

// refuse answers what arrives while the store cannot be written.
func (r *Runner) refuse(e event) {
	if e.call != nil {
		e.durable <- ErrUnavailable
		return
	}
	r.answerUnavailable(e.message)
}

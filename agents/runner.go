package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
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
	// longestSleep is how long a pending alarm sleeps before the clock is read again. The
	// clock may have been set, or the machine suspended: timers count neither.
	longestSleep = time.Minute
)

// ErrStopped is returned by calls to a Runner that has stopped.
var ErrStopped = errors.New("the agent has stopped")

// ErrUnavailable is returned while the store cannot be written.
var ErrUnavailable = errors.New("the store cannot be written, so nothing was changed: see that its disk has room, or that its etcd answers, and try again")

// ErrUncertain is returned by calls that may or may not have been written
// (protocol.Uncertain). Loading the role again settles it.
var ErrUncertain = errors.New("the store failed while this was written: it may have been done")

// Config is what a Runner needs.
type Config struct {
	// Load restores the role from its tables; its Output is carried out first.
	Load func(t protocol.Tables, now time.Time) (Role, protocol.Output, error)
	// Store stores the role's records.
	Store Store
	// Route carries one message to its receivers: agents or local correspondents.
	// It must not block for long.
	Route func(m protocol.Message)
	// Prepare, if set, may do the work for sending a message while its records are being written
	// and nothing else is to be done. It must not send anything: the write may fail.
	Prepare func(m protocol.Message)
	// Unavailable makes the answer to a message that arrives while the store
	// cannot be written, if it wants one.
	Unavailable func(m protocol.Message) (protocol.Message, bool)
	// Trace, if set, gets every message that arrived or left, in order.
	Trace func(at time.Time, in bool, m protocol.Message)
	// Now is the clock.
	Now func() time.Time
	// Log gets failures to write.
	Log *slog.Logger
}

// Runner runs one role in one goroutine. The records of an Output are durable before this or any
// later Output sends anything. An Outbox decides when each may leave, as in the simulator; the
// Runner appends its records in a second goroutine, so that the role continues meanwhile.
type Runner struct {
	cfg      Config
	inbox    chan event
	outbox   Outbox[commit]         // of the goroutine that owns the role
	appends  chan []protocol.Record // to the disk; one at a time
	appended chan error             // from the disk, one for each append
	done     chan struct{}
	why      error // ErrStopped, and the disk's failure; fixed once done is closed
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
		return r.why
	}
}

// Do calls f in the goroutine that owns the role and returns when the Output of
// f is durable and on its way. If ctx is done before f's turn, f is not called: its caller
// has left, and may have given the same order again. f never runs once Do has returned.
func (r *Runner) Do(ctx context.Context, f func(now time.Time, r Role) protocol.Output) error {
	var turn sync.Mutex
	left := error(nil)
	e := event{durable: make(chan error, 1), call: func(now time.Time, role Role) protocol.Output {
		turn.Lock()
		defer turn.Unlock()
		if left = ctx.Err(); left != nil {
			return protocol.Output{}
		}
		return f(now, role)
	}}
	select {
	case r.inbox <- e:
	case <-r.done:
		return r.why
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-e.durable:
		return cmp.Or(err, left)
	case <-ctx.Done():
		turn.Lock() // f is over, or never begins
		defer turn.Unlock()
		return ctx.Err()
	case <-r.done:
	}
	select { // the Output may have become durable as the Runner stopped
	case err := <-e.durable:
		return cmp.Or(err, left)
	default:
		return r.why
	}
}

// Run loads the role and runs it until ctx is done; then it carries out the outputs
// so far and returns nil. It returns an error if the role cannot be loaded, or once the
// disk has failed (protocol.ErrDisk): the process must end then, and nothing more is sent.
func (r *Runner) Run(ctx context.Context) (err error) {
	defer func() {
		if r.why = ErrStopped; errors.Is(err, protocol.ErrDisk) {
			r.why = fmt.Errorf("%w: %w", ErrStopped, err)
		}
		close(r.done)
	}()
	left := make(chan struct{})
	go func() { defer close(left); r.appendAll() }()
	defer func() { <-left }()
	defer close(r.appends)
	for {
		role, first, err := r.cfg.Load(r.cfg.Store, r.cfg.Now())
		if err != nil {
			return fmt.Errorf("load the agent's state: %w", err)
		}
		err = r.own(ctx, role, first)
		if err != nil && !errors.Is(err, protocol.ErrDisk) {
			r.cfg.Log.Error("cannot write the store; refusing until it can be written", "err", err)
			err = r.awaitDisk(ctx)
		}
		if err != nil || ctx.Err() != nil {
			return err
		}
		r.cfg.Log.Info("the store can be written again")
	}
}

// appendAll makes each batch of records durable, and returns each result.
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
			if c.at = r.cfg.Now(); c.at.Before(at) {
				at = r.setAlarm(alarm, time.Time{}, at)
				continue
			}
			at = time.Time{}
			c.out = role.Wake(c.at)
		case e := <-inbox:
			c = r.handle(role, e)
		}
		at = r.setAlarm(alarm, at, c.out.WakeAt)
		r.carryOut(c)
	}
}

// carryOut sends hints, and the rest of an Output at once if it need not wait for the disk;
// otherwise it appends it.
func (r *Runner) carryOut(c commit) {
	r.say(c.at, c.out.Hint)
	if r.outbox.Put(c, c.out.Save) {
		r.finish(c)
		return
	}
	r.append()
	if r.outbox.Len() == 1 { // under load other work comes first
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

// append begins the next append, if an output waits and no append is under way.
func (r *Runner) append() {
	if records, ok := r.outbox.Write(); ok {
		r.appends <- records
	}
}

// settle ends an append: its outputs leave while the next append runs. If it failed,
// no waiting output ever leaves, and their callers get an error.
func (r *Runner) settle(err error) error {
	if err != nil {
		why := ErrUnavailable
		if unsure := protocol.Uncertain(""); errors.As(err, &unsure) {
			why = ErrUncertain
		}
		if errors.Is(err, protocol.ErrDisk) {
			why = fmt.Errorf("%w: %w", ErrUncertain, err)
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

// flush carries out the outputs so far. The callers have got any error.
func (r *Runner) flush() error {
	for r.outbox.Len() > 0 {
		if err := r.settle(<-r.appended); errors.Is(err, protocol.ErrDisk) {
			return err
		}
	}
	return nil
}

// Read returns what f reads of the innermost role, of type R, in the goroutine that owns it.
func Read[R, T any](ctx context.Context, r *Runner, f func(now time.Time, role R) T) (v T, err error) {
	err = r.Do(ctx, func(now time.Time, role Role) protocol.Output {
		v = f(now, role.(R))
		return protocol.Output{}
	})
	return v, err
}

func (r *Runner) handle(role Role, e event) commit {
	now := r.cfg.Now()
	if e.call != nil {
		return commit{at: now, out: call(now, role, e.call), durable: e.durable}
	}
	return commit{at: now, in: e.message, traced: true, out: role.Receive(now, e.message)}
}

func call(now time.Time, role Role, f func(now time.Time, r Role) protocol.Output) protocol.Output {
	if s, ok := role.(Shell); ok {
		return s.Through(now, func(inner any) protocol.Output { return call(now, inner.(Role), f) })
	}
	return f(now, role)
}

// reject drops a commit and returns the reason to its caller: nothing of it was sent,
// nor saved, unless that is uncertain.
func (r *Runner) reject(c commit, why error) {
	if c.traced {
		if answer, ok := r.cfg.Unavailable(c.in); ok {
			r.cfg.Route(answer)
		}
	}
	if c.durable != nil {
		c.durable <- why
	}
}

// setAlarm makes the earlier of standing and next the alarm, and returns it.
func (r *Runner) setAlarm(t *time.Timer, standing, next time.Time) time.Time {
	if next.IsZero() || !standing.IsZero() && !next.Before(standing) {
		return standing
	}
	t.Reset(min(longestSleep, max(0, next.Sub(r.cfg.Now()))))
	return next
}

// awaitDisk rejects messages and calls until a write succeeds, the disk fails or ctx is done.
func (r *Runner) awaitDisk(ctx context.Context) error {
	wait := probeFirst
	retry := time.NewTimer(wait)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-r.inbox:
			r.reject(commit{in: e.message, traced: e.call == nil, durable: e.durable}, ErrUnavailable)
		case <-retry.C:
			err := r.cfg.Store.Append([]protocol.Record{{Table: probeTable, Key: "probe", Value: []byte("1")}})
			if err == nil || errors.Is(err, protocol.ErrDisk) {
				return err
			}
			wait = min(2*wait, probeMost)
			retry.Reset(wait)
		}
	}
}

func (r *Runner) finish(c commit) {
	if r.cfg.Trace != nil && c.traced {
		r.cfg.Trace(c.at, true, c.in)
	}
	r.say(c.at, c.out.Send)
	if c.durable != nil {
		c.durable <- nil
	}
}

func (r *Runner) say(at time.Time, list []protocol.Message) {
	for _, m := range list {
		if r.cfg.Trace != nil {
			r.cfg.Trace(at, false, m)
		}
		r.cfg.Route(m)
	}
}

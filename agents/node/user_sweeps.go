package node

import (
	"context"
	"net/http"
	"path/filepath"
	"time"

	"ramp/agents"
	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/user"
	"ramp/agents/user/sweep/plan"
	"ramp/agents/user/sweeper"
	"ramp/protocol"
	"ramp/protocol/message"
)

func (u userAgent) sweepRoutes(mux *http.ServeMux) {
	control.Sweep.Answer(mux, u.sweep)
	control.Sweeps.Answer(mux, u.sweeps)
	control.SweepShow.Answer(mux, u.showSweep)
	control.SweepTasks.Answer(mux, func(ctx context.Context, q control.IDCall) ([]message.SweepTask, error) {
		return ofSweep(ctx, u, q.ID, func(_ time.Time, s *sweeper.Sweeps) ([]message.SweepTask, bool) { return s.Tasks(q.ID) })
	})
	control.SweepLedger.Answer(mux, func(ctx context.Context, q control.IDCall) ([]message.SweepEntry, error) {
		return ofSweep(ctx, u, q.ID, func(_ time.Time, s *sweeper.Sweeps) ([]message.SweepEntry, bool) { return s.Ledger(q.ID) })
	})
	control.SweepSet.Answer(mux, u.setSweep)
}

func (u userAgent) inSweeps(ctx context.Context, f func(now time.Time, s *sweeper.Sweeps) (protocol.Output, error)) error {
	var failed error
	err := u.runner.Do(ctx, func(now time.Time, r agents.Role) (out protocol.Output) {
		out, failed = f(now, r.(*user.Role).Sweeps())
		return out
	})
	if err != nil {
		return exit.WithCode(exit.Failed, err)
	}
	return exit.WithCode(exit.Usage, failed)
}

func ofSweep[T any](ctx context.Context, u userAgent, id string, f func(now time.Time, s *sweeper.Sweeps) (T, bool)) (v T, err error) {
	err = u.inSweeps(ctx, func(now time.Time, s *sweeper.Sweeps) (protocol.Output, error) {
		var found bool
		if v, found = f(now, s); !found {
			return protocol.Output{}, exit.Fail(exit.Usage, "'ramp user sweeps' lists them", "no sweep %q", id)
		}
		return protocol.Output{}, nil
	})
	return v, err
}

func (u userAgent) showSweep(ctx context.Context, q control.IDCall) (message.Sweep, error) {
	return ofSweep(ctx, u, q.ID, func(now time.Time, s *sweeper.Sweeps) (message.Sweep, bool) { return s.Show(now, q.ID) })
}

func (u userAgent) sweeps(ctx context.Context, _ control.None) ([]message.Sweep, error) {
	return ofSweep(ctx, u, "", func(now time.Time, s *sweeper.Sweeps) ([]message.Sweep, bool) { return s.List(now), true })
}

func (u userAgent) setSweep(ctx context.Context, q message.SweepSet) (v message.Sweep, err error) {
	o, err := ofSweep(ctx, u, q.ID, func(_ time.Time, s *sweeper.Sweeps) (message.SweepOrder, bool) { return s.Ordered(q.ID) })
	if err == nil && q.Verb == message.SweepRetry { // its inputs may have been repaired
		if _, err = sweeper.Complete(&o, sweepInput, Launchable); err != nil {
			err = exit.Fail(exit.Usage, "", "nothing was bought: %w", err)
		}
		q.Inputs = o.Inputs
	}
	if err == nil {
		err = u.inSweeps(ctx, func(now time.Time, s *sweeper.Sweeps) (protocol.Output, error) { return s.Set(now, q) })
	}
	if err != nil {
		return v, err
	}
	return u.showSweep(ctx, control.IDCall{ID: q.ID})
}

func sweepInput(spec string) ([]message.RunInput, error) { return inputsBelow(SourceOf(spec)) }

// sweep begins a sweep, or goes on with it; or asks the market what it would cost.
func (u userAgent) sweep(ctx context.Context, q control.SweepCall) (message.Sweep, error) {
	o := message.SweepOrder{ID: q.ID, Plan: q.Plan, Out: q.Out, Dir: q.Dir}
	p, err := sweeper.Complete(&o, sweepInput, Launchable)
	if err != nil {
		return message.Sweep{}, exit.WithCode(exit.Usage, err)
	}
	if q.ID == "" {
		if o.ID, err = ofSweep(ctx, u, o.ID, func(_ time.Time, s *sweeper.Sweeps) (string, bool) { return s.Joined(o), true }); err != nil {
			return message.Sweep{}, err
		}
	}
	answer := make(chan message.Sweep, 1)
	var dry func(message.Sweep)
	if q.DryRun {
		dry = func(v message.Sweep) { answer <- v }
	} else if err := u.checkResults(ctx, o, &p); err != nil {
		return message.Sweep{}, err
	}
	err = u.inSweeps(ctx, func(now time.Time, s *sweeper.Sweeps) (protocol.Output, error) { return s.Order(now, o, dry) })
	switch {
	case err != nil:
		return message.Sweep{}, err
	case dry == nil:
		return u.showSweep(ctx, control.IDCall{ID: o.ID})
	}
	select {
	case v := <-answer:
		return v, nil
	case <-ctx.Done():
		return message.Sweep{}, ctx.Err()
	}
}

// checkResults makes sure that a new sweep can write its results, and overwrites nothing.
func (u userAgent) checkResults(ctx context.Context, o message.SweepOrder, p *plan.Plan) error {
	if _, err := u.showSweep(ctx, control.IDCall{ID: o.ID}); err == nil {
		return nil // it goes on
	}
	for i := range p.Len() + 1 {
		name := plan.ResultsFile
		if i < p.Len() {
			name = p.Task(i).Directory
		}
		if file := filepath.Join(o.Out, name); config.IsThere(file) {
			return exit.Fail(exit.Usage, "", "%s exists already: choose another directory with --out", file)
		}
	}
	return CheckOut(o.Out)
}

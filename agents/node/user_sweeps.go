package node

import (
	"context"
	"net/http"
	"path/filepath"
	"time"

	"ramp/agents"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/user"
	"ramp/agents/user/sweeper"
	"ramp/protocol"
	"ramp/protocol/message"
)

func (u userAgent) sweepRoutes(mux *http.ServeMux) {
	control.Sweep.Answer(mux, u.sweep)
	control.Sweeps.Answer(mux, u.sweeps)
	control.SweepShow.Answer(mux, func(ctx context.Context, q control.IDCall) (message.Sweep, error) {
		return ofSweep(ctx, u, q.ID, func(now time.Time, s *sweeper.Sweeps) (message.Sweep, bool) { return s.Show(now, q.ID) })
	})
	control.SweepTasks.Answer(mux, func(ctx context.Context, q control.IDCall) ([]message.SweepTask, error) {
		return ofSweep(ctx, u, q.ID, func(_ time.Time, s *sweeper.Sweeps) ([]message.SweepTask, bool) { return s.Tasks(q.ID) })
	})
	control.SweepLedger.Answer(mux, func(ctx context.Context, q control.IDCall) ([]message.SweepEntry, error) {
		return ofSweep(ctx, u, q.ID, func(_ time.Time, s *sweeper.Sweeps) ([]message.SweepEntry, bool) { return s.Ledger(q.ID) })
	})
	control.SweepSet.Answer(mux, u.setSweep)
}

// inSweeps calls f in the role.
func (u userAgent) inSweeps(ctx context.Context, f func(now time.Time, s *sweeper.Sweeps) protocol.Output) error {
	err := u.runner.Do(ctx, func(now time.Time, r agents.Role) protocol.Output { return f(now, r.(*user.Role).Sweeps()) })
	if err != nil {
		return exit.WithCode(exit.Failed, err)
	}
	return nil
}

// ofSweep reads something of a sweep.
func ofSweep[T any](ctx context.Context, u userAgent, id string, f func(now time.Time, s *sweeper.Sweeps) (T, bool)) (v T, err error) {
	found := false
	err = u.inSweeps(ctx, func(now time.Time, s *sweeper.Sweeps) protocol.Output {
		v, found = f(now, s)
		return protocol.Output{}
	})
	if err == nil && !found {
		err = exit.Fail(exit.Usage, "'ramp user sweeps' lists them", "no sweep %q", id)
	}
	return v, err
}

func (u userAgent) sweeps(ctx context.Context, _ control.None) (list []message.Sweep, err error) {
	err = u.inSweeps(ctx, func(now time.Time, s *sweeper.Sweeps) protocol.Output {
		list = s.List(now)
		return protocol.Output{}
	})
	return list, err
}

func (u userAgent) setSweep(ctx context.Context, q message.SweepSet) (message.Sweep, error) {
	if _, err := ofSweep(ctx, u, q.ID, func(now time.Time, s *sweeper.Sweeps) (message.Sweep, bool) { return s.Show(now, q.ID) }); err != nil {
		return message.Sweep{}, err
	}
	var failed error
	err := u.inSweeps(ctx, func(now time.Time, s *sweeper.Sweeps) (out protocol.Output) {
		out, failed = s.Set(now, q)
		return out
	})
	if err == nil && failed != nil {
		err = exit.WithCode(exit.Usage, failed)
	}
	if err != nil {
		return message.Sweep{}, err
	}
	return ofSweep(ctx, u, q.ID, func(now time.Time, s *sweeper.Sweeps) (message.Sweep, bool) { return s.Show(now, q.ID) })
}

// sweep begins a sweep, or goes on with it.
func (u userAgent) sweep(ctx context.Context, q control.SweepCall) (message.Sweep, error) {
	o := message.SweepOrder{ID: q.ID, Plan: q.Plan, Out: q.Out, Inputs: map[string][]message.RunInput{}}
	p, err := sweeper.Parse(o)
	switch {
	case err != nil:
		return message.Sweep{}, exit.WithCode(exit.Usage, err)
	case !filepath.IsAbs(q.Out) || !filepath.IsAbs(q.Dir):
		return message.Sweep{}, exit.Fail(exit.Usage, "", "directories %q and %q: want absolute paths", q.Out, q.Dir)
	}
	for _, in := range p.AllInputs() {
		found, err := InputsOf([]string{sweeper.Below(q.Dir, in.Spec)})
		if err != nil {
			return message.Sweep{}, err
		}
		o.Inputs[in.Spec] = found
	}
	if o.ID == "" {
		o.ID = sweeper.ID(p.Name, o)
	}
	if q.DryRun {
		return u.forecast(ctx, o)
	}
	if err := CheckOut(q.Out); err != nil {
		return message.Sweep{}, err
	}
	var failed error
	err = u.inSweeps(ctx, func(now time.Time, s *sweeper.Sweeps) (out protocol.Output) {
		out, failed = s.Order(now, o, nil)
		return out
	})
	if err == nil && failed != nil {
		err = exit.WithCode(exit.Failed, failed)
	}
	if err != nil {
		return message.Sweep{}, err
	}
	return ofSweep(ctx, u, o.ID, func(now time.Time, s *sweeper.Sweeps) (message.Sweep, bool) { return s.Show(now, o.ID) })
}

// forecast asks the market what a sweep would cost.
func (u userAgent) forecast(ctx context.Context, o message.SweepOrder) (message.Sweep, error) {
	answer := make(chan message.Sweep, 1)
	var failed error
	err := u.inSweeps(ctx, func(now time.Time, s *sweeper.Sweeps) (out protocol.Output) {
		out, failed = s.Order(now, o, func(v message.Sweep) { answer <- v })
		return out
	})
	if err == nil && failed != nil {
		err = exit.WithCode(exit.Failed, failed)
	}
	if err != nil {
		return message.Sweep{}, err
	}
	select {
	case v := <-answer:
		return v, nil
	case <-ctx.Done():
		return message.Sweep{}, ctx.Err()
	}
}

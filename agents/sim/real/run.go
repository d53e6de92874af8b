package real

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"sync"
	"time"

	"ramp/agents/control"
	"ramp/agents/user"
)

// Run runs a soak. Cancelling ctx stops the faults early; the rest still runs. An error
// means that the soak could not run; the Result has the violations of the market.
func Run(ctx context.Context, cfg Config) (Result, error) {
	if err := errors.Join(cfg.Validate(), Available()); err != nil {
		return Result{}, err
	}
	s := &soak{result: Result{Seed: cfg.Seed, Resources: cfg.Resources, Users: cfg.Users}}
	stop := s.report(cfg, time.Now())
	defer stop()
	m, err := build(ctx, cfg)
	if err != nil {
		return s.result, err
	}
	s.enter("breaking", m, cfg.Length)
	s.result.Minutes = m.suffer(ctx).Minutes()
	s.result.Interrupted = ctx.Err() != nil
	s.enter("healing", m, HealTime)
	s.result.HealSeconds = m.heal(context.WithoutCancel(ctx)).Seconds()
	s.enter("comparing", m, 0)
	m.end()
	m.audit()
	if err := errors.Join(m.keepBooks(), m.close()); err != nil {
		return s.result, err
	}
	return s.conclude(m), nil
}

// soak owns the counts of a run so far.
type soak struct {
	result Result

	mu    sync.Mutex
	m     *market
	phase string
	until time.Time
}

func (s *soak) enter(phase string, m *market, length time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase, s.m, s.until = phase, m, time.Now().Add(length)
}

// report reports the status once a second, until it is stopped.
func (s *soak) report(cfg Config, begun time.Time) (stop func()) {
	s.phase, s.until = "building", begun
	if cfg.Tell == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTicker(time.Second)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				cfg.Tell(s.status())
			case <-ctx.Done():
				return
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

func (s *soak) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{Phase: s.phase, Left: max(0, time.Until(s.until))}
	if s.m == nil {
		return st
	}
	st.Ordered, st.Settled = s.m.notes.counts()
	st.Faults, st.Broken = s.m.counts()
	return st
}

func (m *market) counts() (map[Kind]int, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.faults), m.broken
}

// conclude compares the books. Unreadable books are a violation too.
func (s *soak) conclude(m *market) Result {
	found, err := Compare(m.cfg.Dir)
	if err != nil {
		m.fleet.wrong("the books cannot be read: %v", err)
	}
	r := s.result
	r.Purchases, r.Settled, r.Void, r.Failed = found.Purchases, found.Settled, found.Void, found.Failed
	r.Faults, _ = m.counts()
	r.Violations = append(m.fleet.violations(), found.Differences...)
	return r
}

// suffer lets users buy while faults happen, and returns how long that took.
func (m *market) suffer(ctx context.Context) time.Duration {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Length)
	defer cancel()
	var wg sync.WaitGroup
	for i, u := range m.fleet.users() {
		wg.Go(func() { m.shop(ctx, i, u) })
	}
	m.breakAll(ctx, Plan(m.cfg.Seed, len(m.fleet.agents), m.cfg.Length, m.cfg.Every))
	<-ctx.Done()
	wg.Wait()
	return time.Since(begun)
}

// heal waits until everything is decided, for at most HealTime, and then checks that the
// market sells again.
func (m *market) heal(ctx context.Context) time.Duration {
	begun := time.Now()
	if err := until(ctx, HealTime, time.Second, func() error { return m.quiet(ctx) }); err != nil {
		m.fleet.wrong("undecided after the faults have stopped: %v", err)
	}
	took := time.Since(begun)
	var wg sync.WaitGroup
	for i, u := range m.fleet.users() {
		wg.Go(func() { m.sellsAgain(ctx, i, u) })
	}
	wg.Wait()
	if err := until(ctx, meetTime, time.Second, func() error { return m.quiet(ctx) }); err != nil {
		m.fleet.wrong("undecided after the market has recovered: %v", err)
	}
	return took
}

// quiet returns an error that names something undecided, or nil.
func (m *market) quiet(ctx context.Context) error {
	for _, u := range m.fleet.users() {
		list, err := ask(ctx, u, control.Purchases, control.LastCall{})
		if err != nil {
			return err
		}
		for _, p := range list {
			if !user.Over(p.State) {
				return fmt.Errorf("purchase %s is %s", p.ID, p.State)
			}
		}
	}
	for _, a := range m.fleet.sites() {
		list, err := ask(ctx, a, control.Reservations, control.LastCall{})
		if err != nil {
			return err
		}
		for _, l := range list {
			if !ended(l.State) {
				return fmt.Errorf("reservation %s of %s is %s", l.ID, a.name, l.State)
			}
		}
	}
	return m.nothingHeld(ctx)
}

func (m *market) nothingHeld(ctx context.Context) error {
	list, err := ask(ctx, m.fleet.agents[0], control.Balances, control.StatementCall{})
	if err != nil {
		return err
	}
	for _, b := range list {
		if b.Held != 0 {
			return fmt.Errorf("%s of %s are held at the bank", b.Held, b.Name)
		}
	}
	return nil
}

// sellsAgain checks that a user can buy after the faults have stopped.
func (m *market) sellsAgain(ctx context.Context, i int, u *agent) {
	r := rand.New(rand.NewPCG(m.cfg.Seed, uint64(2000+i)))
	err := until(ctx, meetTime, time.Second, func() error {
		doc, err := request(r, 1)
		if err != nil {
			return err
		}
		p, err := m.buy(ctx, u, doc, patience)
		if err == nil && !p.Settled {
			err = fmt.Errorf("purchase %s is %s: %s", p.ID, p.State, p.Why)
		}
		return err
	})
	if err != nil {
		m.fleet.wrong("after the faults have stopped, %s cannot buy: %v", u.name, err)
	}
}

// audit runs the program's own audit.
func (m *market) audit() {
	out, err := exec.Command(m.cfg.Program, "bank", "audit", "--json", "--dir", m.fleet.agents[0].disk.dir).Output()
	var r struct {
		Sum map[string]string
		Bad []string
	}
	err = errors.Join(err, json.Unmarshal(out, &r))
	if err != nil || len(r.Bad) > 0 || r.Sum[currency] != "0" {
		m.fleet.wrong("ramp bank audit: %v, sum %v, bad %q", err, r.Sum, r.Bad)
	}
}

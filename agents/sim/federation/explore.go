package federation

import (
	"context"
	"sync"

	"ramp/agents/sim"
)

// Sum adds up the results of many federations.
type Sum struct {
	Seeds      int      `json:"seeds"` // completed
	Begun      int      `json:"begun"`
	Suspended  int      `json:"suspended"` // how often
	Crashes    int64    `json:"crashes"`
	Failed     uint64   `json:"failed,omitempty"` // the least seed with a violation
	Violations []string `json:"violations,omitempty"`
}

// Hostile is the federation of a seed: faults, and of every second seed an adversary.
func Hostile(seed uint64, faults sim.Faults) Config {
	cfg := Random(seed, 4, 40, faults, 6)
	if seed%2 == 1 {
		cfg.Liars = []string{Kinds()[seed/2%uint64(len(Kinds()))]}
	}
	return cfg
}

// Explore runs federations, seed by seed and so many at a time, until one breaks an
// invariant or ctx is cancelled. told is called after each, one call at a time.
func Explore(ctx context.Context, from, to uint64, jobs int, faults sim.Faults, told func(Sum)) (sum Sum, err error) {
	var wg sync.WaitGroup
	var lock sync.Mutex
	next := from
	take := func() (uint64, bool) {
		lock.Lock()
		defer lock.Unlock()
		if next > to || next < from || len(sum.Violations) > 0 || ctx.Err() != nil {
			return 0, false
		}
		next++
		return next - 1, true
	}
	for range jobs {
		cast, e := NewCast() // a cast belongs to one goroutine
		if e != nil {
			err = e
			break
		}
		wg.Go(func() {
			for seed, ok := take(); ok; seed, ok = take() {
				w := Open(cast, Hostile(seed, faults))
				w.Live(func() bool { return ctx.Err() != nil || len(w.Violations) > 0 })
				lock.Lock()
				sum.add(seed, w)
				told(sum)
				lock.Unlock()
			}
		})
	}
	wg.Wait()
	return sum, err
}

func (s *Sum) add(seed uint64, w *World) {
	s.Seeds++
	s.Crashes += w.Stats().Crashes
	for _, f := range w.Fates() {
		s.Begun, s.Suspended = s.Begun+f.Begun, s.Suspended+f.Paused
	}
	if len(w.Violations) > 0 && (len(s.Violations) == 0 || seed < s.Failed) {
		s.Failed, s.Violations = seed, w.Violations
	}
}

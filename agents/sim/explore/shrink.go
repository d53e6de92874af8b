package explore

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"ramp/agents/sim"
	"ramp/agents/sim/market"
)

// maxTries bounds how many markets a Shrink lives through.
const maxTries = 100

// Shrink looks for the smallest market that breaks the same invariant first as
// cfg does: with less time, fewer agents, smaller orders and fewer kinds of
// faults. told, if set, hears of each that is smaller. It returns the smallest
// found so far when ctx is done.
func Shrink(ctx context.Context, cast *market.Cast, cfg market.Config, invariant string, told func(market.Config)) (market.Config, market.Result) {
	s := shrinker{ctx: ctx, cast: cast, invariant: invariant, told: told, least: cfg}
	s.breaks(cfg)
	for s.round() {
	}
	return s.least, s.result
}

type shrinker struct {
	ctx       context.Context
	cast      *market.Cast
	invariant string
	told      func(market.Config)
	least     market.Config
	result    market.Result
	tries     int
}

// breaks reports whether a market breaks the invariant, and keeps what it came to.
func (s *shrinker) breaks(cfg market.Config) bool {
	if s.ctx.Err() != nil || s.tries >= maxTries || cfg.Validate() != nil {
		return false
	}
	s.tries++
	r := Run(s.ctx, s.cast, cfg, nil)
	if len(r.Violations) == 0 || r.Violations[0].Invariant != s.invariant {
		return false
	}
	s.least, s.result = cfg, r
	return true
}

// round looks for a way to make the least market smaller; it reports whether it
// found one.
func (s *shrinker) round() bool {
	for _, try := range s.ways() {
		if s.breaks(try) {
			if s.told != nil {
				s.told(s.least)
			}
			return true
		}
	}
	return false
}

// ways are the markets that are a step smaller than the least.
func (s *shrinker) ways() []market.Config {
	var list []market.Config
	way := func(change func(c *market.Config)) {
		c := s.least
		change(&c)
		if !reflect.DeepEqual(c, s.least) {
			list = append(list, c)
		}
	}
	if n := len(s.result.Violations); n > 0 {
		way(func(c *market.Config) {
			c.Length = min(c.Length, s.result.Violations[0].At.Sub(market.Dawn).Truncate(time.Second)+time.Second)
		})
	}
	for _, share := range []int{4, 2} {
		way(func(c *market.Config) { c.Length -= c.Length / time.Duration(share) })
		way(func(c *market.Config) { c.Resources = max(1, c.Resources-max(1, c.Resources/share)) })
		way(func(c *market.Config) { c.Users = max(1, c.Users-max(1, c.Users/share)) })
		way(func(c *market.Config) { c.Units = max(1, c.Units-max(1, c.Units/share)) })
	}
	for _, kind := range slices.Sorted(maps.Keys(s.least.Adversaries)) {
		way(func(c *market.Config) {
			c.Adversaries = maps.Clone(c.Adversaries)
			delete(c.Adversaries, kind)
		})
	}
	for _, f := range without(s.least.Faults) {
		way(func(c *market.Config) { c.Faults = f })
	}
	return list
}

// without are faults with one kind of them left away.
func without(f sim.Faults) []sim.Faults {
	calm := reflect.ValueOf(sim.Levels()["none"])
	var list []sim.Faults
	for i := range calm.NumField() {
		g := f
		v := reflect.ValueOf(&g).Elem().Field(i)
		if reflect.DeepEqual(v.Interface(), calm.Field(i).Interface()) {
			continue
		}
		v.Set(calm.Field(i))
		list = append(list, g)
	}
	return list
}

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

// maxTries limits the runs of a Shrink.
const maxTries = 100

// Shrink searches for the smallest market that breaks the same invariant first as cfg: with less
// time, fewer agents, smaller orders and fewer kinds of faults. If told is set, it is called with
// each smaller market. When ctx is cancelled, Shrink returns the smallest one so far.
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

// breaks reports whether a market breaks the invariant, and keeps its result.
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

// round tries to make the smallest market smaller, and reports whether it succeeded.
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

// ways are the markets that are one step smaller than the smallest so far.
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
	way(func(c *market.Config) { c.Exchanges = 0 })
	way(func(c *market.Config) { c.Sweeps = 0 })
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

// without returns the faults with one kind removed, for each kind.
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

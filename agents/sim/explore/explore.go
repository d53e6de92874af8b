package explore

import (
	"context"
	"sync"
	"time"

	"ramp/agents/sim"
	"ramp/agents/sim/adversary"
	"ramp/agents/sim/market"
)

// Run lives through one market. A done ctx ends it early, which its result says.
// told, if set, hears now and then how much of its time has passed.
func Run(ctx context.Context, cast *market.Cast, cfg market.Config, told func(passed, whole time.Duration), more ...sim.Observer) market.Result {
	m, checks := market.Open(cast, cfg, more...)
	return m.Live(checks, func(passed, whole time.Duration) bool {
		if told != nil {
			told(passed, whole)
		}
		return ctx.Err() != nil
	})
}

// Plan is which markets to live through: the same one under each of some seeds.
type Plan struct {
	Market   market.Config
	From, To uint64 // seeds, both included
	Jobs     int    // side by side, 1..
}

// Sum is what many markets came to.
type Sum struct {
	Seeds    int    `json:"seeds"` // that were lived through to their end
	Auctions int    `json:"auctions"`
	Bought   int    `json:"bought"`
	Crashes  int64  `json:"crashes"`
	Messages int64  `json:"messages"`
	Complete bool   `json:"complete"`         // all of them
	Failed   uint64 `json:"failed,omitempty"` // the least seed with a violation among those lived through
	// Result is of the failed seed.
	Result *market.Result `json:"result,omitempty"`
}

func (s *Sum) add(r market.Result) {
	s.Seeds++
	s.Auctions += r.Auctions
	s.Bought += r.Bought
	s.Crashes += r.Crashes
	s.Messages += r.Messages
	if len(r.Violations) > 0 && (s.Result == nil || r.Seed < s.Failed) {
		s.Failed, s.Result = r.Seed, &r
	}
}

// Explore lives through the markets of a plan until one breaks, or ctx is done.
// told, if set, hears after each; one call at a time.
func Explore(ctx context.Context, p Plan, told func(Sum)) (Sum, error) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		wg   sync.WaitGroup
		lock sync.Mutex
		sum  Sum
		err  error
	)
	seeds := make(chan uint64)
	for range p.Jobs {
		cast, e := adversary.NewCast() // a cast belongs to one goroutine
		if e != nil {
			err = e
			break
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			for seed := range seeds {
				cfg := p.Market
				cfg.Seed = seed
				r := Run(inner, cast, cfg, nil)
				lock.Lock()
				if r.Complete || len(r.Violations) > 0 {
					sum.add(r)
				}
				if sum.Result != nil {
					cancel()
				}
				if told != nil {
					told(sum)
				}
				lock.Unlock()
			}
		}()
	}
	if err == nil {
		hand(inner, seeds, p)
	}
	close(seeds)
	wg.Wait()
	sum.Complete = err == nil && sum.Result == nil && uint64(sum.Seeds) == p.To-p.From+1
	return sum, err
}

// hand gives out the seeds in order.
func hand(ctx context.Context, seeds chan<- uint64, p Plan) {
	for seed := p.From; seed <= p.To && seed >= p.From; seed++ {
		select {
		case seeds <- seed:
		case <-ctx.Done():
			return
		}
	}
}

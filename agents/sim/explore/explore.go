package explore

import (
	"context"
	"sync"
	"time"

	"ramp/agents/sim"
	"ramp/agents/sim/adversary"
	"ramp/agents/sim/market"
)

// Run runs one market. Cancelling ctx ends it early; the result is then not Complete. If
// told is set, it is called from time to time with the share of the time that has passed.
func Run(ctx context.Context, cast *market.Cast, cfg market.Config, told func(passed, whole time.Duration), more ...sim.Observer) market.Result {
	m, checks := market.Open(cast, cfg, more...)
	return m.Live(checks, func(passed, whole time.Duration) bool {
		if told != nil {
			told(passed, whole)
		}
		return ctx.Err() != nil
	})
}

// Plan is the markets to run: the same one with each seed of a range.
type Plan struct {
	Market   market.Config
	From, To uint64 // seeds, both included
	Jobs     int    // in parallel, 1..
}

// Sum adds up the results of many markets.
type Sum struct {
	Seeds    int    `json:"seeds"` // completed runs
	Auctions int    `json:"auctions"`
	Bought   int    `json:"bought"`
	Crashes  int64  `json:"crashes"`
	Messages int64  `json:"messages"`
	Complete bool   `json:"complete"`         // all seeds were run
	Failed   uint64 `json:"failed,omitempty"` // the least seed with a violation so far
	// Result is that of the failed seed.
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

// Explore runs the markets of a plan until one breaks an invariant, or ctx is cancelled.
// If told is set, it is called after each run, one call at a time.
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
		wg.Go(func() {
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
		})
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

package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ramp/agents/sim/market"
	"ramp/protocol/message"
)

// Lab owns the settings, logs and credentials of experiments.
type Lab struct {
	Settings Settings
	Seed     uint64
	Repeat   int // repetitions, in the experiment's own unit; 0: as in the source
	Jobs     int // parallel runs
	Logs     *Logs
	Crowd    int    // most resources of scale with Buyers at once; 0: scale with one user
	Buyers   int    // 1..MaxBuyers
	Program  string // path of ramp, for runs on real processes; empty: skip them
	// Progress gets the number of completed runs; any of them may call it.
	Progress func(what string, done, of int)

	cast *market.Cast
	past map[string]*Result // results of experiments that others use
}

// GCPercent is the recommended GOGC for experiments, which produce much short-lived garbage
// in little memory.
const GCPercent = 400

// Bounds of a lab.
const (
	MaxRepeat = 10_000
	MaxJobs   = 256
)

// NewLab creates a lab with logs.
func NewLab(logs *Logs) (*Lab, error) {
	cast, err := market.NewCast()
	if err != nil {
		return nil, err
	}
	return &Lab{Settings: Default(), Seed: 1, Jobs: 1, Logs: logs, Progress: func(string, int, int) {}, cast: cast, past: map[string]*Result{}}, nil
}

// Experiment is an experiment that a Lab can run.
type Experiment struct {
	Name   string
	Source string // the text, and its place there
	Shows  string
	run    func(ctx context.Context, l *Lab, r *Result) error
}

// Experiments are all experiments, in order.
func Experiments() []Experiment {
	return []Experiment{
		{"rounds", "002 table 4, figure 11a", "price and duration for 1..10 rounds, fixed and with early close", rounds},
		{"workloads", "002 table 3, figures 8a, 9a", "round and winning prices of the 13 jobs, winners, failures", workloads},
		{"pricing", "002 figure 10", "mean offer of each resource beside start and minimum, with both price rules", pricingRun},
		{"attractiveness", "002 figures 8b, 9b", "decrements and offers of the resources over time", attractiveness},
		{"units", "002 figure 11b", "times of auctions of 1..25 units", unitsRun},
		{"users", "002 figures 12a, 12b", "response and round times of 1..30 users at once", usersRun},
		{"network", "002 figures 13a, 13b", "the same on real processes across a network of 15 hosts, beside simulated ones", network},
		{"nat", "-", "newcomers that join, buy and run programs across every pair of kinds of NAT", natRun},
		{"forecast", "002 section 6.2.2", "how often bounds on waits hold, for each log", forecasts},
		{"honesty", "-", "what dishonest sellers and users gain, beside posted prices", honesty},
		{"dbc", "004 table 1, figures 4-12", "jobs done, time and money by deadline and budget, for each strategy", dbcRun},
		{"sweep", "004 table 1", "the same by live agents with contracts and a bank, also under faults and local load", sweepRun},
		{"price-rules", "docs/decisions/0029", "list prices and 002's rule beside posted prices and a Vickrey award; who gains by deviating", priceRules},
		{"english", "003 figures 4 and 5", "auctions of jobs under absolute priorities: processing times and better bids by the length of the auction", englishRun},
		{"scale", "-", "messages, bytes, time and price from 20 resources up", scale},
	}
}

// Find returns an experiment by name; the error lists the known ones.
func Find(name string) (Experiment, error) {
	all := Experiments()
	if i := slices.IndexFunc(all, func(e Experiment) bool { return e.Name == name }); i >= 0 {
		return all[i], nil
	}
	names := each(all, func(e Experiment) string { return e.Name })
	return Experiment{}, fmt.Errorf("unknown experiment %q: want one of %s, or all", name, strings.Join(names, ", "))
}

// Run runs an experiment. If it is interrupted, the Result has the completed runs, and the
// error is that of the context.
func (l *Lab) Run(ctx context.Context, e Experiment) (*Result, error) {
	if r := l.past[e.Name]; r != nil {
		return r, nil
	}
	r := &Result{Experiment: e, Seed: l.Seed, Settings: l.Settings, Told: l.Logs.Told}
	err := e.run(ctx, l, r)
	if err == nil {
		r.Complete = true
		l.past[e.Name] = r
	}
	return r, err
}

func (l *Lab) repeat(usual int) int {
	if l.Repeat > 0 {
		return l.Repeat
	}
	return usual
}

// issue creates credentials before parallel runs start.
func (l *Lab) issue(users int, sellers []seller) {
	l.cast.Credential(market.BankName)
	for i := range users {
		l.cast.Credential(market.UserName(i + 1))
	}
	for _, s := range sellers {
		l.cast.Credential(s.name)
	}
}

// twenty are the sellers of the source.
func (l *Lab) twenty() []seller {
	return each(l.Logs.machines, func(m machine) seller { return seller{name: m.Name, on: m, band: m.band()} })
}

func (l *Lab) seed(i int) uint64 { return l.Seed*1_000_003 + uint64(i) }

// gather makes n independent runs, Lab.Jobs of them in parallel, and returns the completed
// ones, in order.
func gather[T any](ctx context.Context, l *Lab, what string, n int, f func(i int) T) ([]T, error) {
	out, done := make([]T, n), make([]bool, n)
	var next, finished atomic.Int64
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range min(l.Jobs, n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				out[i], done[i] = f(i), true
				mu.Lock()
				l.Progress(what, int(finished.Add(1)), n)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	kept := out[:0]
	for i := range out {
		if done[i] {
			kept = append(kept, out[i])
		}
	}
	if len(kept) < n {
		return kept, errors.Join(ctx.Err())
	}
	return kept, nil
}

// fixed are rounds of a fixed length, as the source's.
func (l *Lab) fixed(rounds int) message.Options {
	return message.Options{Rounds: rounds, RoundLimit: l.Settings.RoundLimit, NoEarlyClose: true}
}

// early are rounds that end when all have answered.
func early(rounds int, limit time.Duration) message.Options {
	return message.Options{Rounds: rounds, RoundLimit: limit}
}

package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"ramp/agents/sim/real"
	"ramp/agents/sim/wan"
	"ramp/agents/workload"
	"ramp/protocol/message"
)

// netPatience limits one purchase on real processes.
const netPatience = 2 * time.Minute

// add records a purchase and its response times.
func (x *netRun) add(p message.Purchase, responses []time.Duration) {
	x.responses = append(x.responses, each(responses, time.Duration.Seconds)...)
	x.rounds = append(x.rounds, roundSeconds(p)...)
	x.totals = append(x.totals, p.ElapsedMS/1000)
	if p.Settled {
		x.settled++
	}
}

// netReal makes the runs on real processes. If it cannot, the report says why; that is not an
// error.
func (l *Lab) netReal(ctx context.Context, r *Result, counts []int, repeats int) ([]netRun, error) {
	if err := l.realAvailable(); err != nil {
		r.NotRun = fmt.Sprintf("the part on real processes: %v", err)
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "ramp-net-")
	if err != nil {
		return nil, err
	}
	live, err := l.netTrial(ctx, r, dir, counts, repeats)
	return live, errors.Join(err, os.RemoveAll(dir))
}

// realAvailable returns why no processes can run on a network, or nil.
func (l *Lab) realAvailable() error {
	if l.Program == "" {
		return errors.New("no program given")
	}
	return wan.Available()
}

func (l *Lab) netTrial(ctx context.Context, r *Result, dir string, counts []int, repeats int) ([]netRun, error) {
	sites, err := l.trialSites(dir)
	if err != nil {
		return nil, err
	}
	most, total := counts[len(counts)-1], repeats*len(counts)
	l.Progress("real processes meet", 0, total)
	cfg := l.netMarket(sites)
	cfg.Dir = dir
	t, err := real.OpenTrial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	r.note("All %d processes shared the %d processors of one machine, which also ran other work.", 1+len(sites)+most, runtime.NumCPU())
	live, err := l.netRuns(ctx, t, counts, repeats)
	return live, errors.Join(err, t.Wrong(), t.Close())
}

// netRuns makes all runs on one market. First every user buys once, to open connections.
func (l *Lab) netRuns(ctx context.Context, t *real.Trial, counts []int, repeats int) ([]netRun, error) {
	if _, err := netBuy(ctx, t, "warm", counts[len(counts)-1]); err != nil {
		return nil, err
	}
	var live []netRun
	for i := range repeats {
		for _, n := range counts {
			x, err := netBuy(ctx, t, fmt.Sprintf("net-%d-%d", i+1, n), n)
			if err != nil {
				return live, err
			}
			x.repeat = i
			live = append(live, x)
			l.Progress("real processes", len(live), repeats*len(counts))
		}
	}
	return live, nil
}

// netBuy lets users buy at the same time.
func netBuy(ctx context.Context, t *real.Trial, name string, users int) (netRun, error) {
	ctx, cancel := context.WithTimeout(ctx, netPatience)
	defer cancel()
	document := document(t.Now(), netJob())
	bought, errs := make([]real.Bought, users), make([]error, users)
	var wg sync.WaitGroup
	for u := range users {
		wg.Go(func() {
			bought[u], errs[u] = t.Buy(ctx, u, fmt.Sprintf("%s-%d", name, u+1), document, early(workRounds, longRound))
		})
	}
	wg.Wait()
	x := netRun{users: users}
	for _, b := range bought {
		x.add(b.Purchase, b.Responses)
	}
	return x, errors.Join(errs...)
}

// trialSites are the first resources, with their logs in files of the directory.
func (l *Lab) trialSites(dir string) ([]real.TrialSite, error) {
	written := map[string]bool{}
	var list []real.TrialSite
	for _, m := range l.Logs.machines[:netSites] {
		log, name, err := l.Logs.of(m)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(dir, name+".swf")
		if !written[path] {
			if err := writeLog(path, log); err != nil {
				return nil, err
			}
			written[path] = true
		}
		list = append(list, real.TrialSite{Log: path, Base: m.base, Start: fmt.Sprint(m.Start), Min: fmt.Sprint(m.Min), Pricing: string(m.band().Rule)})
	}
	return list, nil
}

// of returns the log of a resource and its name: its machine's real one, or its own synthetic one.
func (l *Logs) of(m machine) (*workload.Log, string, error) {
	for _, real := range l.real {
		if strings.Contains(strings.ToLower(real.name), strings.ToLower(m.Machine)) {
			return real.log, m.Machine, nil
		}
	}
	log, err := synthetic(m.Name)
	return log, m.Name, err
}

func writeLog(path string, log *workload.Log) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(workload.WriteSWF(f, log), f.Close())
}

package forecast

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"ramp/agents/workload"
)

// Ask is a request that a site gets: cores over [Start, Start+Wall), asked for at
// second At of the log.
type Ask struct {
	At    int64
	Start int64 // not before At
	Wall  int64 // seconds, 1..workload.MaxAhead
	Cores int
}

// Sales is what became of the asks.
type Sales struct {
	Asked       int     `json:"asked"`
	Sold        int     `json:"sold"`
	Broken      int     `json:"broken"`       // sold, but the cores were not free
	CoreSeconds int64   `json:"core_seconds"` // of the slots that were sold and not broken
	MeanQueue   float64 `json:"mean_queue"`   // jobs of the log that waited, mean over the asks
}

// BrokenRate is the share of the sold slots that were broken, 0 if none was sold.
func (s Sales) BrokenRate() float64 {
	if s.Sold == 0 {
		return 0
	}
	return float64(s.Broken) / float64(s.Sold)
}

// MaxAsks bounds the asks of one run.
const MaxAsks = 1 << 16

// Sell plays a log as a site that gets the asks, which come in order of time. The
// site sells a slot when its view says so, and the machine then keeps the cores from
// all that has not started. A promise is broken when the slot begins and jobs which
// already run, for as long as the log says they do, leave too few cores; of several
// slots those sold last go first, and what is broken is given back. Jobs beyond their
// requested time are ended for a slot, as a batch system does. So the wall-time view
// breaks none, and what the other sells beyond it can be weighed against what it
// breaks. The log's machine starts empty; its jobs start as EASY back-filling around
// the slots lets them.
func Sell(l *workload.Log, asks []Ask, view View) (Sales, error) {
	if err := valid(asks); err != nil {
		return Sales{}, err
	}
	s := newSite(l, view)
	for i, a := range asks {
		s.serve(a.At)
		s.answer(i, a)
	}
	s.serve(workload.Forever)
	if len(asks) > 0 {
		s.sales.MeanQueue = float64(s.queued) / float64(len(asks))
	}
	return s.sales, nil
}

func valid(asks []Ask) error {
	if len(asks) > MaxAsks {
		return fmt.Errorf("forecast: %d asks, at most %d", len(asks), MaxAsks)
	}
	for i, a := range asks {
		if a.Start < a.At || a.Wall < 1 || a.Wall > workload.MaxAhead || a.Cores < 1 {
			return fmt.Errorf("forecast: ask %d: %+v: want a start not before the ask, a wall time of 1..%d s and at least one core", i, a, workload.MaxAhead)
		}
	}
	if !slices.IsSortedFunc(asks, func(a, b Ask) int { return cmp.Compare(a.At, b.At) }) {
		return errors.New("forecast: the asks are not in order of time")
	}
	return nil
}

// View decides, from what a batch system shows, whether a site sells a slot:
// WallTime or Sharpened.
type View interface {
	sells(s workload.Snapshot, o *observer, a Ask) bool
}

// WallTime believes the requested times.
type WallTime struct{}

func (WallTime) sells(s workload.Snapshot, _ *observer, a Ask) bool { return free(s, a) }

// Sharpened sells what WallTime sells, and beside it slots that are free if all
// jobs run as long as the bound at the Level says and that the jobs which run now
// break with a probability of at most Risk.
type Sharpened struct {
	Level Level
	Risk  float64 // 0..1
}

// UsualView sharpens with the median, since what it plays forward is many jobs
// together, and takes a risk of one in twenty for the slot that is just possible;
// few are, so that of all slots much fewer are broken.
func UsualView() Sharpened { return Sharpened{Level{Quantile: .5, Confidence: .95}, .05} }

func (v Sharpened) sells(s workload.Snapshot, o *observer, a Ask) bool {
	if free(s, a) {
		return true
	}
	return o.risk(s, a, v.Level.Confidence) <= v.Risk && free(o.sharpen(s, v.Level), a)
}

func free(s workload.Snapshot, a Ask) bool {
	return s.Project().Free(a.Start, a.Start+a.Wall) >= a.Cores
}

package resource

import (
	"encoding/binary"
	"slices"
	"time"

	"ramp/agents/resource/forecast"
	"ramp/protocol"
	"ramp/protocol/message"
)

// TableForecast has one row with the learnt waits and run times.
const TableForecast = "seller-forecast"

const forecastKey = "learnt"

// Bounds of learning.
const (
	// LearntEvery is the least time between two saves. A crash forgets the observations
	// since the last save, and learns none twice.
	LearntEvery = 10 * time.Minute
	// maxGap is the longest time between two states after which the end of a vanished
	// job is known well enough to learn from.
	maxGap = 5 * time.Minute
	// maxSeen bounds the jobs that are followed; the learner ignores more.
	maxSeen = 1 << 17
)

// confidence of the reported waits.
const confidence = .95

// learner learns how long a site's jobs wait and run, by comparing the states of the batch system:
// a waiting job that now runs has waited, and a running job that vanished has run.
type learner struct {
	learnt *forecast.Forecast
	seen   map[string]seenJob
	looked time.Time // time of the last state
	since  time.Time // jobs that began earlier are learnt already
	saved  time.Time
	fresh  bool // something was learnt since then
}

type seenJob struct {
	cores   int
	bound   forecast.Bound // of its wait, at its submission
	runs    bool
	started time.Time
	wall    time.Duration
}

// newLearner starts with a copy of the given forecast, or with nothing. A Role that is
// loaded again thus starts like the first one.
func newLearner(given *forecast.Forecast) learner {
	l := learner{learnt: &forecast.Forecast{}, seen: map[string]seenJob{}}
	if given != nil {
		learnt, err := forecast.Decode(given.Encode())
		if err != nil {
			panic("resource: a forecast cannot be copied: " + err.Error()) // Decode reads what Encode writes
		}
		l.learnt = learnt
	}
	return l
}

// read restores the forecast. An unreadable one is learnt anew, since no promise depends on it.
func (l *learner) read(_ string, value []byte) error {
	if len(value) < 8 {
		return nil
	}
	f, err := forecast.Decode(value[8:])
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	l.learnt = f
	l.since = time.Unix(int64(binary.BigEndian.Uint64(value)), 0)
	return nil
}

// save returns the forecast as a record, if a save is due.
func (l *learner) save(now time.Time) []protocol.Record {
	if !l.fresh || now.Sub(l.saved) < LearntEvery {
		return nil
	}
	l.fresh, l.saved = false, now
	value := binary.BigEndian.AppendUint64(nil, uint64(max(l.looked.Unix(), 0)))
	return []protocol.Record{{Table: TableForecast, Key: forecastKey, Value: append(value, l.learnt.Encode()...)}}
}

func (l *learner) observe(q message.QueueChanged) {
	if q.At.Before(l.looked) {
		return
	}
	shown := make(map[string]bool, len(q.Running)+len(q.Queued))
	for _, j := range q.Queued {
		if j.ID != "" {
			shown[j.ID] = true
			l.waits(j)
		}
	}
	for _, j := range q.Running {
		if j.ID != "" {
			shown[j.ID] = true
			l.runs(j)
		}
	}
	l.gone(q.At, shown)
	l.looked = q.At
}

// waits notes a waiting job, with a bound of its wait if it was submitted since the last
// state; an older one may have waited for long.
func (l *learner) waits(j message.QueuedJob) {
	if _, ok := l.seen[j.ID]; ok || len(l.seen) >= maxSeen {
		return
	}
	s := seenJob{cores: j.Cores, wall: j.Wall}
	if !l.looked.IsZero() && !j.Submitted.Before(l.looked) {
		s.bound = l.learnt.WaitBound(j.Cores, forecast.Usual())
	}
	l.seen[j.ID] = s
}

// runs learns the wait of a job that was not running in the last state. After a
// restart it skips jobs that were learnt before.
func (l *learner) runs(j message.RunningJob) {
	s, known := l.seen[j.ID]
	if s.runs || !known && len(l.seen) >= maxSeen {
		return
	}
	wait := j.Started.Sub(j.Submitted)
	if !j.Submitted.IsZero() && wait >= 0 && j.Started.After(l.since) {
		l.learnt.Started(j.Cores, seconds(wait), s.bound)
		l.fresh = true
	}
	l.seen[j.ID] = seenJob{cores: j.Cores, runs: true, started: j.Started, wall: j.Wall}
}

// gone learns the run times of vanished jobs. A job ended at this state at the latest,
// so the time until now is on the safe side if the last state is recent.
func (l *learner) gone(now time.Time, shown map[string]bool) {
	var over []string
	for id := range l.seen { // in any order: sorted below
		if !shown[id] {
			over = append(over, id)
		}
	}
	slices.Sort(over)
	for _, id := range over {
		s := l.seen[id]
		delete(l.seen, id)
		if s.runs && !s.started.IsZero() && now.Sub(l.looked) <= maxGap {
			l.learnt.Ended(s.cores, seconds(s.wall), seconds(now.Sub(s.started)))
			l.fresh = true
		}
	}
}

func seconds(d time.Duration) int64 { return int64((max(d, 0) + time.Second - 1) / time.Second) }

// odds is the least probability, over an offer's items, that the queue would start a
// job of that size by the item's start.
func (l *learner) odds(now time.Time, o protocol.Offer) protocol.Odds {
	least := protocol.MaxOdds
	for _, it := range o.Items {
		p, ok := l.learnt.StartWithin(it.Slot.Cores, int64(it.Slot.Start.Sub(now)/time.Second), confidence)
		if !ok {
			return 0
		}
		least = min(least, protocol.OddsOf(p))
	}
	return least
}

// addOdds puts the odds into a proposal and the lines that explain it.
func (l *learner) addOdds(now time.Time, body protocol.Body, lines []message.QuoteLine) protocol.Body {
	p, ok := body.(message.Proposal)
	if !ok {
		return body
	}
	p.Offers = slices.Clone(p.Offers) // the seller repeats the same ones on request
	for i, o := range p.Offers {
		p.Offers[i].Queued = l.odds(now, o)
	}
	l.explain(now, lines)
	return p
}

func (l *learner) explain(now time.Time, lines []message.QuoteLine) {
	for i := range lines {
		if lines[i].Offer != nil {
			o := *lines[i].Offer
			o.Queued = l.odds(now, o)
			lines[i].Offer = &o
		}
	}
}

func (l *learner) status() *message.ForecastStatus {
	total := l.learnt.Total()
	s := &message.ForecastStatus{Told: total.Told, Held: total.Held, Rate: known(total.Rate())}
	for c := range forecast.Clusters {
		score, waits := l.learnt.Score(c), l.learnt.Waits(c)
		s.Waits = append(s.Waits, message.WaitStatus{
			Cores: forecast.ClusterName(c), Seen: waits.Len(), Runs: l.learnt.Runs(c).Len(),
			Told: score.Told, Held: score.Held, Rate: known(score.Rate()), Resets: waits.Changes(),
			Median: known(waits.Bound(forecast.Level{Quantile: .5, Confidence: confidence})),
			Bound:  known(waits.Bound(forecast.Usual())),
			Hour:   known(waits.Within(3600, confidence)),
		})
	}
	return s
}

// known is a value that is there, or nil.
func known[T any](x T, ok bool) *T {
	if ok {
		return &x
	}
	return nil
}

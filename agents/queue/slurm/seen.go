package slurm

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
)

// Slurm forgets a job some minutes after its end (MinJobAge). So what each look
// shows of the jobs in our slots is written down, in a file per slot.
const (
	ranDir = "ran" // of Config.Dir
	// maxRan bounds the stretches of a slot that are remembered.
	maxRan = 1 << 13
	// ranAge is how long after its end a slot may still be asked for.
	ranAge = protocol.ReportWithin + time.Hour
	// ranPeriod is how often it is written down that a job runs on.
	ranPeriod = time.Minute
)

// ran is what is known of the jobs in one slot.
type ran struct {
	Until time.Time `json:"until"` // the slot's end, or when a job was last seen in it
	Many  bool      `json:"many"`  // more than maxRan: the list is not complete
	Jobs  []stretch `json:"jobs"`

	index   map[[2]int64]int // in Jobs
	written time.Time
	changed bool // since then
}

// add takes a stretch as it is now.
func (r *ran) add(s stretch) {
	i, known := r.index[s.key()]
	switch {
	case known && r.Jobs[i].Over:
	case known:
		r.changed = r.changed || s.Over
		r.Jobs[i] = s
	case len(r.Jobs) >= maxRan:
		r.changed = r.changed || !r.Many
		r.Many = true
	default:
		r.index[s.key()] = len(r.Jobs)
		r.Jobs, r.changed = append(r.Jobs, s), true
	}
}

// note remembers the jobs in our slots, as squeue shows them.
func (b *batch) note(v *view, jobs []job) {
	if b.cfg.Hold == HoldJob {
		return
	}
	for _, j := range jobs {
		if id, ours := b.mark.ID(j.Reservation); ours && slices.Contains(b.cfg.Users, j.User) {
			if s, begun := j.stretch(v.at, v.threads); begun {
				r := b.ranIn(id)
				r.Until = later(r.Until, s.End)
				r.add(s)
			}
		}
	}
	for _, h := range v.held {
		if r := b.ran[h.id]; h.mine && r != nil {
			r.Until = h.slot.End
		}
	}
	b.keepRan(v.at)
}

// stretch is a job as it ran until an instant; false: it has not begun.
func (j job) stretch(now time.Time, threads int64) (stretch, bool) {
	s := stretch{ID: j.ID, Start: j.Start.instant(), End: now.UTC(), Cores: j.cores(threads)}
	if s.Over = !j.occupies(); s.Over || j.State.has("COMPLETING") {
		s.End = protocol.Earlier(j.End.instant(), s.End)
	}
	s.Idle = j.idle(s.End)
	ended := j.State.has("COMPLETED", "FAILED", "OUT_OF_MEMORY") // however short it was
	begun := !s.Start.IsZero() && !s.Start.After(s.End) && (!s.Over || ended || s.End.After(s.Start))
	return s, begun && !j.State.has("PENDING")
}

// idle is how long a job was suspended by an instant. Slurm tells how long it ran
// until it was suspended or resumed last, and when that was.
func (j job) idle(now time.Time) time.Duration {
	at := j.Suspend.instant()
	if at.IsZero() {
		return 0
	}
	ran := time.Duration(max(min(j.Ran.n, int64(endless/time.Second)), 0)) * time.Second
	if !j.State.has("SUSPENDED") {
		ran += now.Sub(at)
	}
	return max(now.Sub(j.Start.instant())-ran, 0)
}

// ranIn is what is remembered of a slot, with what an earlier life has written down.
func (b *batch) ranIn(id string) *ran {
	r := b.ran[id]
	if r != nil {
		return r
	}
	r = &ran{index: map[[2]int64]int{}}
	if b.cfg.Dir != "" {
		if err := queue.ReadFile(b.ranFile(id), r); err != nil {
			b.log.Warn("slurm: what ran in a slot cannot be read, and is gathered anew", "reservation", id, "err", err)
			*r = ran{index: r.index}
		}
	}
	r.Jobs = r.Jobs[:min(len(r.Jobs), maxRan)]
	for i, s := range r.Jobs {
		r.index[s.key()] = i
	}
	b.ran[id] = r
	return r
}

func (b *batch) ranFile(id string) string {
	return filepath.Join(b.cfg.Dir, ranDir, b.mark.Name(id)+".json")
}

// keepRan writes down what is new, and forgets slots that nobody asks for any more.
func (b *batch) keepRan(now time.Time) {
	for id, r := range b.ran {
		if now.Sub(r.Until) > ranAge {
			delete(b.ran, id)
			continue
		}
		if b.cfg.Dir == "" || !r.changed && (now.Sub(r.written) < ranPeriod || !r.live() || now.After(r.Until.Add(endingGrace))) {
			continue
		}
		if err := b.writeRan(id, r); err != nil {
			b.log.Warn("slurm: what ran in a slot cannot be written down now", "reservation", id, "err", err)
			continue
		}
		r.written, r.changed = now, false
	}
	if now.Sub(b.swept).Abs() > ranAge {
		b.swept = now
		b.sweepRan(now)
	}
}

func (r *ran) live() bool {
	return slices.ContainsFunc(r.Jobs, func(s stretch) bool { return !s.Over })
}

func (b *batch) writeRan(id string, r *ran) error {
	if err := os.MkdirAll(filepath.Join(b.cfg.Dir, ranDir), 0o700); err != nil {
		return err
	}
	return queue.WriteFile(b.ranFile(id), r)
}

// sweepRan removes the files of slots that nobody asks for any more.
func (b *batch) sweepRan(now time.Time) {
	if b.cfg.Dir == "" {
		return
	}
	files, err := os.ReadDir(filepath.Join(b.cfg.Dir, ranDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.log.Warn("slurm: what ran in slots cannot be listed", "err", err)
	}
	for _, f := range files {
		id, ours := b.mark.ID(strings.TrimSuffix(f.Name(), ".json"))
		info, err := f.Info()
		if !ours || err != nil || now.Sub(info.ModTime()) < ranAge || now.Sub(b.ranIn(id).Until) <= ranAge {
			continue // of others, or its slot may last for days
		}
		delete(b.ran, id)
		if err := os.Remove(filepath.Join(b.cfg.Dir, ranDir, f.Name())); err != nil {
			b.log.Warn("slurm: what ran in a slot cannot be removed", "reservation", id, "err", err)
		}
	}
}

package slurm

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
)

// Slurm forgets a job some minutes after its end (MinJobAge). So each look records
// the jobs in our slots, in a file per slot.
const (
	ranDir = "ran" // of Config.Dir
	// maxRan bounds the recorded stretches of a slot.
	maxRan = 1 << 13
	// ranAge is how long after its end a slot may still be asked for.
	ranAge = protocol.ReportWithin + time.Hour
	// ranPeriod is how often a running job is saved again.
	ranPeriod = time.Minute
)

// usage owns the records of the jobs that ran in our slots, in memory and on disk.
type usage struct {
	dir   string   // of the files; empty: in memory only
	users []string // whose jobs count
	slow  cluster
	mark  queue.Mark
	log   *slog.Logger
	slots map[string]*ran // by reservation ID
	swept time.Time       // when old files were removed last
	askAt time.Time       // when sacct may be asked again, and why not before
	hangs error
}

func newUsage(cfg Config, slow cluster, mark queue.Mark) *usage {
	u := &usage{users: cfg.Users, slow: slow, mark: mark, log: cfg.Slog, slots: map[string]*ran{}}
	if cfg.Dir != "" {
		u.dir = filepath.Join(cfg.Dir, ranDir)
	}
	return u
}

// ran records the jobs in one slot.
type ran struct {
	Until time.Time `json:"until"` // the slot's end, or when a job was last seen in it
	Many  bool      `json:"many"`  // there were more than maxRan: the list is incomplete
	Jobs  []stretch `json:"jobs"`

	index   map[[2]int64]int // in Jobs
	written time.Time
	changed bool // since then
}

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

// note records the jobs in our slots as squeue shows them.
func (u *usage) note(v *view, jobs []job) {
	for _, j := range jobs {
		if id, ours := u.mark.ID(j.Reservation); ours && slices.Contains(u.users, j.User) {
			if s, begun := j.stretch(v.at, v.threads); begun {
				r := u.of(id)
				r.Until = protocol.Later(r.Until, s.End)
				r.add(s)
			}
		}
	}
	for _, h := range v.held {
		if r := u.slots[h.id]; h.mine && r != nil {
			r.Until = h.slot.End
		}
	}
	u.save(v.at)
}

// stretch is how a job ran until an instant; begun is false if it has not started.
func (j job) stretch(now time.Time, threads int64) (_ stretch, begun bool) {
	s := stretch{ID: j.ID, Start: j.Start.instant(), End: now.UTC(), Cores: j.cores(threads)}
	if s.Over = !j.occupies(); s.Over || j.State.has("COMPLETING") {
		s.End = protocol.Earlier(j.End.instant(), s.End)
	}
	s.Idle = j.idle(s.End)
	ended := j.State.has("COMPLETED", "FAILED", "OUT_OF_MEMORY") // however short it was
	begun = !s.Start.IsZero() && !s.Start.After(s.End) && (!s.Over || ended || s.End.After(s.Start))
	return s, begun && !j.State.has("PENDING")
}

// idle is how long a job has been suspended. Slurm reports how long it ran until it
// was last suspended or resumed, and when that was.
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

// of returns the record of a slot, from its file if need be.
func (u *usage) of(id string) *ran {
	r := u.slots[id]
	if r != nil {
		return r
	}
	r = &ran{index: map[[2]int64]int{}}
	if u.dir != "" {
		if err := queue.ReadFile(u.file(id), r); err != nil {
			u.log.Warn("slurm: cannot read the jobs that ran in a slot; recording them anew", "reservation", id, "err", err)
			*r = ran{index: r.index}
		}
	}
	r.Jobs = r.Jobs[:min(len(r.Jobs), maxRan)]
	for i, s := range r.Jobs {
		r.index[s.key()] = i
	}
	u.slots[id] = r
	return r
}

func (u *usage) file(id string) string { return filepath.Join(u.dir, u.mark.Name(id)+".json") }

// save writes new records to disk, and drops those older than ranAge.
func (u *usage) save(now time.Time) {
	for id, r := range u.slots {
		if now.Sub(r.Until) > ranAge {
			delete(u.slots, id)
			continue
		}
		if u.dir == "" || !r.changed && (now.Sub(r.written) < ranPeriod || !r.live() || now.After(r.Until.Add(endingGrace))) {
			continue
		}
		if err := u.write(id, r); err != nil {
			u.log.Warn("slurm: cannot save the jobs that ran in a slot", "reservation", id, "err", err)
			continue
		}
		r.written, r.changed = now, false
	}
	if now.Sub(u.swept).Abs() > ranAge {
		u.swept = now
		u.sweep(now)
	}
}

func (r *ran) live() bool {
	return slices.ContainsFunc(r.Jobs, func(s stretch) bool { return !s.Over })
}

func (u *usage) write(id string, r *ran) error {
	if err := os.MkdirAll(u.dir, 0o700); err != nil {
		return err
	}
	return queue.WriteFile(u.file(id), r)
}

// sweep removes the files of slots that ended more than ranAge ago.
func (u *usage) sweep(now time.Time) {
	if u.dir == "" {
		return
	}
	files, err := os.ReadDir(u.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		u.log.Warn("slurm: cannot list the records of old slots", "dir", u.dir, "err", err)
	}
	for _, f := range files {
		id, ours := u.mark.ID(strings.TrimSuffix(f.Name(), ".json"))
		info, err := f.Info()
		if !ours || err != nil || now.Sub(info.ModTime()) < ranAge || now.Sub(u.of(id).Until) <= ranAge {
			continue // another agent's file, or a slot that lasts for days
		}
		delete(u.slots, id)
		if err := os.Remove(u.file(id)); err != nil {
			u.log.Warn("slurm: cannot remove the record of an old slot", "reservation", id, "err", err)
		}
	}
}

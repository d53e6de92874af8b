package slurm

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Times within which different clocks and files are believed to tell the same.
const (
	// fileGrace is how long the end of a job is not told because the file with what
	// it used is not seen yet: the nodes' files may come late.
	fileGrace = 5 * time.Second
	// missGrace is how long a job that has begun, and that Slurm does not list, still
	// counts as running.
	missGrace = 15 * time.Second
	// endGrace is how long before the end of its slot a job may have been ended by
	// it: the script ends it a moment early, and Slurm tells whole seconds.
	endGrace = 2500 * time.Millisecond
	// ticks is how much longer a job may have run than whole seconds say.
	ticks = time.Second
)

// glance is what was last seen of jobs that are not over. Their files are looked
// at often, Slurm itself when they have changed or when it is time to.
type glance struct {
	pace  queue.Pace
	files map[string]traces
	list  map[string][]record
	err   error // of the last look at Slurm
}

// soon has Slurm be asked again at the next look.
func (g *glance) soon() { g.pace = queue.Pace{Least: jobLeast, Most: jobMost} }

// Statuses tells how jobs stand.
func (b *batch) Statuses(now time.Time, jobs []message.Job) (map[string]protocol.JobStatus, error) {
	told := make(map[string]protocol.JobStatus, len(jobs))
	open := make(map[string]traces, len(jobs))
	for _, job := range jobs {
		var s protocol.JobStatus
		if err := queue.ReadFile(control(job, stateFile), &s); err != nil {
			return nil, err
		}
		if s.State.Over() {
			told[job.ID] = s
			continue
		}
		t, err := readTraces(job)
		if err != nil {
			return nil, err
		}
		open[job.ID] = t
	}
	if err := b.glanceAt(now, jobs, open); err != nil {
		return nil, err
	}
	for _, job := range jobs {
		t, ok := open[job.ID]
		if !ok {
			continue
		}
		s, err := b.status(now, job, t, b.seen.list[b.mark.Name(job.ID)])
		if err != nil {
			return nil, err
		}
		if s.State != "" {
			told[job.ID] = s
		}
	}
	return told, nil
}

// glanceAt asks Slurm about the jobs that are not over, if their files tell
// something new, or it is time to.
func (b *batch) glanceAt(now time.Time, jobs []message.Job, open map[string]traces) error {
	g := &b.seen
	news := false
	var names []string
	for _, job := range jobs {
		t, ok := open[job.ID]
		if !ok {
			continue
		}
		last, seen := g.files[job.ID]
		news = news || !seen || t.begun != last.begun || t.done != last.done
		names = append(names, b.mark.Name(job.ID))
	}
	if len(names) == 0 {
		return nil
	}
	if news {
		g.soon()
	}
	if !g.pace.Due(now) {
		return g.err
	}
	list, err := b.slow.records(names)
	g.pace.Looked(now, false, err)
	g.err = err
	if err != nil {
		return err
	}
	g.list, g.files = list, open
	return nil
}

// status is how a job stands; no State: nobody knows it. One that is over is
// written down, since Slurm forgets it within minutes.
func (b *batch) status(now time.Time, job message.Job, t traces, list []record) (protocol.JobStatus, error) {
	r, ok := theOne(job, list)
	s := protocol.JobStatus{}
	switch {
	case ok && !r.over():
		s = b.stands(now, job, r)
	case ok:
		s = t.ended(now, job, r)
	case t.done:
		s = t.forgotten(job)
	case t.begun:
		s = b.missing(now, job, t)
	}
	if ok || !t.begun {
		delete(b.missed, job.ID)
	}
	if !s.State.Over() {
		return s, nil
	}
	delete(b.missed, job.ID)
	return s, queue.WriteFile(control(job, stateFile), s)
}

// theOne is the record of a job: that of which the script says that it began, else
// one that may still begin, else the last.
func theOne(job message.Job, list []record) (record, bool) {
	list = slices.DeleteFunc(slices.Clone(list), func(r record) bool { return r.comment != jobComment(job) })
	if len(list) == 0 {
		return record{}, false
	}
	slices.SortFunc(list, func(a, b record) int { return int(a.id - b.id) })
	if id, ok := begunBy(job); ok {
		if i := slices.IndexFunc(list, func(r record) bool { return r.id == id }); i >= 0 {
			return list[i], true
		}
		return record{}, false
	}
	if i := slices.IndexFunc(list, func(r record) bool { return !r.over() }); i >= 0 {
		return list[i], true
	}
	return list[len(list)-1], true
}

// stands is how a job stands that is not over. One that still waits when its slot
// is over is cancelled.
func (b *batch) stands(now time.Time, job message.Job, r record) protocol.JobStatus {
	if r.waits() || r.start.IsZero() {
		if !now.Before(job.Slot.End) {
			if _, err := b.slow.run("scancel", "--quiet", fmt.Sprint(r.id)); err != nil {
				b.log.Warn("slurm: a job that waits though its slot is over cannot be cancelled now", "job", r.id, "err", err)
			}
		}
		return protocol.JobStatus{State: protocol.JobWaiting}
	}
	s := protocol.JobStatus{State: protocol.JobRunning, Started: r.start, Usage: protocol.Usage{Wall: r.ran, Share: share(job)}}
	if r.is("SUSPENDED", "STOPPED") {
		s.State = protocol.JobSuspended
	}
	return s
}

// share is what a job is given: the cores of its slot, which are its own.
func share(job message.Job) int64 { return int64(job.Slot.Cores) * protocol.Core }

// missing is how a job stands that has begun, that Slurm does not list, and that
// has not said how it ended.
func (b *batch) missing(now time.Time, job message.Job, t traces) protocol.JobStatus {
	since, ok := b.missed[job.ID]
	if !ok {
		b.missed[job.ID], since = now, now
	}
	if now.Sub(since).Abs() < missGrace {
		return protocol.JobStatus{State: protocol.JobRunning, Started: t.began}
	}
	s := protocol.JobStatus{State: protocol.JobLost, Started: t.began, Ended: now.UTC(), Note: "Slurm does not know what became of it"}
	if t.unwanted {
		s.State = protocol.JobKilled
	}
	return s
}

// traces are what the files of a job tell of it.
type traces struct {
	begun    bool
	began    time.Time
	unwanted bool // its owner wanted it to end
	done     bool // the rest is told
	code     int
	asked    bool // to end, by Slurm
	started  time.Time
	stopped  time.Time
	cpu      time.Duration
}

func readTraces(job message.Job) (traces, error) {
	var t traces
	switch _, err := os.Lstat(control(job, killFile)); {
	case err == nil:
		t.unwanted = true
	case !errors.Is(err, fs.ErrNotExist):
		return t, err
	}
	run, err := os.OpenRoot(filepath.Join(job.Dir, runDir))
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return t, err
	}
	defer run.Close() //nolint:errcheck // it is only read
	info, err := run.Lstat(begunLink)
	if err != nil {
		return t, nil //nolint:nilerr // it has not begun, or not where it can be seen
	}
	t.begun, t.began = true, info.ModTime().UTC()
	t.exit(run)
	return t, nil
}

// begunBy is which of Slurm's jobs began a job.
func begunBy(job message.Job) (int64, bool) {
	run, err := os.OpenRoot(filepath.Join(job.Dir, runDir))
	if err != nil {
		return 0, false
	}
	defer run.Close() //nolint:errcheck // it is only read
	target, err := run.Readlink(begunLink)
	if err != nil {
		return 0, false
	}
	number, _, _ := strings.Cut(target, ".")
	id, err := strconv.ParseInt(number, 10, 64)
	return id, err == nil
}

// maxExit bounds what is read of how a job ended, in bytes.
const maxExit = 1 << 10

// exit reads what the script has written at its end. It is in the hands of the
// job's account: what cannot be is not there.
func (t *traces) exit(run *os.Root) {
	f, err := run.OpenFile(exitFile, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close() //nolint:errcheck // it is only read
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return
	}
	b, err := io.ReadAll(io.LimitReader(f, maxExit))
	if err != nil {
		return
	}
	t.readExit(string(b))
}

// readExit reads: CODE ASKED STARTED ENDED, then what times(1) of a shell prints:
// of itself, and of what it has waited for.
func (t *traces) readExit(text string) {
	lines := strings.Split(text, "\n")
	if len(lines) < 3 {
		return
	}
	head, times := strings.Fields(lines[0]), strings.Fields(lines[2])
	if len(head) != 4 || len(times) != 2 {
		return
	}
	code, err1 := strconv.ParseUint(head[0], 10, 8)
	started, err2 := strconv.ParseUint(head[2], 10, 52)
	ended, err3 := strconv.ParseUint(head[3], 10, 52)
	user, err4 := clocked(times[0])
	system, err5 := clocked(times[1])
	if errors.Join(err1, err2, err3, err4, err5) != nil || ended < started {
		return
	}
	t.done, t.code, t.asked, t.cpu = true, int(code), head[1] == "1", user+system
	t.started, t.stopped = time.UnixMilli(int64(started)).UTC(), time.UnixMilli(int64(ended)).UTC()
}

// clocked reads MINUTESmSECONDSs, as times(1) of a shell prints it.
func clocked(s string) (time.Duration, error) {
	minutes, rest, ok := strings.Cut(s, "m")
	seconds, tail := strings.CutSuffix(rest, "s")
	m, err1 := strconv.ParseUint(minutes, 10, 24)
	sec, err2 := strconv.ParseFloat(strings.Replace(seconds, ",", ".", 1), 64)
	if !ok || !tail || err1 != nil || err2 != nil || !(sec >= 0 && sec < 60) {
		return 0, fmt.Errorf("%.20q is no time", s)
	}
	return time.Duration(m)*time.Minute + time.Duration(sec*float64(time.Second)), nil
}

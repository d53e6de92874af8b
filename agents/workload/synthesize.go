package workload

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"
)

// Synthesis describes the log to make.
type Synthesis struct {
	Name     string  // of the machine, for the header; one line
	Cores    int     // of the machine, 1..MaxCapacity
	Start    int64   // second of the log at which jobs begin to arrive; second 0 is a midnight
	Duration int64   // seconds in which jobs arrive, 1..MaxDuration
	Load     float64 // share of the machine that the jobs request, 0..2; 0: as published
	Models   []Model // 1..MaxModels classes, mixed; Typeless for a single class of all jobs
}

// Bounds of a Synthesis.
const (
	MaxDuration = int64(10 * 365 * 24 * 3600)
	MaxModels   = 8
	maxLoad     = 2
	maxName     = 128
)

// Validate names the wrong field and the allowed values.
func (s Synthesis) Validate() error {
	switch {
	case len(s.Name) > maxName || strings.ContainsFunc(s.Name, unicode.IsControl):
		return fmt.Errorf("synthesis: name %q, want one line of at most %d bytes", s.Name[:min(len(s.Name), maxName)], maxName)
	case s.Cores < 1 || s.Cores > MaxCapacity:
		return fmt.Errorf("synthesis: %d cores, want 1..%d", s.Cores, MaxCapacity)
	case s.Start < 0 || s.Start > MaxTime/2:
		return fmt.Errorf("synthesis: start %d, want 0..%d", s.Start, int64(MaxTime/2))
	case s.Duration < 1 || s.Duration > MaxDuration:
		return fmt.Errorf("synthesis: duration %d s, want 1..%d", s.Duration, MaxDuration)
	case !(s.Load >= 0 && s.Load <= maxLoad):
		return fmt.Errorf("synthesis: load %g, want 0..%d", s.Load, maxLoad)
	case len(s.Models) < 1 || len(s.Models) > MaxModels:
		return fmt.Errorf("synthesis: %d models, want 1..%d", len(s.Models), MaxModels)
	}
	return nil
}

// Synthesize makes a log by the model of Lublin and Feitelson. It draws sizes, run times and gaps
// as published. The model has no requested times: they are between one and five times the run time,
// rounded up to usual values. The waits result from EASY back-filling on a machine that is empty at
// Start (allow it a day). With a Load, Synthesize draws jobs until they request that share of the
// machine over Duration, and scales all gaps alike to fill it, so that the day cycle stays. The
// published gaps sometimes leave a machine idle for a day; several Typeless models, which arrive
// independently, leave it idle less and keep sizes, run times and day cycle. The same random source
// gives the same log. More than MaxJobs jobs are an error.
func Synthesize(s Synthesis, r *rand.Rand) (*Log, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	drawn, stretch, err := s.draw(r)
	if err != nil {
		return nil, err
	}
	log := &Log{Comments: s.comments()}
	for _, d := range drawn {
		at := s.Start + clock(d.cycle, s.Start, d.points*stretch)
		log.Jobs = append(log.Jobs, d.job(at))
	}
	slices.SortStableFunc(log.Jobs, func(a, b Job) int { return cmp.Compare(a.Submit, b.Submit) })
	for i := range log.Jobs {
		log.Jobs[i].Number = int32(i + 1)
	}
	return Schedule(log), nil
}

func (s Synthesis) comments() []string {
	return []string{
		" Version: 2.2",
		" Computer: " + s.Name,
		" Information: synthetic, by the model of Lublin and Feitelson (2003), waits by EASY back-filling",
		fmt.Sprintf(" MaxProcs: %d", s.Cores),
		" UnixStartTime: 0",
	}
}

// drawn is a job before its submit time is known.
type drawn struct {
	class     int
	cycle     *[buckets]float64
	points    float64 // of all gaps of its class so far
	cores     int
	run       int32
	requested int32
}

func (d drawn) job(at int64) Job {
	return Job{
		Submit: at, Wait: Unknown, Run: d.run, Procs: int32(d.cores), CPU: Unknown, Memory: Unknown,
		RequestedProcs: int32(d.cores), RequestedTime: d.requested, RequestedMem: Unknown,
		Status: StatusCompleted, User: Unknown, Group: Unknown, Executable: Unknown,
		Queue: int32(d.class + 1), Partition: Unknown, Preceding: Unknown, Think: Unknown,
	}
}

// draw draws jobs of all classes, in order of their points, until the duration or the
// load is full, and returns the factor by which to stretch the points.
func (s Synthesis) draw(r *rand.Rand) ([]drawn, float64, error) {
	next := make([]drawn, len(s.Models)) // of each class, the job to come
	for i, m := range s.Models {
		cycle := m.cycle()
		next[i] = s.after(drawn{class: i, cycle: &cycle}, r)
	}
	var all []drawn
	work, wanted := 0.0, s.Load*float64(s.Cores)*float64(s.Duration)
	for len(all) < MaxJobs {
		d := slices.MinFunc(next, func(a, b drawn) int { return cmp.Compare(a.points, b.points) })
		if s.Load == 0 && d.points >= float64(s.Duration) {
			return all, 1, nil
		}
		all = append(all, d)
		work += float64(d.cores) * float64(d.run)
		next[d.class] = s.after(d, r)
		if s.Load > 0 && work >= wanted {
			return all, float64(s.Duration) / d.points, nil
		}
	}
	return nil, 0, fmt.Errorf("synthesis: more than %d jobs for %d cores and %d s", MaxJobs, s.Cores, s.Duration)
}

// after draws the job of a class that follows d.
func (s Synthesis) after(d drawn, r *rand.Rand) drawn {
	m := s.Models[d.class].on(s.Cores)
	d.points += m.gap(r)
	d.cores = m.cores(r, s.Cores)
	d.run = m.run(r, d.cores)
	d.requested = request(r, d.run)
	return d
}

// request draws a requested time: people ask for more than they need, and for round values.
func request(r *rand.Rand, run int32) int32 {
	want := int32(math.Ceil(float64(run) * (1 + 4*r.Float64())))
	for _, minutes := range []int32{5, 15, 30, 60, 120, 240, 480, 720, 1440, 2880} {
		if want <= minutes*60 {
			return minutes * 60
		}
	}
	const day = 24 * 3600
	return (want + day - 1) / day * day
}

// clock is the number of seconds after start in which points are paid, by half-hours.
func clock(cycle *[buckets]float64, start int64, points float64) int64 {
	const day = buckets * bucket
	days := math.Floor(points / day) // a whole day takes its length in points
	points -= days * day
	at := start
	for {
		left := bucket - at%bucket
		cost := cycle[at/bucket%buckets] * float64(left)
		if points <= cost {
			return int64(days)*day + at - start + int64(points/cost*float64(left))
		}
		points -= cost
		at += left
	}
}

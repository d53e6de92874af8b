package workload

import "container/heap"

// MaxDepth bounds how many waiting jobs behind the first a scheduling pass considers:
// deeper ones are not back-filled until they have moved up. Real batch systems have such
// a bound too, of some hundreds.
const MaxDepth = 1000

// task is a job as the scheduler knows it, and its real run time, which the scheduler
// does not know.
type task struct {
	number int32
	cores  int
	wall   int64 // requested time
	run    int64 // real run time
}

// scheduler is first come, first served with EASY back-filling. Its plan has the running
// jobs until their estimated ends, and the sold slots.
//
// The first waiting job starts as soon as its cores are free, and stay free of
// sold slots, for its requested time. Until then the plan keeps its earliest possible
// start for it, and a later job may start now if that delays neither it nor a sold slot.
type scheduler struct {
	capacity int
	now      int64
	plan     *Profile
	queue    []task
	running  runners
	started  func(task, int64) // called at every start; may be nil
}

func newScheduler(now int64, capacity int) *scheduler {
	return &scheduler{capacity: capacity, now: now, plan: NewProfile(now, capacity)}
}

// submit puts a job at the end of the queue. A job larger than the machine counts as
// large as the machine, since it would block the queue otherwise.
func (s *scheduler) submit(t task) {
	t.cores = min(t.cores, s.capacity)
	s.queue = append(s.queue, t)
}

// finish ends the jobs that are due, and extends exceeded estimates.
func (s *scheduler) finish() {
	for len(s.running) > 0 && s.running[0].next() <= s.now {
		r := s.running[0]
		if r.end > s.now {
			s.extend(r)
			heap.Fix(&s.running, 0)
			continue
		}
		heap.Pop(&s.running)
		s.plan.Add(s.now, r.due, r.cores)
	}
}

// extend moves the estimated end of a job that exceeds its requested time by a minute,
// then two, four and so on.
func (s *scheduler) extend(r *runner) {
	due := r.due
	for r.due <= s.now {
		r.due += firstExtension << min(r.extended, maxDoublings)
		r.extended++
	}
	s.plan.Add(max(due, s.now), r.due, -r.cores)
}

const (
	firstExtension = int64(60)
	maxDoublings   = 16 // about 45 days
)

func (s *scheduler) schedule() {
	for len(s.queue) > 0 && s.fits(s.queue[0]) {
		s.start(s.queue[0], s.now)
		s.queue = s.queue[1:]
	}
	if len(s.queue) > 1 && s.plan.At(s.now) > 0 {
		s.backfill()
	}
}

// backfill starts later jobs that delay neither the first nor a sold slot.
func (s *scheduler) backfill() {
	head := s.queue[0]
	shadow, ok := s.plan.Earliest(s.now, Forever, head.wall, head.cores)
	if !ok {
		panic("workload: the plan never becomes free") // every part of it ends
	}
	s.plan.Add(shadow, shadow+head.wall, -head.cores)
	free := s.plan.At(s.now)
	for i := 1; i < len(s.queue) && i <= MaxDepth && free > 0; {
		t := s.queue[i]
		if t.cores > free || !s.fits(t) {
			i++
			continue
		}
		s.start(t, s.now)
		s.take(i)
		free -= t.cores
	}
	s.plan.Add(shadow, shadow+head.wall, head.cores)
}

// take removes job i from the queue. It moves the jobs before it, which are at most
// MaxDepth; any number may follow.
func (s *scheduler) take(i int) {
	copy(s.queue[1:i+1], s.queue[:i])
	s.queue = s.queue[1:]
}

func (s *scheduler) fits(t task) bool {
	return s.plan.At(s.now) >= t.cores && s.plan.Free(s.now, s.now+t.wall) >= t.cores
}

// start runs a job that began at the given instant, now or before.
func (s *scheduler) start(t task, at int64) {
	r := &runner{task: t, end: at + t.run, due: at + t.wall}
	if r.due > s.now {
		s.plan.Add(s.now, r.due, -t.cores)
	} else {
		s.extend(r)
	}
	heap.Push(&s.running, r)
	if s.started != nil {
		s.started(t, at)
	}
}

type runner struct {
	task
	end      int64 // real
	due      int64 // estimated, always after now
	extended int   // how often due was extended
}

func (r *runner) next() int64 { return min(r.end, r.due) }

// runners is a heap by next. Events of the same instant are handled together, so that
// the order of equal ones does not matter.
type runners []*runner

func (h runners) Len() int           { return len(h) }
func (h runners) Less(i, j int) bool { return h[i].next() < h[j].next() }
func (h runners) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *runners) Push(x any)        { *h = append(*h, x.(*runner)) }
func (h *runners) Pop() any {
	old := *h
	r := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return r
}

// evict ends jobs that exceed their requested time, the longest overdue first, until the
// rest fits the machine.
func (s *scheduler) evict() {
	for s.plan.At(s.now) < 0 {
		worst := -1
		for i, r := range s.running {
			if r.extended > 0 && (worst < 0 || r.overdue(s.running[worst])) {
				worst = i
			}
		}
		if worst < 0 {
			return
		}
		r := heap.Remove(&s.running, worst).(*runner)
		s.plan.Add(s.now, r.due, r.cores)
	}
}

// overdue reports whether r exceeds its requested time by more than x; if equal, whether
// its number is smaller.
func (r *runner) overdue(x *runner) bool {
	a, b := r.end-r.run+r.wall, x.end-x.run+x.wall
	return a < b || a == b && r.number < x.number
}

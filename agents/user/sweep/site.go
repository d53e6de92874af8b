package sweep

import (
	"slices"
	"time"

	"ramp/protocol"
)

// recent successes give the rate of a site: one that becomes slower is soon seen to be.
const recent = 8

// young is an attempt that may still prove to be one of those that fail at once.
const young = 10 * time.Second

// Pauses after a site has refused a lease; they double. After short ones tasks wait for it: it may not
// have freed yet what was given back.
const (
	pauseFirst = 2 * time.Second
	pauseShort = 8 * time.Second
	pauseMost  = 2 * time.Minute
)

// site is a resource and what was learnt about it.
type site struct {
	Offer
	queue  []int // assigned tasks, in the order in which they begin
	buy    int   // how many of them need a lease that is not bought yet
	leases []*Lease
	done   int
	failed int
	silent bool // it made no offer in the last trade

	times    []time.Duration // of the last successful tasks, recent at most
	longest  time.Duration   // of successful tasks
	expired  bool            // a task took longer than was reserved for it
	planned  time.Duration   // for one task, in the present plan
	streak   int             // failures in a row
	leaves   int             // how often it was left out since a success
	out      bool            // left out of plans, until outUntil
	outUntil time.Duration

	freed               []time.Duration // when lanes that were given back can be sold again
	refusedUntil, pause time.Duration
	why                 string // of its last refusal or failure
}

// Lease is a slot that is being bought or was. Its number is its index.
type Lease struct {
	Site   string           `json:"site"`
	Signed bool             `json:"signed,omitempty"`
	Closed bool             `json:"closed,omitempty"` // nothing more begins in it
	Start  time.Duration    `json:"start"`
	End    time.Duration    `json:"end"`
	Held   protocol.Credits `json:"held,omitempty"` // the most that it may still cost
	Paid   protocol.Credits `json:"paid,omitempty"` // less what was refunded

	n     int
	site  *site
	task  int // it runs; -1: none
	began time.Duration
}

// learn takes the end of an attempt.
func (x *site) learn(a Attempt) {
	if a.How != Succeeded {
		x.failed, x.streak, x.why = x.failed+1, x.streak+1, a.Why
		x.expired = x.expired || a.How == Expired
		return
	}
	x.done, x.streak, x.leaves = x.done+1, 0, 0
	if len(x.times) == recent {
		x.times = append(x.times[:0], x.times[1:]...)
	}
	x.times = append(x.times, a.Ended-a.Began)
	x.longest = max(x.longest, a.Ended-a.Began)
}

// free is when a lease's lane is expected to be free.
func (s *Sweep) free(l *Lease, now time.Duration) time.Duration {
	if l.task >= 0 {
		return max(now, l.began+s.mean(l.site))
	}
	return max(now, l.Start)
}

func measured(sites []*site) bool {
	return slices.ContainsFunc(sites, func(x *site) bool { return x.done > 0 })
}

// mean is the time that a task is expected to take at a site: the mean of its last successes, or of
// everybody's before it has any, or the most that a task may take. 0: lengths are known.
func (s *Sweep) mean(x *site) time.Duration {
	if s.Wall == 0 {
		return 0
	}
	sum, n := x.took()
	if n == 0 {
		for _, y := range s.sites {
			d, m := y.took()
			sum, n = sum+d, n+m
		}
	}
	if n == 0 {
		return s.Wall
	}
	return max(1, sum/n)
}

// took sums up the times of the last successful tasks, and counts them.
func (x *site) took() (sum, n time.Duration) {
	for _, d := range x.times {
		sum += d
	}
	return sum, time.Duration(len(x.times))
}

// used is what the time of an attempt would cost, if it has succeeded.
func (x *site) used(a Attempt) protocol.Credits {
	if a.How != Succeeded {
		return 0
	}
	cost, _ := protocol.Cost(x.Price, 1, a.Ended-a.Began) // its lease was bought
	return cost
}

// overhead compares the cost of all leases so far with the cost of the run times of their tasks, which are
// shorter: 1,000 if both are equal.
func (s *Sweep) overhead(now time.Duration) protocol.Credits {
	const whole, most = 1_000, 4_000
	if s.Wall == 0 || s.used == 0 {
		return whole
	}
	sunk := s.spent + s.committed
	for _, x := range s.sites {
		for _, l := range x.leases {
			rest, _ := protocol.Cost(x.Price, 1, l.End-max(now, l.Start)) // it was bought
			sunk -= min(rest, l.Paid+l.Held)
		}
	}
	return max(whole, min(most, protocol.Credits(float64(sunk)/float64(s.used)*whole)))
}

// bound is the time to reserve for a task at a site: half as much again as its longest success, at
// most the most that a task may take.
func (s *Sweep) bound(x *site) time.Duration {
	if x.done == 0 || x.expired {
		return s.Wall
	}
	return min(x.longest+x.longest/2+time.Second, s.Wall)
}

// doubtful reports whether a site is left out, or has as many attempts that may fail at once as it takes
// to be. One failure is enough to doubt it until a task succeeds.
func (s *Sweep) doubtful(x *site, now time.Duration) bool {
	if x.out {
		return true
	}
	if s.Wall == 0 || x.done > 0 && x.streak == 0 {
		return false
	}
	at := x.streak
	for _, l := range x.leases {
		if l.task >= 0 && now < l.began+young {
			at++
		}
	}
	return at >= Failures && others(s.sites, x)
}

// others reports whether a site but this one takes tasks.
func others(sites []*site, x *site) bool {
	return slices.ContainsFunc(sites, func(y *site) bool { return y != x && !y.out && (y.Lanes > 0 || len(y.leases) > 0) })
}

// Signed notes that a lease was bought, for at most what was committed to it.
func (s *Sweep) Signed(n int, start, end time.Duration, held protocol.Credits) {
	l := s.leases[n]
	l.Signed, l.Start, l.End = true, start, end
	l.site.pause /= 2
	s.Account(n, 0, held)
}

// Refused notes that a lease was not bought. The site is asked again after a pause; if it refuses on and
// on, also after the next trade.
func (s *Sweep) Refused(now time.Duration, n int, why string) {
	l := s.leases[n]
	x := l.site
	if now >= x.refusedUntil { // leases that are refused together count once
		x.pause = min(max(2*x.pause, pauseFirst), pauseMost)
	}
	x.refusedUntil, x.why = now+x.pause, why
	if x.pause > pauseShort {
		x.Lanes = 0
	}
	s.Account(n, 0, 0)
	l.close()
	s.stale = true
}

// Account notes what was paid for a lease, less refunds, and the most that it may still cost.
func (s *Sweep) Account(n int, paid, held protocol.Credits) {
	l := s.leases[n]
	s.spent += paid - l.Paid
	s.committed += held - l.Held
	l.Paid, l.Held = paid, held
}

// Over notes that a lease takes no more launches: its site has lost it, or its owner has given it back.
func (s *Sweep) Over(n int) {
	if l := s.leases[n]; !l.Closed {
		l.close()
		s.again()
	}
}

func (l *Lease) close() {
	l.Closed = true
	l.site.leases = slices.DeleteFunc(l.site.leases, func(x *Lease) bool { return x == l })
}

// giveBack closes a lease whose site sells the rest of it again, but not at once.
func (l *Lease) giveBack(now, release time.Duration) {
	l.close()
	l.site.freed = append(l.site.released(now), min(l.End, now+release))
}

// released are the lanes that were given back and cannot be sold again yet.
func (x *site) released(now time.Duration) []time.Duration {
	x.freed = slices.DeleteFunc(x.freed, func(at time.Duration) bool { return at <= now })
	return slices.Clip(x.freed)
}

// Ended notes the end of the attempt that a lease ran, and returns its task, which is Fetching if it
// has succeeded.
func (s *Sweep) Ended(now time.Duration, n int, how End, exit int, why string) (task int) {
	l := s.leases[n]
	x, i := l.site, l.task
	t := &s.tasks[i]
	l.task = -1
	s.events++
	if how == Exited && x.done == 0 && others(s.sites, x) {
		how = Unproven
	}
	a := t.last()
	a.Ended, a.How, a.Exit, a.Why = now, how, exit, why
	x.learn(*a)
	if how == Succeeded {
		s.move(i, Fetching)
		s.used += x.used(*a)
		if d := s.mean(x) - x.planned; max(d, -d) > x.planned/10 {
			s.stale = true
		}
	} else {
		if x.streak >= Failures && others(s.sites, x) {
			s.leaveOut(x, now)
		}
		s.retry(i)
	}
	if s.Lease == 0 {
		l.giveBack(now, s.Release)
	}
	return i
}

// Fetched notes that the outputs of a task have come.
func (s *Sweep) Fetched(i int) { s.move(i, Done) }

// Gone notes that the outputs of a task cannot be had: it has to run again.
func (s *Sweep) Gone(i int, why string) {
	a := s.tasks[i].last()
	a.How, a.Why = Lost, why
	s.retry(i)
}

// leaveOut leaves a site out that failed at an instant: for twice as long each time, and then for one attempt
// that must succeed.
func (s *Sweep) leaveOut(x *site, failed time.Duration) {
	x.out, x.outUntil, x.streak = true, failed+s.Leave<<min(x.leaves, 4), Failures-1
	x.leaves++
}

// retry has a task wait again that has failed, or fails it for good.
func (s *Sweep) retry(i int) {
	s.stale = true
	if exits, lost := s.tasks[i].faults(); exits > s.RetryExit || lost > s.RetrySite {
		s.move(i, Failed)
	} else {
		s.move(i, Waiting)
	}
}

// Retry has every task that failed for good wait again, and says which.
func (s *Sweep) Retry() (tasks []int) {
	for i := range s.tasks {
		if t := &s.tasks[i]; t.State == Failed {
			t.Retried = len(t.Attempts)
			s.move(i, Waiting)
			tasks = append(tasks, i)
		}
	}
	s.again()
	return tasks
}

func (s *Sweep) move(i int, to State) {
	s.count[s.tasks[i].State]--
	s.tasks[i].State = to
	s.count[to]++
}

// Count is the number of tasks in a state.
func (s *Sweep) Count(of State) int { return s.count[of] }

// Len is the number of tasks, and Task one of them.
func (s *Sweep) Len() int         { return len(s.tasks) }
func (s *Sweep) Task(i int) *Task { return &s.tasks[i] }

// At is a lease that was ordered.
func (s *Sweep) At(n int) *Lease { return s.leases[n] }

// Money is what was paid, and what is committed to leases.
func (s *Sweep) Money() (spent, committed protocol.Credits) { return s.spent, s.committed }

// Advice is the present plan.
func (s *Sweep) Advice() Plan { return s.plan }

// Mean is the time that a task is expected to take at a site; measured: by its own tasks.
func (s *Sweep) Mean(site string) (d time.Duration, measured bool) {
	x := s.site(site)
	return s.mean(x), len(x.times) > 0
}

// SiteView is what a sweep has at a site.
type SiteView struct {
	Offer
	Silent                  bool // it made no offer in the last trade
	Assigned, Running, Done int
	Failed                  int
	Out                     time.Duration // left out until then; 0: it is not
	Why                     string        // of its last failure or refusal
}

// Sites are all sites that have made an offer, in that order.
func (s *Sweep) Sites() []SiteView {
	list := make([]SiteView, len(s.sites))
	for i, x := range s.sites {
		v := SiteView{Offer: x.Offer, Silent: x.silent, Assigned: len(x.queue), Done: x.done, Failed: x.failed, Why: x.why}
		if x.out {
			v.Out = x.outUntil
		}
		for _, l := range x.leases {
			if l.task >= 0 {
				v.Running++
			}
		}
		list[i] = v
	}
	return list
}

package sweep

import (
	"slices"
	"time"

	"ramp/protocol"
)

// Terms are what the owner of a sweep may change while it runs. Deadline is since the sweep began.
type Terms struct {
	Strategy Strategy
	Deadline time.Duration
	Budget   protocol.Credits
}

// Config is a sweep as it was ordered.
type Config struct {
	Terms
	Equal int     // prices this near form one group, in parts of 10,000
	Sizes []int64 // of the tasks: their lengths where those are known, otherwise 1 each
	// Wall is the most time for one task whose length is not known; 0: lengths are known.
	Wall time.Duration
	// Lease is the longest lease; 0: each is for one task.
	Lease     time.Duration
	RetryExit int           // how often a task is tried again after its program failed
	RetrySite int           // and after a site failed
	Leave     time.Duration // how long a site is left out after Failures in a row
}

// Failures in a row leave a site out of the next plans.
const Failures = 3

// Offer is what a site offers, as traded.
type Offer struct {
	Site  string
	Price protocol.Credits // of a lane for an hour
	Lanes int              // at most so many at once
	Start time.Duration    // of the earliest lease
	Work  int64            // what a lane does in Time, where lengths are known
	Time  time.Duration
}

// State is the state of a task.
type State uint8

// A task waits until it has a site, is assigned until it is dispatched, and may wait again.
const (
	Waiting State = iota
	Assigned
	Running
	Done
	Failed
)

type task struct {
	state       State
	attempts    int
	exits, lost int // failures of its program, and of sites
	site        *site
}

// site is a resource and what was learnt about it.
type site struct {
	Offer
	queue  []int // assigned tasks, in the order in which they begin
	buy    int   // how many of them need a lease that is not bought yet
	leases []*lease
	done   int
	failed int

	sum, longest time.Duration // of successful tasks
	planned      time.Duration // for one task, in the present plan
	streak       int           // failures in a row
	out          bool          // left out of plans, until outUntil
	outUntil     time.Duration
}

// lease is a slot that is being bought or was. Its number is its index.
type lease struct {
	n          int
	site       *site
	signed     bool
	closed     bool
	start, end time.Duration
	held       protocol.Credits
	task       int // it runs; -1: none
	began      time.Duration
}

// Sweep decides where the tasks of a sweep run. It never reads a clock: all times are since the
// sweep began.
type Sweep struct {
	Config
	tasks  []task
	sites  []*site
	leases []*lease
	count  [Failed + 1]int

	spent, committed protocol.Credits

	stale  bool // what the plan was made from has changed
	events int  // since the plan was made
}

// New creates a sweep all of whose tasks wait.
func New(c Config) *Sweep {
	s := &Sweep{Config: c, tasks: make([]task, len(c.Sizes))}
	s.count[Waiting] = len(c.Sizes)
	return s
}

// Set changes the terms.
func (s *Sweep) Set(t Terms) {
	s.Terms = t
	s.again()
}

// again has the next Act plan.
func (s *Sweep) again() { s.stale, s.events = true, len(s.tasks) }

// Trade replaces all offers. A site that is not among them gets no more leases.
func (s *Sweep) Trade(offers []Offer) {
	for _, x := range s.sites {
		x.Lanes = 0
	}
	for _, o := range offers {
		if i := slices.IndexFunc(s.sites, func(x *site) bool { return x.Site == o.Site }); i >= 0 {
			s.sites[i].Offer = o
		} else {
			s.sites = append(s.sites, &site{Offer: o})
		}
	}
	s.again()
}

// Buy is a lease to buy: so long, at no more than Most.
type Buy struct {
	Lease      int
	Site       string
	Start, End time.Duration
	Price      protocol.Credits // per lane and hour
	Most       protocol.Credits
}

// Launch is an attempt of a task to begin in a lease, which must end by the lease's end.
type Launch struct {
	Task, Attempt, Lease int
}

// Actions are what is to be done now.
type Actions struct {
	Buy    []Buy
	Launch []Launch
	Close  []int // leases to give back: nothing is left to run in them
}

// Act plans again if anything has changed, and says what to do.
func (s *Sweep) Act(now time.Duration) Actions {
	for _, x := range s.sites {
		if x.out && x.outUntil <= now {
			x.out = false
			s.again()
		}
	}
	if s.due() {
		s.advise(now)
	}
	var a Actions
	for _, x := range s.sites {
		s.launch(x, now, &a)
		s.lease(x, now, &a)
	}
	return a
}

// due reports whether to plan again. Where many tasks wait, changes are collected, so that a plan's
// work is spread over many events. Without a lease there are none to wait for.
func (s *Sweep) due() bool {
	const share = 128
	idle := !slices.ContainsFunc(s.sites, func(x *site) bool { return len(x.leases) > 0 })
	return s.stale && (idle || s.events >= (s.count[Waiting]+s.count[Assigned])/share)
}

// Next is when Act has something to do though nothing happens: a lease begins or ends, or a site is no
// longer left out. 0: never.
func (s *Sweep) Next(now time.Duration) time.Duration {
	next := never
	for _, x := range s.sites {
		if x.out {
			next = min(next, x.outUntil)
		}
		for _, l := range x.leases {
			for _, at := range []time.Duration{l.start, l.end} {
				if at > now {
					next = min(next, at)
				}
			}
		}
	}
	if next == never {
		return 0
	}
	return next
}

// source is a resource of a plan: the lane of a lease, or lanes that can be leased.
type source struct {
	site   *site
	leased bool
}

// advise takes back every task that is not dispatched and assigns all anew.
func (s *Sweep) advise(now time.Duration) {
	p := Problem{Strategy: s.Strategy, Now: now, Deadline: s.Deadline, Money: s.Budget - s.spent - s.committed, Equal: s.Equal}
	tasks := make([]int, 0, s.count[Waiting]+s.count[Assigned])
	for i := range s.tasks {
		if s.tasks[i].state <= Assigned {
			s.move(i, Waiting)
			tasks, p.Sizes = append(tasks, i), append(p.Sizes, s.Sizes[i])
		}
	}
	var from []source
	for _, x := range s.sites {
		x.queue, x.buy = x.queue[:0], 0
		x.planned = s.mean(x)
		if !x.out {
			p.Resources, from = s.resources(x, now, p.Resources, from)
		}
	}
	for i, list := range Advise(p).Tasks {
		x := from[i].site
		for _, t := range list {
			s.move(tasks[t], Assigned)
			x.queue = append(x.queue, tasks[t])
		}
		if !from[i].leased {
			x.buy += len(list)
		}
	}
	for _, x := range s.sites {
		slices.Sort(x.queue)
	}
	s.stale, s.events = false, 0
}

// resources are a site's leases, which are paid and so cost nothing more, and the lanes that it
// offers. A lane that is leased is offered again when the lease ends.
func (s *Sweep) resources(x *site, now time.Duration, list []Resource, from []source) ([]Resource, []source) {
	r := Resource{Name: x.Site, Price: x.Price, Work: x.Work, Time: x.Time, Until: s.Deadline}
	if s.Wall > 0 {
		r.Work, r.Time = 1, s.mean(x)
		r.Until -= s.bound(x) - r.Time // what a slow task may take longer
	}
	fresh := r
	for _, l := range x.leases {
		if s.Lease > 0 {
			leased := r
			leased.Price, leased.Lanes, leased.Until = 0, []time.Duration{s.free(l, now)}, min(r.Until, l.end-(s.Deadline-r.Until))
			list, from = append(list, leased), append(from, source{x, true})
		}
		if len(fresh.Lanes) < x.Lanes {
			fresh.Lanes = append(fresh.Lanes, l.end)
		}
	}
	for len(fresh.Lanes) < x.Lanes {
		fresh.Lanes = append(fresh.Lanes, max(now, x.Start))
	}
	if len(fresh.Lanes) > 0 {
		list, from = append(list, fresh), append(from, source{x, false})
	}
	return list, from
}

// free is when a lease's lane is expected to be free.
func (s *Sweep) free(l *lease, now time.Duration) time.Duration {
	if l.task >= 0 {
		return max(now, l.began+s.mean(l.site))
	}
	return max(now, l.start)
}

// mean is the time that a task is expected to take at a site: the mean of its successes, or of
// everybody's before it has any, or the most that a task may take. 0: lengths are known.
func (s *Sweep) mean(x *site) time.Duration {
	if s.Wall == 0 || x.done > 0 {
		return x.sum / time.Duration(max(1, x.done))
	}
	var sum time.Duration
	done := 0
	for _, y := range s.sites {
		sum, done = sum+y.sum, done+y.done
	}
	if done > 0 {
		return sum / time.Duration(done)
	}
	return s.Wall
}

// bound is the time to reserve for a task at a site: half as much again as its longest success, at
// most the most that a task may take.
func (s *Sweep) bound(x *site) time.Duration {
	if x.done == 0 {
		return s.Wall
	}
	return min(x.longest+x.longest/2, s.Wall)
}

// needs is the time to reserve for a task.
func (s *Sweep) needs(x *site, task int) time.Duration {
	if s.Wall == 0 {
		return (&Resource{Work: x.Work, Time: x.Time}).takes(s.Sizes[task])
	}
	return s.bound(x)
}

// launch begins tasks in leases that have room, and gives back those that nothing is left for.
func (s *Sweep) launch(x *site, now time.Duration, a *Actions) {
	for _, l := range slices.Clone(x.leases) {
		switch {
		case !l.signed || l.task >= 0 || now < l.start:
		case len(x.queue) > 0 && now+s.needs(x, x.queue[0]) <= l.end:
			i := x.queue[0]
			x.queue = x.queue[1:]
			s.move(i, Running)
			s.tasks[i].site = x
			s.tasks[i].attempts++
			l.task, l.began = i, now
			a.Launch = append(a.Launch, Launch{i, s.tasks[i].attempts, l.n})
		case !s.stale:
			s.close(l)
			a.Close = append(a.Close, l.n)
		}
	}
	x.buy = min(x.buy, len(x.queue))
}

// lease buys as many leases as a site has lanes free and tasks for.
func (s *Sweep) lease(x *site, now time.Duration, a *Actions) {
	for lanes := x.Lanes - len(x.leases); lanes > 0 && x.buy > 0; lanes-- {
		l, tasks := s.fit(x, now, (x.buy+lanes-1)/lanes)
		if tasks == 0 {
			return
		}
		l.n, l.site, l.task = len(s.leases), x, -1
		s.leases, x.leases = append(s.leases, l), append(x.leases, l)
		s.committed += l.held
		x.buy -= tasks
		a.Buy = append(a.Buy, Buy{l.n, x.Site, l.start, l.end, x.Price, l.held})
	}
}

// fit is the longest lease for at most so many tasks that the terms allow, and the number of tasks.
func (s *Sweep) fit(x *site, now time.Duration, most int) (*lease, int) {
	start := max(now, x.Start)
	if s.Lease == 0 {
		most = 1
	}
	for n := most; n > 0; n-- {
		d := s.needs(x, x.queue[len(x.queue)-x.buy]) + time.Duration(n-1)*s.mean(x)
		if n > 1 && d > s.Lease || d > s.Deadline-start {
			continue
		}
		if cost, err := protocol.Cost(x.Price, 1, d); err == nil && cost <= s.Budget-s.spent-s.committed {
			return &lease{start: start, end: start + d, held: cost}, n
		}
	}
	return nil, 0
}

// Signed notes that a lease was bought, for at most what was committed to it.
func (s *Sweep) Signed(n int, start, end time.Duration, held protocol.Credits) {
	l := s.leases[n]
	s.committed += held - l.held
	l.signed, l.start, l.end, l.held = true, start, end, held
}

// Refused notes that a lease was not bought. The site is asked again after the next trade.
func (s *Sweep) Refused(n int) {
	l := s.leases[n]
	l.site.Lanes = 0
	s.committed -= l.held
	l.held = 0
	s.close(l)
	s.stale = true
}

// Paid notes what a lease cost in the end.
func (s *Sweep) Paid(n int, paid protocol.Credits) {
	l := s.leases[n]
	s.committed -= l.held
	l.held = 0
	s.spent += paid
}

func (s *Sweep) close(l *lease) {
	l.closed = true
	l.site.leases = slices.DeleteFunc(l.site.leases, func(x *lease) bool { return x == l })
}

// End is how an attempt ended.
type End uint8

const (
	Succeeded End = iota
	Exited        // the program failed by itself
	Lost          // the site failed
	Expired       // its lease ended first
)

// Ended notes the end of the attempt that a lease ran.
func (s *Sweep) Ended(now time.Duration, n int, how End) {
	l := s.leases[n]
	x, i := l.site, l.task
	l.task = -1
	s.events++
	if how == Succeeded {
		s.succeeded(x, i, now-l.began)
	} else {
		s.failed(x, i, now, how)
	}
	if s.Lease == 0 {
		s.close(l)
	}
}

func (s *Sweep) succeeded(x *site, i int, took time.Duration) {
	s.move(i, Done)
	x.done, x.streak = x.done+1, 0
	if s.Wall == 0 {
		return
	}
	x.sum, x.longest = x.sum+took, max(x.longest, took)
	if d := s.mean(x) - x.planned; max(d, -d) > x.planned/10 {
		s.stale = true
	}
}

func (s *Sweep) failed(x *site, i int, now time.Duration, how End) {
	t := &s.tasks[i]
	x.failed, x.streak = x.failed+1, x.streak+1
	if x.streak >= Failures {
		x.out, x.outUntil, x.streak = true, now+s.Leave, 0
	}
	switch how {
	case Expired: // its time was bounded too tightly
		x.longest = max(x.longest, s.Wall)
		t.lost++
	case Exited:
		t.exits++
	default:
		t.lost++
	}
	s.stale = true
	if t.exits > s.RetryExit || t.lost > s.RetrySite {
		s.move(i, Failed)
	} else {
		s.move(i, Waiting)
	}
}

func (s *Sweep) move(i int, to State) {
	s.count[s.tasks[i].state]--
	s.tasks[i].state = to
	s.count[to]++
}

// Count is the number of tasks in a state.
func (s *Sweep) Count(of State) int { return s.count[of] }

// Money is what was paid, and what is committed to leases.
func (s *Sweep) Money() (spent, committed protocol.Credits) { return s.spent, s.committed }

// SiteView is what a sweep has at a site.
type SiteView struct {
	Site                    string
	Assigned, Running, Done int
	Failed                  int
}

// Sites are all sites that have made an offer, in that order.
func (s *Sweep) Sites() []SiteView {
	list := make([]SiteView, len(s.sites))
	for i, x := range s.sites {
		v := SiteView{Site: x.Site, Assigned: len(x.queue), Done: x.done, Failed: x.failed}
		for _, l := range x.leases {
			if l.task >= 0 {
				v.Running++
			}
		}
		list[i] = v
	}
	return list
}

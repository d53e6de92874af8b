package sweep

import (
	"slices"
	"time"

	"ramp/protocol"
)

// Terms are what the owner of a sweep may change while it runs. Deadline is since the sweep began.
type Terms struct {
	Strategy Strategy         `json:"strategy"`
	Deadline time.Duration    `json:"deadline"`
	Budget   protocol.Credits `json:"budget"`
	Paused   bool             `json:"paused,omitempty"` // nothing begins
}

// Config is a sweep as it was ordered.
type Config struct {
	Terms
	Equal int     // prices this near form one group, in parts of 10,000
	Sizes []int64 // of the tasks: their lengths where those are known, otherwise 1 each
	// Wall is the most time for one task whose length is not known; 0: lengths are known.
	Wall time.Duration
	// Lease is the longest lease of several tasks; 0: each is for one.
	Lease     time.Duration
	RetryExit int           // how often a task is tried again after its program failed
	RetrySite int           // and after a site failed
	Leave     time.Duration // how long a site is left out after Failures in a row, and awaited if it is silent
	AtOnce    int           // leases at once, at most; 0: any number
	Buying    int           // leases that are being bought at once at a site, at most; 0: any number
	Before    time.Duration // from the order of a lease to its start
	Slack     time.Duration // of each lease: what it takes until a task begins
	Round     time.Duration // leases begin and end at multiples of it; 0: at any time
	Release   time.Duration // until a site sells what is left of a lease that was given back
}

// MaxLeases bounds the leases of a sweep, bought or refused.
const MaxLeases = 1 << 14

// Failures in a row leave a site out of the next plans.
const Failures = 3

// Offer is what a site offers, as traded.
type Offer struct {
	Site  string
	Price protocol.Credits // of a lane for an hour
	Lanes int              // at most so many at once
	Start time.Duration    // of the earliest lease
	Heard time.Duration    // when it was made
	Work  int64            // what a lane does in Time, where lengths are known
	Time  time.Duration
}

// Sweep decides where the tasks of a sweep run. It never reads a clock: all times are since the
// sweep began.
type Sweep struct {
	Config
	tasks  []Task
	sites  []*site
	leases []*Lease
	count  [Failed + 1]int

	spent, committed protocol.Credits
	used             protocol.Credits // what the times of the tasks done would have cost

	stale  bool // what the plan was made from has changed
	events int  // since the plan was made
	plan   Plan
}

// New creates a sweep all of whose tasks wait.
func New(c Config) *Sweep {
	s := &Sweep{Config: c, tasks: make([]Task, len(c.Sizes))}
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

// Trade replaces all offers. A site that is not among them gets no more leases. For the time Leave tasks wait for it
// if the deadline allows, since a cheap site may only be silent for a moment.
func (s *Sweep) Trade(now time.Duration, offers []Offer) {
	for _, x := range s.sites {
		if x.silent = true; now >= x.Heard+s.Leave {
			x.Lanes = 0
		}
	}
	for _, o := range offers {
		x := s.site(o.Site)
		x.Offer, x.silent = o, false
		x.Heard = now
		if now < x.refusedUntil && x.pause > pauseShort {
			x.Lanes = min(x.Lanes, len(x.leases))
		}
	}
	s.again()
}

// Offers are the last offers of all sites.
func (s *Sweep) Offers() []Offer {
	list := make([]Offer, len(s.sites))
	for i, x := range s.sites {
		list[i] = x.Offer
	}
	return list
}

// site is the site of a name, which is new if need be.
func (s *Sweep) site(name string) *site {
	i := slices.IndexFunc(s.sites, func(x *site) bool { return x.Site == name })
	if i < 0 {
		i = len(s.sites)
		s.sites = append(s.sites, &site{Offer: Offer{Site: name}})
	}
	return s.sites[i]
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

// Any reports whether there is something to do.
func (a Actions) Any() bool { return len(a.Buy)+len(a.Launch)+len(a.Close) > 0 }

// Act plans again if anything has changed, and says what to do.
func (s *Sweep) Act(now time.Duration) Actions {
	for _, x := range s.sites {
		if x.out && x.outUntil <= now {
			x.out = false
			s.again()
		}
	}
	if s.due() {
		s.Advise(now)
	}
	var a Actions
	for _, x := range s.sites {
		s.launch(x, now, &a)
		if !s.Paused {
			s.lease(x, now, &a)
		}
	}
	return a
}

// due reports whether to plan again. Where many tasks wait, changes are collected, so that a plan's
// work is spread over many events. Without a lease there is nothing to wait for.
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
		if x.refusedUntil > now {
			next = min(next, x.refusedUntil)
		}
		for _, l := range x.leases {
			for _, at := range []time.Duration{l.Start, l.End, l.began + young} {
				if at > now {
					next = min(next, at)
				}
			}
		}
		for _, at := range append(x.released(now), x.refusedUntil) {
			if at > now {
				next = min(next, at)
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

// Problem is what is not dispatched yet, on the leases and offers there are; tasks are the indexes of
// its Sizes, and from the sites of its Resources.
func (s *Sweep) problem(now time.Duration) (p Problem, tasks []int, from []source) {
	p = Problem{Strategy: s.Strategy, Now: now, Deadline: s.Deadline, Money: max(0, s.Budget-s.spent-s.committed), Equal: s.Equal}
	for i := range s.tasks {
		if s.tasks[i].State <= Assigned {
			tasks, p.Sizes = append(tasks, i), append(p.Sizes, s.Sizes[i])
		}
	}
	for _, x := range s.sites {
		if !x.out {
			p.Resources, from = s.resources(x, now, p.Resources, from)
		}
	}
	overhead := s.overhead(now)
	for i := range p.Resources {
		p.Resources[i].Price = p.Resources[i].Price * overhead / 1_000
	}
	return p, tasks, from
}

// Problem is what is left to plan at an instant.
func (s *Sweep) Problem(now time.Duration) Problem {
	p, _, _ := s.problem(now)
	return p
}

// Advise takes back every task that is not dispatched and assigns all anew.
func (s *Sweep) Advise(now time.Duration) {
	p, tasks, from := s.problem(now)
	for _, i := range tasks {
		s.move(i, Waiting)
	}
	for _, x := range s.sites {
		x.queue, x.buy = x.queue[:0], 0
		x.planned = s.mean(x)
	}
	s.plan = Advise(p)
	for i, list := range s.plan.Tasks {
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
		r.Until -= max(0, s.bound(x)-r.Time) // what a slow task may take longer
	}
	fresh := r
	for _, l := range x.leases {
		if s.Lease > 0 {
			leased := r
			leased.Price, leased.Lanes, leased.Until = 0, []time.Duration{s.free(l, now)}, min(r.Until, l.End-(s.Deadline-r.Until))
			list, from = append(list, leased), append(from, source{x, true})
		}
		if len(fresh.Lanes) < x.Lanes {
			fresh.Lanes = append(fresh.Lanes, l.End)
		}
	}
	for _, at := range x.released(now) {
		if len(fresh.Lanes) < x.Lanes {
			fresh.Lanes = append(fresh.Lanes, max(at, s.start(x, now)))
		}
	}
	for len(fresh.Lanes) < x.Lanes {
		fresh.Lanes = append(fresh.Lanes, s.start(x, now))
	}
	if len(fresh.Lanes) > 0 {
		list, from = append(list, fresh), append(from, source{x, false})
	}
	return list, from
}

// launch begins tasks in leases that have room, and gives back those that nothing is left for.
func (s *Sweep) launch(x *site, now time.Duration, a *Actions) {
	for _, l := range slices.Clone(x.leases) {
		switch at := x.next(s.tasks); {
		case !l.Signed || l.task >= 0 || now < l.Start || s.Paused && now < l.End:
		case at >= 0 && !s.Paused && now+s.needs(x, x.queue[at]) <= l.End:
			if s.doubtful(x, now) {
				continue
			}
			i := x.queue[at]
			x.queue = slices.Delete(x.queue, at, at+1)
			s.move(i, Running)
			s.tasks[i].Attempts = append(s.tasks[i].Attempts, Attempt{Lease: l.n, Site: x.Site, Began: now})
			l.task, l.began = i, now
			a.Launch = append(a.Launch, Launch{i, len(s.tasks[i].Attempts), l.n})
		case !s.stale && !s.useful(x, l, now):
			l.giveBack(now, s.Release)
			a.Close = append(a.Close, l.n)
		}
	}
	x.buy = min(x.buy, len(x.queue))
}

// next is the place in a site's queue of the task to begin next, or -1. One whose program failed here
// waits until no other does.
func (x *site) next(tasks []Task) int {
	if len(x.queue) == 0 {
		return -1
	}
	for at, i := range x.queue {
		if !tasks[i].failedAt(x.Site) {
			return at
		}
	}
	return 0
}

// useful reports whether something may still run in a lease that is paid: a task that fails elsewhere,
// if not one of the queue.
func (s *Sweep) useful(x *site, l *Lease, now time.Duration) bool {
	return s.Lease > 0 && s.count[Done]+s.count[Failed] < len(s.tasks) && now+s.bound(x) <= l.End
}

// lease buys as many leases as a site has lanes free and tasks for.
func (s *Sweep) lease(x *site, now time.Duration, a *Actions) {
	if x.silent || now < x.refusedUntil {
		return
	}
	for lanes := x.Lanes - len(x.leases) - len(x.released(now)); lanes > 0 && x.buy > 0 && s.mayBuy(x); lanes-- {
		l, tasks := s.fit(x, now, s.share(x, now))
		if tasks == 0 {
			return
		}
		l.Site, l.n, l.site, l.task = x.Site, len(s.leases), x, -1
		s.leases, x.leases = append(s.leases, l), append(x.leases, l)
		s.committed += l.Held
		x.buy -= tasks
		a.Buy = append(a.Buy, Buy{l.n, x.Site, l.Start, l.End, x.Price, l.Held})
	}
}

// mayBuy reports whether the bounds allow one more lease at a site.
func (s *Sweep) mayBuy(x *site) bool {
	buying := 0
	for _, l := range x.leases {
		if !l.Signed {
			buying++
		}
	}
	return len(s.leases) < MaxLeases && (s.AtOnce == 0 || live(s.sites) < s.AtOnce) && (s.Buying == 0 || buying < s.Buying)
}

// share is how many of the tasks to buy for go to a lane that is free now, if each goes to the lane
// that is free first: those that are leased until soon have a share, too.
func (s *Sweep) share(x *site, now time.Duration) int {
	var ends []time.Duration
	for _, l := range x.leases {
		ends = append(ends, max(0, l.End-s.start(x, now)))
	}
	for _, at := range x.released(now) {
		ends = append(ends, max(0, at-now))
	}
	slices.Sort(ends)
	mean, lanes := max(1, s.mean(x)), time.Duration(x.Lanes-len(ends))
	work := time.Duration(x.buy) * mean
	for _, end := range ends {
		if work <= end*lanes {
			break
		}
		work, lanes = work+end, lanes+1
	}
	return min(x.buy, int((work/lanes+mean-1)/mean))
}

func live(sites []*site) int {
	n := 0
	for _, x := range sites {
		n += len(x.leases)
	}
	return n
}

// fit is the longest lease for at most so many tasks that the terms allow, and the number of tasks.
// Where nothing is known of their lengths, it is for one.
func (s *Sweep) fit(x *site, now time.Duration, most int) (*Lease, int) {
	start := s.start(x, now)
	if s.Lease == 0 || s.Wall > 0 && !measured(s.sites) {
		most = 1
	}
	for n := most; n > 0; n-- {
		d := up(s.Round, s.Slack+s.needs(x, x.queue[len(x.queue)-x.buy])+time.Duration(n-1)*s.mean(x))
		if n > 1 && d > s.Lease || d > s.Deadline-start {
			continue
		}
		if cost, err := protocol.Cost(x.Price, 1, d); err == nil && cost <= s.Budget-s.spent-s.committed {
			return &Lease{Start: start, End: start + d, Held: cost}, n
		}
	}
	return nil, 0
}

// start is when a lease that is ordered now begins at the earliest. Where one was refused, perhaps
// because its start had passed, the next begins later. From a silent site nothing is expected soon.
func (s *Sweep) start(x *site, now time.Duration) time.Duration {
	if x.silent {
		now = max(now, x.Heard+s.Leave)
	}
	return up(s.Round, max(now+s.Before+x.pause, x.Start, x.refusedUntil))
}

func up(round, d time.Duration) time.Duration {
	if round == 0 {
		return d
	}
	return (d + round - 1) / round * round
}

func (s *Sweep) needs(x *site, task int) time.Duration {
	if s.Wall == 0 {
		return (&Resource{Work: x.Work, Time: x.Time}).takes(s.Sizes[task])
	}
	return s.bound(x)
}

// Restore takes tasks, leases and the last offers, as they were saved. Leases not signed yet are still being
// bought, and no site is heard yet.
func (s *Sweep) Restore(tasks []Task, leases []Lease, offers []Offer) {
	for _, o := range offers {
		x := s.site(o.Site)
		x.Offer, x.silent = o, true
	}
	for i := range leases {
		l := leases[i]
		l.n, l.site, l.task = i, s.site(l.Site), -1
		s.leases = append(s.leases, &l)
		s.spent += l.Paid
		s.committed += l.Held
		if !l.Closed {
			l.site.leases = append(l.site.leases, &l)
		}
	}
	type ended struct {
		task int
		Attempt
	}
	var all []ended
	for i, t := range tasks {
		if t.State == Assigned {
			t.State = Waiting
		}
		s.tasks[i] = t
		s.count[Waiting]--
		s.count[t.State]++
		for _, a := range t.Attempts {
			if a.How != "" {
				all = append(all, ended{i, a})
			}
		}
		if t.State == Running {
			a := t.last()
			s.leases[a.Lease].task, s.leases[a.Lease].began = i, a.Began
		}
	}
	slices.SortFunc(all, func(a, b ended) int { return int(a.Ended - b.Ended) })
	for _, e := range all {
		x := s.site(e.Site)
		s.used += x.used(e.Attempt)
		if x.learn(e.Attempt); x.streak >= Failures && len(s.sites) > 1 { // which of the others sold is not known
			s.leaveOut(x, e.Ended)
		}
	}
	s.again()
}

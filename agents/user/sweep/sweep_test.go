package sweep_test

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/agents/user/sweep"
	"ramp/protocol"
)

// market is what a sweep meets: sites that refuse leases, lose tasks, are slower than expected, and
// programs that fail.
type market struct {
	t      *rapid.T
	s      *sweep.Sweep
	c      sweep.Config
	now    time.Duration
	takes  []time.Duration // of each task, on the fastest site
	slow   map[string]int  // factor of a site
	leases map[int]*held
	done   map[int]bool
	tries  map[int]int
	bought int // leases so far
}

// held is a lease as its site sees it.
type held struct {
	sweep.Buy
	signed bool
	task   int // -1: none
	until  time.Duration
}

func newMarket(t *rapid.T) *market {
	m := &market{t: t, slow: map[string]int{}, leases: map[int]*held{}, done: map[int]bool{}, tries: map[int]int{}}
	second := func(least, most int, what string) time.Duration {
		return time.Duration(rapid.IntRange(least, most).Draw(t, what)) * time.Second
	}
	m.c = sweep.Config{
		Terms: sweep.Terms{
			Strategy: rapid.SampledFrom(sweep.Strategies()).Draw(t, "strategy"), Deadline: second(60, 2000, "deadline"),
			Budget: protocol.Credits(rapid.IntRange(1, 400).Draw(t, "budget")) * protocol.Credit,
		},
		Equal: 200, Wall: second(5, 60, "wall"), Lease: second(60, 600, "lease"), Slack: time.Second, RetryExit: 1, RetrySite: 5, Leave: second(1, 300, "leave"),
	}
	for range rapid.IntRange(1, 40).Draw(t, "tasks") {
		m.c.Sizes = append(m.c.Sizes, 1)
		m.takes = append(m.takes, second(1, int(m.c.Wall/time.Second), "takes"))
	}
	m.s = sweep.New(m.c)
	m.trade()
	return m
}

// trade draws new offers.
func (m *market) trade() {
	var offers []sweep.Offer
	for _, name := range []string{"a", "b", "c"} {
		if !rapid.Bool().Draw(m.t, "offers") {
			continue
		}
		m.slow[name] = rapid.IntRange(1, 2).Draw(m.t, "slow")
		offers = append(offers, sweep.Offer{
			Site: name, Price: protocol.Credits(rapid.IntRange(1, 400).Draw(m.t, "price")) * protocol.Credit,
			Lanes: rapid.IntRange(1, 3).Draw(m.t, "lanes"), Start: m.now + time.Duration(rapid.IntRange(0, 30).Draw(m.t, "start"))*time.Second,
		})
	}
	m.s.Trade(m.now, offers)
}

// act does what the sweep wants done.
func (m *market) act() {
	for a := m.s.Act(m.now); len(a.Buy)+len(a.Launch)+len(a.Close) > 0; a = m.s.Act(m.now) {
		for _, b := range a.Buy {
			if b.Start < m.now || b.End > m.c.Deadline || b.End <= b.Start {
				m.t.Fatalf("at %s lease %+v by a deadline of %s", m.now, b, m.c.Deadline)
			}
			m.bought = max(m.bought, b.Lease+1)
			m.leases[b.Lease] = &held{Buy: b, task: -1}
		}
		for _, l := range a.Launch {
			m.launch(l)
		}
		for _, n := range a.Close {
			m.close(n)
		}
	}
	spent, committed := m.s.Money()
	if spent+committed > m.c.Budget {
		m.t.Fatalf("at %s %s are spent and %s committed, of %s", m.now, spent, committed, m.c.Budget)
	}
}

func (m *market) launch(l sweep.Launch) {
	h := m.leases[l.Lease]
	m.tries[l.Task]++
	switch {
	case h == nil || !h.signed || h.task >= 0 || m.now < h.Start || m.now >= h.End:
		m.t.Fatalf("at %s a launch in %+v", m.now, h)
	case m.done[l.Task] || m.tries[l.Task] != l.Attempt:
		m.t.Fatalf("task %d: attempt %d, done %v", l.Task, l.Attempt, m.done[l.Task])
	}
	for _, other := range m.leases {
		if other.task == l.Task {
			m.t.Fatalf("task %d runs twice", l.Task)
		}
	}
	h.task, h.until = l.Task, min(h.End, m.now+m.takes[l.Task]*time.Duration(m.slow[h.Site]))
}

// close ends a lease; some sites give back what was not used.
func (m *market) close(n int) {
	h := m.leases[n]
	if h == nil || h.task >= 0 {
		m.t.Fatalf("lease %d is given back while it runs something", n)
	}
	delete(m.leases, n)
	paid := h.Most
	if rapid.Bool().Draw(m.t, "refund") {
		paid /= 2
	}
	m.s.Account(n, paid, 0)
}

// happen lets a lease be signed or refused, and a task end.
func (m *market) happen() {
	for n, h := range m.sorted() {
		switch {
		case h == nil:
		case !h.signed && rapid.IntRange(0, 4).Draw(m.t, "signed") > 0:
			h.signed = true
			m.s.Signed(n, h.Start, h.End, h.Most)
		case !h.signed:
			delete(m.leases, n)
			m.s.Refused(m.now, n, "")
		case h.task >= 0 && m.now >= h.until:
			m.end(n, h)
		}
	}
}

// sorted are the leases by number; nil for those that are over.
func (m *market) sorted() []*held {
	var list []*held
	for n := 0; len(m.leases) > 0 && n <= 100_000; n++ {
		list = append(list, m.leases[n])
		left := 0
		for k := range m.leases {
			if k > n {
				left++
			}
		}
		if left == 0 {
			break
		}
	}
	return list
}

func (m *market) end(n int, h *held) {
	how := sweep.Succeeded
	switch chance := rapid.IntRange(0, 19).Draw(m.t, "end"); {
	case h.until == h.End && m.takes[h.task]*time.Duration(m.slow[h.Site]) > 0 && chance > 17:
		how = sweep.Expired
	case chance == 0:
		how = sweep.Exited
	case chance == 1:
		how = sweep.Lost
	}
	if how == sweep.Succeeded {
		m.done[h.task] = true
	}
	h.task = -1
	if i := m.s.Ended(m.now, n, how, 0, ""); how == sweep.Succeeded {
		m.s.Fetched(i)
	}
}

// restart restores the sweep from what is saved of it. The money is the same.
func (m *market) restart() {
	var tasks []sweep.Task
	var leases []sweep.Lease
	copied := func(from, to any) {
		b, err := json.Marshal(from)
		if err == nil {
			err = json.Unmarshal(b, to)
		}
		if err != nil {
			m.t.Fatal(err)
		}
	}
	for i := range m.s.Len() {
		var x sweep.Task
		copied(m.s.Task(i), &x)
		tasks = append(tasks, x)
	}
	for n := range m.bought {
		var l sweep.Lease
		copied(m.s.At(n), &l)
		leases = append(leases, l)
	}
	var offers []sweep.Offer
	copied(m.s.Offers(), &offers)
	spent, committed := m.s.Money()
	m.s = sweep.New(m.c)
	m.s.Restore(tasks, leases, offers)
	if s, c := m.s.Money(); s != spent || c != committed {
		m.t.Fatalf("%s spent and %s committed, restored as %s and %s", spent, committed, s, c)
	}
	m.trade()
}

// run goes on until nothing is left to happen.
func (m *market) run() {
	for range 4000 {
		m.act()
		next := m.s.Next(m.now)
		for _, h := range m.leases {
			if !h.signed {
				next = m.now + time.Second
				break
			}
			if h.task >= 0 && (next == 0 || h.until < next) {
				next = h.until
			}
		}
		if next == 0 {
			return
		}
		m.now = max(m.now, next)
		m.happen()
		if rapid.IntRange(0, 30).Draw(m.t, "restart") == 0 {
			m.restart()
		}
		if rapid.IntRange(0, 30).Draw(m.t, "trade") == 0 {
			m.trade()
		}
	}
	m.t.Fatal("it does not come to its end")
}

// A sweep keeps to its budget and deadline whatever happens, runs no task twice at once, uses no
// result twice, and comes to an end.
func TestASweepKeepsItsTerms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMarket(t)
		m.run()
		if len(m.leases) > 0 {
			t.Fatalf("at %s %d leases are not over", m.now, len(m.leases))
		}
		if n := m.s.Count(sweep.Done); n != len(m.done) {
			t.Fatalf("%d tasks done, it counts %d", len(m.done), n)
		}
		if m.s.Count(sweep.Running) > 0 {
			t.Fatalf("%d tasks run for ever", m.s.Count(sweep.Running))
		}
		if _, committed := m.s.Money(); committed != 0 {
			t.Fatalf("%s stay committed", committed)
		}
	})
}

// Where nothing fails, and money and time are plenty, all tasks are done, in as few leases as there
// are lanes unless the longest lease is too short for that.
func TestAllTasksAreDoneWhereTheyCanBe(t *testing.T) {
	c := sweep.Config{
		Terms: sweep.Terms{Strategy: sweep.CostTime, Deadline: time.Hour, Budget: 1000 * protocol.Credit},
		Sizes: make([]int64, 40), Wall: 10 * time.Second, Lease: time.Hour, Slack: time.Second, RetryExit: 1, RetrySite: 5, Leave: time.Minute,
	}
	for i := range c.Sizes {
		c.Sizes[i] = 1
	}
	s := sweep.New(c)
	s.Trade(0, []sweep.Offer{{Site: "a", Price: protocol.Credit, Lanes: 2}, {Site: "b", Price: 3 * protocol.Credit, Lanes: 2}})
	bought, ends := 0, map[int]time.Duration{}
	for now := time.Duration(0); s.Count(sweep.Done) < 40; now += time.Second {
		if now > time.Hour {
			t.Fatalf("%d done", s.Count(sweep.Done))
		}
		for n, end := range ends {
			if end == now {
				delete(ends, n)
				s.Fetched(s.Ended(now, n, sweep.Succeeded, 0, ""))
			}
		}
		a := s.Act(now)
		for _, b := range a.Buy {
			bought++
			if b.Site != "a" {
				t.Errorf("a lease at %s, which is dearer", b.Site)
			}
			s.Signed(b.Lease, b.Start, b.End, b.Most)
		}
		for _, l := range a.Launch {
			ends[l.Lease] = now + time.Second
		}
	}
	if bought > 4 { // the first two are for one task each, whose length is not known yet
		t.Errorf("%d leases", bought)
	}
}

// site is a site of a deterministic market: how long a task takes there from a moment on, and whether
// its program fails there.
type site struct {
	offer sweep.Offer
	takes func(now time.Duration) time.Duration
	fails bool
}

// drive runs a sweep on sites that sell whatever is asked for, and returns the attempts at each.
func drive(t *testing.T, c sweep.Config, sites []site) (s *sweep.Sweep, end time.Duration, began map[string][]time.Duration) {
	t.Helper()
	s, began = sweep.New(c), map[string][]time.Duration{}
	of := map[string]site{}
	var offers []sweep.Offer
	for _, x := range sites {
		of[x.offer.Site] = x
		offers = append(offers, x.offer)
	}
	s.Trade(0, offers)
	ends := map[int]time.Duration{}
	for now := time.Duration(0); s.Count(sweep.Done)+s.Count(sweep.Failed) < s.Len(); now += time.Second {
		if now > c.Deadline {
			t.Fatalf("%d of %d tasks are done by the deadline", s.Count(sweep.Done), s.Len())
		}
		for n, at := range ends { // in any order: each is at a site of its own or takes its turn
			if at > now {
				continue
			}
			delete(ends, n)
			if of[s.At(n).Site].fails {
				s.Ended(now, n, sweep.Exited, 127, "")
			} else {
				s.Fetched(s.Ended(now, n, sweep.Succeeded, 0, ""))
			}
		}
		for a := s.Act(now); a.Any(); a = s.Act(now) {
			for _, b := range a.Buy {
				s.Signed(b.Lease, b.Start, b.End, b.Most)
				s.Account(b.Lease, b.Most, 0)
			}
			for _, l := range a.Launch {
				x := of[s.At(l.Lease).Site]
				began[x.offer.Site] = append(began[x.offer.Site], now)
				ends[l.Lease] = now + x.takes(now)
			}
		}
		end = now
	}
	return s, end, began
}

func liveConfig(tasks int) sweep.Config {
	c := sweep.Config{
		Terms: sweep.Terms{Strategy: sweep.CostTime, Deadline: time.Hour, Budget: 1000 * protocol.Credit},
		Sizes: make([]int64, tasks), Wall: time.Minute, Lease: 15 * time.Minute, Slack: 2 * time.Second,
		RetryExit: 1, RetrySite: 5, Leave: time.Hour,
	}
	for i := range c.Sizes {
		c.Sizes[i] = 1
	}
	return c
}

func always(d time.Duration) func(time.Duration) time.Duration {
	return func(time.Duration) time.Duration { return d }
}

// Where the program fails at once, it fails three times at most, however many lanes there are; all
// tasks are done elsewhere.
func TestASiteThatFailsAtOnceGetsNoMore(t *testing.T) {
	for _, x := range []struct{ lanes, tasks int }{{1, 24}, {2, 24}, {64, 24}, {8, 1000}} {
		s, _, began := drive(t, liveConfig(x.tasks), []site{
			{sweep.Offer{Site: "bad", Price: protocol.Credit, Lanes: x.lanes}, always(0), true},
			{sweep.Offer{Site: "good", Price: 2 * protocol.Credit, Lanes: x.lanes}, always(5 * time.Second), false},
		})
		if n := len(began["bad"]); n > sweep.Failures || s.Count(sweep.Done) != x.tasks {
			t.Errorf("%d lanes: %d attempts at the bad site, %d tasks done", x.lanes, n, s.Count(sweep.Done))
		}
	}
}

// A site that goes on failing gets one task after it was left out, and is left out for twice as long each time.
func TestASiteThatGoesOnFailingGetsFewerAndFewer(t *testing.T) {
	c := liveConfig(30)
	c.Leave, c.Wall = 5*time.Minute, 2*time.Minute
	s, end, began := drive(t, c, []site{
		{sweep.Offer{Site: "bad", Price: protocol.Credit, Lanes: 4}, always(0), true},
		{sweep.Offer{Site: "good", Price: 2 * protocol.Credit, Lanes: 1}, always(time.Minute), false},
	})
	if n := len(began["bad"]); end < 25*time.Minute || n < sweep.Failures+1 || n > sweep.Failures+2 || s.Count(sweep.Done) != 30 {
		t.Errorf("by %s %d attempts at the bad site, at %v; %d tasks done", end, n, began["bad"], s.Count(sweep.Done))
	}
}

// A site that is left out is so after a restart, and then gets tasks again; one that the others do not
// sell to, but have leases for, is left out as well.
func TestASiteIsLeftOutAcrossARestartAndByThoseWithLeases(t *testing.T) {
	for _, restart := range []bool{false, true} {
		c := liveConfig(40)
		c.Strategy, c.RetryExit, c.Leave = sweep.Time, 20, time.Minute
		s := sweep.New(c)
		good, bad := sweep.Offer{Site: "good", Price: 2 * protocol.Credit, Lanes: 1}, sweep.Offer{Site: "bad", Price: protocol.Credit, Lanes: 1}
		s.Trade(0, []sweep.Offer{good})
		bought := 0
		at := func(now time.Duration) map[string]int { // the leases in which something begins, by site
			began := map[string]int{}
			for a := s.Act(now); a.Any(); a = s.Act(now) {
				for _, b := range a.Buy {
					bought++
					s.Signed(b.Lease, b.Start, b.End, b.Most)
				}
				for _, l := range a.Launch {
					began[s.At(l.Lease).Site] = l.Lease
				}
			}
			return began
		}
		s.Fetched(s.Ended(time.Second, at(0)["good"], sweep.Succeeded, 0, ""))
		at(time.Second)
		s.Trade(time.Second, []sweep.Offer{bad}) // the good one has sold what it had
		now := time.Second
		for i := range sweep.Failures {
			n, ok := at(now)["bad"]
			if !ok {
				t.Fatalf("failure %d: nothing begins at the bad site", i)
			}
			now += time.Second
			s.Ended(now, n, sweep.Exited, 127, "")
		}
		if restart {
			var tasks []sweep.Task
			var leases []sweep.Lease
			for i := range s.Len() {
				tasks = append(tasks, *s.Task(i))
			}
			for n := range bought {
				leases = append(leases, *s.At(n))
			}
			s = sweep.New(c)
			s.Restore(tasks, leases, nil)
			s.Trade(now, []sweep.Offer{bad})
		}
		if _, ok := at(now)["bad"]; ok {
			t.Errorf("restart %v: a task begins where three have failed", restart)
		}
		now += c.Leave + time.Second
		if _, ok := at(now)["bad"]; !ok {
			t.Errorf("restart %v: no task begins there later", restart)
		}
	}
}

// A program that fails everywhere is at fault itself: each task is tried as often as its owner said,
// and no site is left out for it for ever.
func TestAProgramThatFailsEverywhereEnds(t *testing.T) {
	for _, n := range []int{1, 2, 3} {
		var sites []site
		for i := range n {
			sites = append(sites, site{sweep.Offer{Site: string(rune('a' + i)), Price: protocol.Credit, Lanes: 2}, always(time.Second), true})
		}
		s, _, began := drive(t, liveConfig(6), sites)
		all := 0
		for _, list := range began {
			all += len(list)
		}
		if s.Count(sweep.Failed) != 6 || all > 6*3 {
			t.Errorf("%d sites: %d failed, %d attempts", n, s.Count(sweep.Failed), all)
		}
	}
}

// A site that becomes four times slower loses its share, and the deadline holds.
func TestASiteThatBecomesSlowLosesItsShare(t *testing.T) {
	c := liveConfig(400)
	c.Deadline = 20 * time.Minute
	_, end, began := drive(t, c, []site{
		{sweep.Offer{Site: "slows", Price: protocol.Credit, Lanes: 2}, func(now time.Duration) time.Duration {
			if now > 2*time.Minute {
				return 20 * time.Second
			}
			return 5 * time.Second
		}, false},
		{sweep.Offer{Site: "steady", Price: protocol.Credit, Lanes: 2}, always(5 * time.Second), false},
	})
	late := 0
	for _, at := range began["slows"] {
		if at > 2*time.Minute {
			late++
		}
	}
	if rest := len(began["steady"]); end > c.Deadline || late*3 > rest {
		t.Errorf("ends at %s; %d tasks at the slow site since, %d at the other", end, late, rest)
	}
}

// Lanes that become free one after the other share what is left: none waits for the other's lease.
func TestLanesOfASiteShareTheTasks(t *testing.T) {
	c := liveConfig(60)
	c.Wall, c.Before, c.Round = 30*time.Second, 2*time.Second, time.Second
	n := 0
	_, end, _ := drive(t, c, []site{{sweep.Offer{Site: "a", Price: protocol.Credit, Lanes: 2}, func(time.Duration) time.Duration {
		if n++; n%5 == 0 { // the lanes fall out of step
			return 9 * time.Second
		}
		return 2 * time.Second
	}, false}})
	if end > 115*time.Second { // the tasks take 102 s of both
		t.Errorf("ends at %s", end)
	}
}

// A site that refuses a lease is asked again in a moment, and its tasks wait for it; if it goes on
// refusing, they go elsewhere.
func TestTasksWaitForASiteThatRefusesForAMoment(t *testing.T) {
	c := liveConfig(4)
	c.Strategy = sweep.Cost
	s := sweep.New(c)
	s.Trade(0, []sweep.Offer{{Site: "cheap", Price: protocol.Credit, Lanes: 1}, {Site: "dear", Price: 9 * protocol.Credit, Lanes: 4}})
	now, refusals := time.Duration(0), 0
	for ; now < time.Minute; now += time.Second {
		a := s.Act(now)
		if len(a.Buy) == 0 {
			continue
		}
		if a.Buy[0].Site == "dear" {
			break
		}
		refusals++
		s.Refused(now, a.Buy[0].Lease, "busy")
		again := s.Act(now)
		if len(again.Buy) > 0 && again.Buy[0].Site == "dear" {
			break
		}
		if again.Any() {
			t.Fatalf("at %s, at once after a refusal: %+v", now, again)
		}
	}
	if refusals != 4 || now > 20*time.Second {
		t.Errorf("%d refusals, and tasks go elsewhere after %s", refusals, now)
	}
}

// A site that is silent for a trade is awaited where there is time, also after a restart, and forgotten after
// Leave; where there is no time, tasks go to one that is dearer.
func TestTasksWaitForASilentSite(t *testing.T) {
	near, far := sweep.Offer{Site: "cheap", Price: protocol.Credit, Lanes: 4}, sweep.Offer{Site: "dear", Price: 9 * protocol.Credit, Lanes: 4}
	for _, x := range []struct {
		name     string
		deadline time.Duration
		later    time.Duration
		restart  bool
		want     string
	}{
		{"there is time", time.Hour, 10 * time.Second, false, ""},
		{"there is time, and its agent has restarted", time.Hour, 10 * time.Second, true, ""},
		{"it stays silent", time.Hour, 6 * time.Minute, false, "dear"},
		{"there is no time", 4 * time.Minute, 10 * time.Second, false, "dear"},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := liveConfig(8)
			c.Deadline, c.Leave = x.deadline, 5*time.Minute
			s := sweep.New(c)
			s.Trade(0, []sweep.Offer{near, far})
			if x.restart {
				offers := s.Offers()
				s = sweep.New(c)
				s.Restore(make([]sweep.Task, 8), nil, offers)
			}
			s.Trade(x.later, []sweep.Offer{far})
			var at string
			for _, b := range s.Act(x.later).Buy {
				at = b.Site
			}
			if at != x.want {
				t.Errorf("it buys at %q, want %q", at, x.want)
			}
			back := x.later + time.Second
			s.Trade(back, []sweep.Offer{near, far})
			if buys := s.Act(back).Buy; x.want == "" && (len(buys) == 0 || buys[0].Site != "cheap") {
				t.Errorf("it buys %v when the site is back", buys)
			}
		})
	}
}

// What leases cost beyond the times of their tasks is expected of those to come.
func TestThePlanExpectsLeasesToCostWhatTheyDid(t *testing.T) {
	const tasks = 40
	c := liveConfig(tasks)
	c.Lease, c.Budget = 0, 100_000*protocol.Credit
	s := sweep.New(c)
	s.Trade(0, []sweep.Offer{{Site: "a", Price: 3600 * protocol.Credit, Lanes: 1}})
	now := time.Duration(0)
	for range 3 { // tasks of 10 s in leases of 62 s, 18 s and 18 s
		a := s.Act(now)
		b := a.Buy[0]
		s.Signed(b.Lease, b.Start, b.End, b.Most)
		for a = s.Act(max(now, b.Start)); len(a.Launch) == 0; a = s.Act(b.Start) {
		}
		s.Fetched(s.Ended(b.Start+10*time.Second, b.Lease, sweep.Succeeded, 0, ""))
		s.Account(b.Lease, b.Most, 0)
		now = b.End
	}
	spent, _ := s.Money()
	s.Advise(now)
	each, left := float64(spent)/3, float64(tasks-3)
	if cost := float64(s.Advice().Cost); cost < .95*each*left || cost > 1.05*each*left {
		t.Errorf("%.0f are expected for %.0f tasks, of which three cost %.0f", cost, left, float64(spent))
	}
}

// At most Buying leases are bought at a site at once, and what was given back is not asked for at once.
func TestLeasesAreBoughtAFewAtATimeAndNotWhereOneWasJustGivenBack(t *testing.T) {
	c := liveConfig(40)
	c.Strategy, c.Lease, c.Buying, c.Release = sweep.Time, 0, 2, 3*time.Second
	s := sweep.New(c)
	s.Trade(0, []sweep.Offer{{Site: "a", Price: protocol.Credit, Lanes: 8}})
	var first []sweep.Buy
	for n := range 4 {
		a := s.Act(0)
		if len(a.Buy) != 2 || len(s.Act(0).Buy) != 0 {
			t.Fatalf("round %d: %d leases at once", n, len(a.Buy))
		}
		for _, b := range a.Buy {
			s.Signed(b.Lease, b.Start, b.End, b.Most)
		}
		first = append(first, a.Buy...)
	}
	if a := s.Act(0); len(a.Buy) != 0 {
		t.Fatalf("%d leases on no lane", len(a.Buy))
	}
	now := first[0].Start
	for a := s.Act(now); a.Any(); a = s.Act(now) {
		for _, b := range a.Buy {
			s.Signed(b.Lease, b.Start, b.End, b.Most)
		}
	}
	s.Fetched(s.Ended(now, first[0].Lease, sweep.Succeeded, 0, "")) // its lease is given back
	for d := time.Duration(0); d < c.Release; d += time.Second {
		if a := s.Act(now + d); len(a.Buy) != 0 {
			t.Errorf("%s after a lane was given back %d leases are bought", d, len(a.Buy))
		}
	}
	if a := s.Act(now + c.Release); len(a.Buy) != 1 {
		t.Errorf("when it can be sold again %d leases are bought, want 1", len(a.Buy))
	}
}

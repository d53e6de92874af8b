package sweeper

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"ramp/agents/user/sweep"
	"ramp/protocol"
	"ramp/protocol/message"
)

// The states of a sweep.
const (
	stateRunning = "running"
	statePaused  = "paused"
	stateShort   = "short" // tasks are left for which there is no time, money or site
	stateDone    = "done"
	stateFailed  = "failed"
	stateKilled  = "killed"
)

// barrenMost trades without a lease end the hope that a site will sell one soon.
const barrenMost = 3

func (x *live) state(now time.Time) string {
	done, failed := x.Count(sweep.Done), x.Count(sweep.Failed)
	switch {
	case x.stuck[x.Order.ID] != "" && x.shown != statePaused:
		return stateRunning // until its results are written
	case done == x.Len():
		return stateDone
	case done+failed == x.Len():
		return stateFailed
	case x.Killed:
		return stateKilled
	case x.Terms.Paused:
		return statePaused
	case x.busy() > 0 || x.buying() || x.trading != "":
		return stateRunning
	case !now.Before(x.at(x.Terms.Deadline)), x.poor,
		x.trades > 0 && x.Count(sweep.Assigned) == 0 && (x.barren >= barrenMost || x.barren > 0 && x.offering()):
		return stateShort
	}
	return stateRunning
}

// buying reports whether a lease is being bought.
func (x *live) buying() bool {
	for n := range x.leases {
		if l := x.At(n); !l.Signed && !l.Closed {
			return true
		}
	}
	return false
}

// offering reports whether a site sells leases now: none was refused lately.
func (x *live) offering() bool {
	return slices.ContainsFunc(x.Sites(), func(v sweep.SiteView) bool { return v.Lanes > 0 && v.Out == 0 })
}

// Show returns the present state of a sweep; false: no sweep has this ID.
func (s *Sweeps) Show(now time.Time, id string) (message.Sweep, bool) {
	x := s.by[id]
	if x == nil {
		return message.Sweep{}, false
	}
	return s.show(now, x), true
}

// List is every sweep, the oldest first.
func (s *Sweeps) List(now time.Time) []message.Sweep {
	list := []message.Sweep{}
	for _, id := range s.order {
		if x := s.by[id]; x.dry == nil {
			list = append(list, s.show(now, x))
		}
	}
	return list
}

func (s *Sweeps) show(now time.Time, x *live) message.Sweep {
	v := x.view(now)
	for n := range x.leases {
		l := x.At(n)
		if waits, _ := s.agent.Going(x.leaseID(n)); waits != "" && !l.Signed && !l.Closed {
			v.Waits = fmt.Sprintf("the bank has not decided on lease %s: %s; asking again", x.leaseID(n), waits)
			break
		}
	}
	return v
}

func (x *live) view(now time.Time) message.Sweep {
	spent, committed := x.Money()
	p := x.Advice()
	v := message.Sweep{
		ID: x.Order.ID, Name: x.Plan.Name, State: x.state(now), Strategy: string(x.Terms.Strategy), Created: x.Created,
		Deadline: x.at(x.Terms.Deadline), Spent: spent, Committed: committed, Currency: x.Currency, Out: x.Order.Out,
		Predicted: message.SweepForecast{Cost: spent + committed + p.Cost},
		Tasks:     message.SweepTasks{Total: x.Len(), Waiting: x.Count(sweep.Waiting), Assigned: x.Count(sweep.Assigned), Running: x.busy(), Done: x.Count(sweep.Done), Failed: x.Count(sweep.Failed)},
		Resources: x.resources(),
	}
	if x.Terms.Budget != noBudget {
		v.Budget = x.Terms.Budget
	}
	if p.Finish > 0 {
		v.Predicted.Finish = x.at(p.Finish)
	}
	if x.trades > 0 && x.trading == "" {
		v.Tasks.Left = min(len(p.Left), v.Tasks.Waiting)
		v.Tasks.Waiting -= v.Tasks.Left
	}
	switch v.State {
	case stateShort:
		v.Why = x.whyShort(now)
	case stateFailed:
		v.Why = fmt.Sprintf("%d of %d tasks failed for good: 'ramp user sweeps tasks %s' shows why, 'ramp user sweeps retry %s' runs them again", v.Tasks.Failed, v.Tasks.Total, v.ID, v.ID)
	case stateRunning:
		v.Why = x.why
	}
	if len(x.stuck) > 0 {
		first := slices.Min(slices.Collect(maps.Keys(x.stuck)))
		v.Why = fmt.Sprintf("files cannot be written here, and no task begins until they are: %s: %s", first, x.stuck[first])
	}
	return v
}

func (x *live) resources() []message.SweepResource {
	spent := map[string]protocol.Credits{}
	for n := range x.leases {
		spent[x.At(n).Site] += x.At(n).Paid
	}
	list := []message.SweepResource{}
	for _, v := range x.Sites() {
		mean, measured := x.Mean(v.Site)
		r := message.SweepResource{
			Resource: protocol.AgentID(v.Site).Name(), Price: v.Price / protocol.Credits(x.Plan.Cores), Lanes: v.Lanes, Measured: measured,
			Assigned: v.Assigned, Running: v.Running, Done: v.Done, Failed: v.Failed, Spent: spent[v.Site],
		}
		if mean > 0 {
			r.CostTask, _ = protocol.Cost(v.Price, 1, mean) // bounded by the budget
			r.RateHour = float64(v.Lanes) * float64(time.Hour) / float64(mean)
		}
		switch {
		case v.Out > 0:
			r.LeftOut = "until " + x.at(v.Out).UTC().Format(time.RFC3339) + ", after failures: " + v.Why
		case v.Lanes == 0:
			r.LeftOut = cmp.Or(v.Why, "it makes no offer")
		}
		list = append(list, r)
	}
	slices.SortStableFunc(list, func(a, b message.SweepResource) int { return cmp.Compare(a.CostTask, b.CostTask) })
	first, group := 0, 1 // the first of each group is its cheapest
	for i := range list {
		if float64(list[i].CostTask) > float64(list[first].CostTask)*(1+float64(x.Plan.Equal)/10_000) {
			first, group = i, group+1
		}
		list[i].Group = group
	}
	return list
}

// whyShort is what is missing, and what would help.
func (x *live) whyShort(now time.Time) string {
	left := x.Count(sweep.Waiting) + x.Count(sweep.Assigned)
	tasks := fmt.Sprintf("%d of %d tasks have not begun", left, x.Len())
	switch {
	case !now.Before(x.at(x.Terms.Deadline)):
		return fmt.Sprintf("%s, and the deadline has passed: 'ramp user sweeps set %s --deadline TIME' goes on", tasks, x.Order.ID)
	case x.poor:
		return tasks + ", and the account has too little for a lease: the sweep goes on once it has more" + x.until()
	case !x.offering():
		return tasks + ": " + cmp.Or(x.why, x.refusal(), "no site makes an offer") + "; the sweep goes on once that has changed" + x.until()
	}
	spent, committed := x.Money()
	p := x.Problem(x.since(now))
	p.Money = noBudget
	if rich := sweep.Advise(p); len(rich.Left) == 0 {
		enough := spent + committed + rich.Cost
		return fmt.Sprintf("%s, and the budget is too small: 'ramp user sweeps set %s --budget %s' is enough at the present prices", tasks, x.Order.ID, ceilCents(enough))
	}
	if at, ok := x.leastDeadline(now, x.Terms.Budget); ok {
		return fmt.Sprintf("%s, and the deadline is too near: 'ramp user sweeps set %s --deadline %s' is enough at the present rates", tasks, x.Order.ID, at.UTC().Format(time.RFC3339))
	}
	at, _ := x.leastDeadline(now, noBudget) // there is an offer
	p.Deadline = x.since(at)
	enough := spent + committed + sweep.Advise(p).Cost
	return fmt.Sprintf("%s: both budget and deadline are too small: 'ramp user sweeps set %s --budget %s --deadline %s' is enough at the present prices and rates", tasks, x.Order.ID, ceilCents(enough), at.UTC().Format(time.RFC3339))
}

// until is how long a sweep that is short may still buy.
func (x *live) until() string {
	by := ""
	if x.Terms.Deadline < NoDeadline {
		by = ", until " + x.at(x.Terms.Deadline).UTC().Format(time.RFC3339)
	}
	return by + "; 'ramp user sweeps kill " + x.Order.ID + "' ends it"
}

// refusal is the last refusal or failure of a site, or empty.
func (x *live) refusal() string {
	for _, v := range x.Sites() {
		if v.Why != "" {
			return protocol.AgentID(v.Site).Name() + ": " + v.Why
		}
	}
	return ""
}

// ceilCents is an amount with two decimals that is not less.
func ceilCents(c protocol.Credits) string {
	const cent = protocol.Credit / 100
	return ((c + cent - 1) / cent * cent).Cents()
}

// leastDeadline is the earliest deadline by which what is left can be done within a budget.
func (x *live) leastDeadline(now time.Time, budget protocol.Credits) (time.Time, bool) {
	terms := x.Sweep.Terms
	defer func() { x.Sweep.Terms = terms }()
	x.Sweep.Strategy, x.Sweep.Budget = sweep.Time, budget
	fits := func(d time.Duration) bool {
		x.Sweep.Deadline = d
		return len(sweep.Advise(x.Problem(x.since(now))).Left) == 0
	}
	low, high := x.since(now), x.since(now)+NoDeadline
	if !fits(high) {
		return time.Time{}, false
	}
	for high-low > time.Second {
		if mid := low + (high-low)/2; fits(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return x.at(high.Truncate(time.Second) + time.Second), true
}

// forecast is what each strategy would do with the present offers.
func (x *live) forecast(now time.Time) message.Sweep {
	v := x.view(now)
	v.Strategies = []message.SweepForecast{}
	v.Why = x.why
	terms := x.Sweep.Terms
	for _, strategy := range sweep.Strategies() {
		if strategy == sweep.None {
			continue
		}
		x.Sweep.Strategy = strategy
		p := sweep.Advise(x.Problem(x.since(now)))
		v.Strategies = append(v.Strategies, message.SweepForecast{Strategy: string(strategy), Finish: x.at(p.Finish), Cost: p.Cost, Left: len(p.Left)})
	}
	x.Sweep.Strategy = sweep.Cost
	p := x.Problem(x.since(now))
	p.Money = noBudget
	if cheap := sweep.Advise(p); len(cheap.Left) == 0 {
		v.LeastBudget, v.MostBudget = cheap.Cost, max(cheap.Cost, sweep.Dearest(p).Cost)
	}
	x.Sweep.Terms = terms
	if at, ok := x.leastDeadline(now, x.Terms.Budget); ok {
		v.LeastDeadline = at
	}
	return v
}

// Tasks are all tasks of a sweep.
func (s *Sweeps) Tasks(id string) ([]message.SweepTask, bool) {
	x := s.by[id]
	if x == nil {
		return nil, false
	}
	costs := x.costs()
	list := make([]message.SweepTask, x.Len())
	for i := range list {
		list[i] = x.task(i, costs[i])
	}
	return list, true
}

func (x *live) task(i int, cost protocol.Credits) message.SweepTask {
	t := x.Task(i)
	v := message.SweepTask{Task: i + 1, Parameters: map[string]string{}, State: t.State.String(), Attempts: []message.SweepAttempt{}, Cost: cost}
	if t.State == sweep.Fetching {
		v.State = sweep.Running.String()
	}
	for _, p := range x.Plan.Task(i).Parameters {
		v.Parameters[p.Name] = p.Value
	}
	for k, a := range t.Attempts {
		w := message.SweepAttempt{Attempt: k + 1, Lease: x.leaseID(a.Lease), Launch: x.attemptID(i, k+1), Resource: protocol.AgentID(a.Site).Name(), Started: x.at(a.Began), Why: a.Why}
		if a.How != "" {
			w.Ended = x.at(a.Ended)
		}
		if a.How == sweep.Succeeded || a.How == sweep.Exited || a.How == sweep.Unproven {
			exit := a.Exit
			w.Exit = &exit
		}
		v.Attempts, v.Exit = append(v.Attempts, w), w.Exit
	}
	return v
}

// costs are the costs of tasks: what was paid for a lease, in proportion to the time of its tasks.
func (x *live) costs() []protocol.Credits {
	took := make([]time.Duration, len(x.leases))
	each := func(f func(i int, a sweep.Attempt, d time.Duration)) {
		for i := range x.Len() {
			for _, a := range x.Task(i).Attempts {
				if a.How != "" {
					f(i, a, max(1, a.Ended-a.Began))
				}
			}
		}
	}
	each(func(_ int, a sweep.Attempt, d time.Duration) { took[a.Lease] += d })
	costs := make([]protocol.Credits, x.Len())
	each(func(i int, a sweep.Attempt, d time.Duration) {
		costs[i] += protocol.Credits(float64(x.At(a.Lease).Paid) * float64(d) / float64(took[a.Lease]))
	})
	return costs
}

// Ledger has every lease of a sweep that was bought.
func (s *Sweeps) Ledger(id string) ([]message.SweepEntry, bool) {
	x := s.by[id]
	if x == nil {
		return nil, false
	}
	list := []message.SweepEntry{}
	tasks := make([][]int, len(x.leases))
	for i := range x.Len() {
		for _, a := range x.Task(i).Attempts {
			if n := len(tasks[a.Lease]); n == 0 || tasks[a.Lease][n-1] != i+1 {
				tasks[a.Lease] = append(tasks[a.Lease], i+1)
			}
		}
	}
	for n, of := range x.leases {
		l := x.At(n)
		if !l.Signed {
			continue
		}
		list = append(list, message.SweepEntry{
			Lease: x.leaseID(n), Contract: of.Contract, Entry: of.Entry, Resource: protocol.AgentID(l.Site).Name(),
			Slot: protocol.Slot{Start: x.at(l.Start), End: x.at(l.End), Cores: of.Cores},
			Held: l.Held, Paid: l.Paid + of.Refunded, Refunded: of.Refunded, Tasks: append([]int{}, tasks[n]...),
		})
	}
	return list, true
}

func (x *live) results() []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	head := []string{"task"}
	for _, a := range x.Plan.Axes {
		head = append(head, a.Name)
	}
	_ = w.Write(append(head, "state", "exit", "resource", "cost", "started", "ended")) // a buffer takes all
	costs := x.costs()
	for i := range x.Len() {
		t := x.task(i, costs[i])
		line := []string{strconv.Itoa(i + 1)}
		for _, a := range x.Plan.Axes {
			line = append(line, t.Parameters[a.Name])
		}
		var exit, site, began, end string
		if n := len(t.Attempts); n > 0 {
			a := t.Attempts[n-1]
			site, began = a.Resource, a.Started.UTC().Format(time.RFC3339)
			if !a.Ended.IsZero() {
				end = a.Ended.UTC().Format(time.RFC3339)
			}
		}
		if t.Exit != nil {
			exit = strconv.Itoa(*t.Exit)
		}
		_ = w.Write(append(line, t.State, exit, site, t.Cost.String(), began, end)) // a buffer takes all
	}
	w.Flush()
	return b.Bytes()
}

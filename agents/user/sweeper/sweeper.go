// Package sweeper carries out the sweeps of a user agent: it trades with all sellers, buys leases,
// launches tasks in them one after the other, has their outputs fetched and their sites discard
// them.
//
//	order --trade--> offers --sweep.Act--> leases to buy, tasks to launch
//	lease  SWEEP.l0007     a purchase of one unit at one seller, at the traded price
//	task   SWEEP.t00042.1  a run in the lease's unit: task and attempt
//
// Tasks and leases are saved before their orders and launches leave. After a restart leases that were
// signed go on; an order that was lost with the process is given anew, under the next number.
package sweeper

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ramp/agents/user/sweep"
	"ramp/agents/user/sweep/plan"
	"ramp/protocol"
	"ramp/protocol/message"
)

// The tables: of sweeps by ID, and of their tasks and leases by sweep and number.
const (
	Table       = "sweeps"
	TableTasks  = "sweep-tasks"
	TableLeases = "sweep-leases"
)

// Bounds and times of sweeps.
const (
	MaxSweeps  = 256                    // that are remembered; the oldest ones that are over are forgotten
	maxLive    = 16                     // that are not over
	before     = 2 * time.Second        // from the order of a lease to its start
	slack      = 2 * time.Second        // of a lease, until its first task begins
	longest    = 15 * time.Minute       // of a lease for several tasks
	buying     = 2                      // leases that are bought at once at a site: a batch system reserves them one by one while votes wait
	release    = 3 * time.Second        // until a site sells again what was given back
	tradeMost  = 2 * time.Minute        // between trades
	tradeFirst = 5 * time.Second        // after a trade without offers, or a refusal
	awaited    = 15 * time.Second       // while tasks wait for a silent site
	leave      = 5 * time.Minute        // a site that fails is left out
	noBudget   = protocol.Credits(1e15) // of a plan without a budget
)

// NoDeadline is the deadline of a plan without one.
const NoDeadline = 365 * 24 * time.Hour

// Seller is a seller that is present.
type Seller struct {
	ID    protocol.AgentID
	Cores int
}

// Offer is what a seller offers for the lease that was asked for in a trade.
type Offer struct {
	Seller protocol.AgentID
	Price  protocol.Credits // per core-hour
	Start  time.Time
}

// Traded is the outcome of a trade.
type Traded struct {
	ID       string
	Offers   []Offer
	Why      string // without any
	Currency string
	Mode     protocol.Mode
}

// Bought is how a lease stands: a purchase of one unit.
type Bought struct {
	ID       string
	Settled  bool   // false: it is over, and nothing was bought
	Why      string // if not
	Poor     bool   // since the buyer's account has too little
	Contract protocol.ContractID
	Entry    uint64 // of the bank's ledger that settled it; 0: not told
	Slot     protocol.Slot
	Total    protocol.Credits
	Refunded protocol.Credits
	After    bool // it is paid after its end
	Ended    bool // its money is decided
}

// Agent is what a sweep has done by its user agent.
type Agent interface {
	Sellers(now time.Time) []Seller
	Buy(now time.Time, order message.Buy) protocol.Output
	Launch(now time.Time, run message.Run) protocol.Output
	Kill(now time.Time, run string) protocol.Output
	// Discard has the site of a run that is over remove its files, and forgets the run.
	Discard(now time.Time, run string) protocol.Output
	// Release gives back what is left of a lease.
	Release(now time.Time, lease string, seller protocol.AgentID, contract protocol.ContractID) protocol.Output
	Run(id string) (message.Run, bool)
	// Going reports whether a purchase is not decided yet, and, if known, what its bank waits for.
	Going(purchase string) (waits string, going bool)
}

// Sweeps are the sweeps of a user agent.
type Sweeps struct {
	agent Agent
	self  protocol.AgentID
	by    map[string]*live
	order []string // keys of by, oldest first
	drys  int      // forecasts so far
}

// New makes the sweeps of an agent.
func New(self protocol.AgentID, agent Agent) *Sweeps {
	return &Sweeps{agent: agent, self: self, by: map[string]*live{}}
}

type row struct {
	Order    message.SweepOrder `json:"order"`
	Plan     plan.Plan          `json:"plan"`
	Created  time.Time          `json:"created"`
	Terms    sweep.Terms        `json:"terms"`
	Killed   bool               `json:"killed,omitempty"`
	Currency string             `json:"currency,omitempty"`
	Single   bool               `json:"single,omitempty"`  // a lease is for one task: its end decides what is paid
	Digest   string             `json:"digest"`            // of what was ordered
	Renewed  string             `json:"renewed,omitempty"` // its digest with the inputs of the last retry
	Offers   []sweep.Offer      `json:"offers,omitempty"`  // of the last trades
}

type lease struct {
	sweep.Lease
	Contract protocol.ContractID `json:"contract,omitempty"`
	Entry    uint64              `json:"entry,omitempty"` // of the bank's ledger
	Refunded protocol.Credits    `json:"refunded,omitempty"`
	Cores    int                 `json:"cores"`
	Ended    bool                `json:"ended,omitempty"` // its money is decided
}

type live struct {
	row
	*sweep.Sweep
	leases []lease // by number; sweep.Lease of those of the planner

	trading  string // ID of the trade under way
	trades   int
	tradeAt  time.Time
	offers   []Offer
	barren   int    // trades since the last lease that left tasks without a place
	why      string // of the last trade or lease that failed
	poor     bool   // the account has too little for another lease
	dry      func(message.Sweep)
	fetching map[string]int    // tasks, by the launch whose outputs come
	stuck    map[string]string // why files cannot be written here, by launch; of results.csv by the sweep
	shown    string            // the state when results were last written
	quiet    bool              // over, with nothing left to give back
}

// validID are the IDs of sweeps, which begin those of their purchases and files.
var validID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Parse is the plan of an order.
func Parse(o message.SweepOrder) (p plan.Plan, err error) {
	d := json.NewDecoder(bytes.NewReader(o.Plan))
	d.DisallowUnknownFields()
	if err = d.Decode(&p); err == nil {
		err = p.Check()
	}
	if err != nil {
		err = fmt.Errorf("plan: %w", err)
	}
	return p, err
}

// Order begins a sweep, or goes on with the one of this ID. The plan's deadline is in DeadlineAt or
// Deadline. If dry is not nil, it gets a forecast, and no sweep begins.
func (s *Sweeps) Order(now time.Time, o message.SweepOrder, dry func(message.Sweep)) (protocol.Output, error) {
	p, err := Parse(o)
	if err != nil {
		return protocol.Output{}, err
	}
	if !validID.MatchString(o.ID) {
		return protocol.Output{}, fmt.Errorf("id %q: want 1 to 64 letters, digits, '-', '_' and '.', the first a letter or digit", protocol.Clip(o.ID))
	}
	digest := ID("", o)
	switch x := s.by[o.ID]; {
	case dry != nil:
	case x != nil && !x.is(digest):
		return protocol.Output{}, fmt.Errorf("sweep %s was begun with another plan, other inputs or another directory: give this one an --id of its own, or change that one with 'ramp user sweeps set'", o.ID)
	case x != nil: // its owner may have mended what it waited for
		x.barren, x.poor, x.tradeAt = 0, false, now
		return s.Act(now), nil
	}
	if err := s.full(); err != nil {
		return protocol.Output{}, err
	}
	if other := s.writer(o.Out); dry == nil && other != "" {
		return protocol.Output{}, fmt.Errorf("sweep %s writes to %s, and this plan, its inputs or its --id differ: choose another directory with --out, or change that one with 'ramp user sweeps set'", other, o.Out)
	}
	if dry != nil {
		s.drys++
		o.ID = fmt.Sprintf("%s%s-%d", protocol.QuotePrefix, o.ID, s.drys)
	}
	now = now.Truncate(time.Second)
	o.Plan = nil
	x := s.begin(row{Order: o, Plan: p, Created: now, Terms: termsOf(p, now), Digest: digest})
	x.dry = dry
	s.add(x)
	out := s.forgetOldest()
	if dry == nil {
		out.Save = append(out.Save, x.save())
	}
	return out.Join(s.Act(now)), nil
}

// writer is a sweep that is not over and writes its results to a directory; "": none.
func (s *Sweeps) writer(dir string) string {
	for _, id := range s.order {
		if x := s.by[id]; x.dry == nil && !x.over() && x.Order.Out == dir {
			return x.Order.ID
		}
	}
	return ""
}

// full returns an error if no further sweep may run at the same time.
func (s *Sweeps) full() error {
	if n := s.unfinished(); n >= maxLive {
		return fmt.Errorf("%d sweeps are not over, the most at once: 'ramp user sweeps kill' ends one", n)
	}
	return nil
}

func termsOf(p plan.Plan, now time.Time) sweep.Terms {
	t := sweep.Terms{Strategy: p.Strategy, Deadline: p.Deadline, Budget: p.Budget}
	if !p.DeadlineAt.IsZero() {
		t.Deadline = p.DeadlineAt.Sub(now)
	}
	t.Deadline = cmp.Or(t.Deadline, NoDeadline)
	t.Budget = cmp.Or(t.Budget, noBudget)
	return t
}

// begin makes a sweep none of whose tasks has run.
func (s *Sweeps) begin(r row) *live {
	p := r.Plan
	c := sweep.Config{
		Terms: r.Terms, Equal: p.Equal, Wall: p.Wall, Lease: longest, RetryExit: p.RetryExit, RetrySite: p.RetrySite,
		Leave: leave, AtOnce: p.AtOnce, Buying: buying, Before: before, Slack: slack, Round: time.Second, Release: release, Sizes: make([]int64, p.Len()),
	}
	for i := range c.Sizes {
		c.Sizes[i] = 1
	}
	if r.Single {
		c.Lease = 0
	}
	return &live{row: r, Sweep: sweep.New(c), fetching: map[string]int{}, stuck: map[string]string{}}
}

func (s *Sweeps) add(x *live) {
	s.by[x.Order.ID] = x
	s.order = append(s.order, x.Order.ID)
}

func (s *Sweeps) drop(id string) {
	delete(s.by, id)
	s.order = slices.DeleteFunc(s.order, func(x string) bool { return x == id })
}

func (s *Sweeps) unfinished() int {
	n := 0
	for _, x := range s.by { // in any order
		if !x.over() {
			n++
		}
	}
	return n
}

func (s *Sweeps) forgetOldest() (out protocol.Output) {
	for len(s.order) > MaxSweeps {
		i := slices.IndexFunc(s.order, func(id string) bool { return s.by[id].over() })
		if i < 0 {
			return out
		}
		x := s.by[s.order[i]]
		for t := range x.Len() {
			out.Save = append(out.Save, protocol.Record{Table: TableTasks, Key: x.taskKey(t)})
		}
		for n := range x.leases {
			out.Save = append(out.Save, protocol.Record{Table: TableLeases, Key: x.leaseID(n)})
		}
		out.Save = append(out.Save, protocol.Record{Table: Table, Key: x.Order.ID})
		s.drop(x.Order.ID)
	}
	return out
}

// Set changes a sweep.
func (s *Sweeps) Set(now time.Time, q message.SweepSet) (protocol.Output, error) {
	x := s.by[q.ID]
	if err := x.mayChange(q); err != nil {
		return protocol.Output{}, err
	}
	t := x.Terms
	if !q.Deadline.IsZero() {
		if t.Deadline = q.Deadline.Truncate(time.Second).Sub(x.Created); !q.Deadline.After(now) {
			return protocol.Output{}, fmt.Errorf("deadline %s: want a time after now", q.Deadline.Format(time.RFC3339))
		}
	}
	t.Budget = cmp.Or(q.Budget, t.Budget)
	var err error
	if q.Strategy != "" {
		if t.Strategy, err = sweep.ParseStrategy(q.Strategy); err != nil {
			return protocol.Output{}, err
		}
	}
	var out protocol.Output
	switch q.Verb {
	default:
		return protocol.Output{}, fmt.Errorf("verb %q: want pause, resume, retry or kill", protocol.Clip(string(q.Verb)))
	case "":
	case message.SweepPause, message.SweepResume:
		t.Paused = q.Verb == message.SweepPause
	case message.SweepRetry:
		if err := s.full(); x.over() && err != nil {
			return protocol.Output{}, err
		}
		for _, i := range x.Retry() {
			out.Save = append(out.Save, x.saveTask(i))
		}
		x.Order.Inputs = q.Inputs
		o, _ := s.Ordered(q.ID)
		x.Renewed = ID("", o)
	case message.SweepKill:
		x.Killed, t.Paused = true, true
		for i := range x.Len() {
			if x.Task(i).State == sweep.Running {
				out = out.Join(s.agent.Kill(now, x.runID(i)))
			}
		}
	}
	x.Terms, x.tradeAt, x.quiet = t, now, false
	x.Set(t)
	out.Save = append(out.Save, x.save())
	return out.Join(s.Act(now)), nil
}

// mayChange returns why a sweep cannot be changed. It may be nil: there is no such sweep.
func (x *live) mayChange(q message.SweepSet) error {
	switch {
	case x == nil:
		return fmt.Errorf("no sweep %q", q.ID)
	case x.Killed && q.Verb != message.SweepKill:
		return fmt.Errorf("sweep %s was killed and cannot go on: begin another with an --id of its own", q.ID)
	case !x.Killed && x.over() && q.Verb != message.SweepRetry && (q.Verb != "" || x.Count(sweep.Failed) == 0):
		return fmt.Errorf("sweep %s has ended already", q.ID)
	case q.Verb == message.SweepRetry && x.Count(sweep.Failed) == 0:
		return fmt.Errorf("sweep %s has no task that failed for good", q.ID)
	case q.Budget < 0:
		return fmt.Errorf("budget %s: want more than 0", q.Budget)
	}
	stops := q.Verb == message.SweepKill || q.Verb == message.SweepPause
	if spent, committed := x.Money(); q.Budget > 0 && q.Budget < spent+committed && !stops {
		return fmt.Errorf("budget %s: want at least %s, which is spent or committed; 'ramp user sweeps pause' buys nothing more", q.Budget, spent+committed)
	}
	return nil
}

// over reports whether nothing is left to do, whatever its owner changes but Retry.
func (x *live) over() bool {
	return x.Killed && x.busy() == 0 || x.Count(sweep.Done)+x.Count(sweep.Failed) == x.Len()
}

// busy is the number of tasks that run, or whose outputs are fetched.
func (x *live) busy() int { return x.Count(sweep.Running) + x.Count(sweep.Fetching) }

func (x *live) since(now time.Time) time.Duration { return now.Sub(x.Created) }
func (x *live) at(d time.Duration) time.Time      { return x.Created.Add(d) }
func (x *live) taskKey(i int) string              { return fmt.Sprintf("%s.t%05d", x.Order.ID, i+1) }
func (x *live) leaseID(n int) string              { return fmt.Sprintf("%s.l%04d", x.Order.ID, n+1) }
func (x *live) attemptID(i, number int) string    { return fmt.Sprintf("%s.%d", x.taskKey(i), number) }
func (x *live) runID(i int) string                { return x.attemptID(i, len(x.Task(i).Attempts)) }
func (x *live) save() protocol.Record             { return record(Table, x.Order.ID, x.row) }
func (x *live) saveTask(i int) protocol.Record    { return record(TableTasks, x.taskKey(i), x.Task(i)) }

func (x *live) saveLease(n int) protocol.Record {
	l := x.leases[n]
	l.Lease = *x.At(n)
	return record(TableLeases, x.leaseID(n), l)
}

func record(table, key string, v any) protocol.Record {
	value, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("sweeper: %s %s cannot be encoded: %v", table, key, err)) // only our own types come here
	}
	return protocol.Record{Table: table, Key: key, Value: value}
}

// cut splits SWEEP.MARK00042… into the sweep and the number, from 0.
func cut(id string, mark string) (sweep string, number int, ok bool) {
	at := strings.LastIndex(id, mark)
	if at < 0 {
		return "", 0, false
	}
	digits, _, _ := strings.Cut(id[at+len(mark):], ".")
	n, err := strconv.Atoi(digits)
	return id[:at], n - 1, err == nil && n > 0
}

// leaseOf finds the lease that a purchase is.
func (s *Sweeps) leaseOf(id string) (*live, int) {
	name, n, ok := cut(id, ".l")
	if x := s.by[name]; ok && x != nil && n < len(x.leases) {
		return x, n
	}
	return nil, 0
}

// Sizes lists what is held in memory, with the bound of each.
func (s *Sweeps) Sizes() []protocol.Size {
	tasks, leases := 0, 0
	for _, x := range s.by { // in any order
		tasks, leases = tasks+x.Len(), max(leases, len(x.leases))
	}
	return []protocol.Size{
		{Of: "leases of a sweep", N: leases, Most: sweep.MaxLeases},
		{Of: "sweeps", N: len(s.by), Most: MaxSweeps},
		{Of: "sweeps that are not over", N: s.unfinished(), Most: maxLive},
		{Of: "tasks of sweeps", N: tasks, Most: MaxSweeps * plan.MaxTasks},
	}
}

// Restore loads all sweeps. Purchases and runs are restored afterwards, and Resume goes on then.
func (s *Sweeps) Restore(t protocol.Tables) error {
	tasks, leases := map[string][]sweep.Task{}, map[string][]lease{}
	err := t.Each(Table, func(id string, value []byte) error {
		var r row
		if err := json.Unmarshal(value, &r); err != nil {
			return fmt.Errorf("record of sweep %s: %w", id, err)
		}
		s.add(s.begin(r))
		tasks[id] = make([]sweep.Task, s.by[id].Len())
		return nil
	})
	if err == nil {
		err = t.Each(TableTasks, func(key string, value []byte) error {
			id, i, ok := cut(key, ".t")
			if !ok || i >= len(tasks[id]) {
				return fmt.Errorf("record of task %s: no such sweep", key)
			}
			return json.Unmarshal(value, &tasks[id][i])
		})
	}
	if err == nil {
		err = t.Each(TableLeases, func(key string, value []byte) error {
			id, n, ok := cut(key, ".l") // l10000 comes before l9999
			if !ok || n >= sweep.MaxLeases || s.by[id] == nil {
				return fmt.Errorf("record of lease %s: no such sweep", key)
			}
			for len(leases[id]) <= n {
				leases[id] = append(leases[id], lease{})
			}
			return json.Unmarshal(value, &leases[id][n])
		})
	}
	for _, id := range slices.Sorted(maps.Keys(s.by)) {
		x := s.by[id]
		x.leases = leases[id]
		var list []sweep.Lease
		for _, l := range x.leases {
			list = append(list, l.Lease)
		}
		x.Sweep.Restore(tasks[id], list, x.row.Offers)
	}
	slices.SortFunc(s.order, func(a, b string) int { return s.by[a].Created.Compare(s.by[b].Created) })
	return err
}

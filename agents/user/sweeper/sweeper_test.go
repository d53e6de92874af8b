package sweeper_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/agents/user/sweep"
	"ramp/agents/user/sweep/plan"
	"ramp/agents/user/sweeper"
	"ramp/protocol"
	"ramp/protocol/message"
)

var dawn = time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)

// agent is a user agent with one sweep, whose purchases, runs and files the test decides. It crashes now
// and then, before or after an output is durable.
type agent struct {
	t      *rapid.T
	now    time.Time
	sweeps *sweeper.Sweeps
	disk   tables
	prices map[protocol.AgentID]protocol.Credits

	budget   protocol.Credits
	deadline time.Time

	trade   string
	buying  map[string]message.Buy
	bought  map[string]sweeper.Bought
	ordered map[string]bool // leases, ever
	runs    map[string]message.Run
	ends    map[string]int // exit codes of runs that their sites have ended; below 0: lost
	staging map[string]message.StageOut
	placed  map[string]string // launches, by the task whose outputs are theirs
}

func newAgent(t *rapid.T) *agent {
	a := &agent{
		t: t, now: dawn, disk: tables{}, prices: map[protocol.AgentID]protocol.Credits{}, bought: map[string]sweeper.Bought{},
		ordered: map[string]bool{}, ends: map[string]int{}, placed: map[string]string{},
	}
	for _, s := range []protocol.AgentID{"a", "b", "c"} {
		a.prices[s] = protocol.Credits(rapid.IntRange(1, 60).Draw(t, "price")) * protocol.Credit
	}
	a.load()
	return a
}

// load starts an agent that has no sweep yet.
func (a *agent) load() {
	a.sweeps = sweeper.New("me", a)
	a.trade, a.buying, a.runs, a.staging = "", map[string]message.Buy{}, map[string]message.Run{}, map[string]message.StageOut{}
}

func (a *agent) Sellers(time.Time) (list []sweeper.Seller) {
	for _, s := range slices.Sorted(maps.Keys(a.prices)) {
		list = append(list, sweeper.Seller{ID: s, Cores: 2})
	}
	return list
}

func (a *agent) Buy(_ time.Time, order message.Buy) protocol.Output {
	if protocol.IsQuote(order.ID) {
		a.trade = order.ID
		return protocol.Output{}
	}
	if a.ordered[order.ID] && a.saved("sweep-leases", order.ID) {
		a.t.Fatalf("lease %s is ordered again", order.ID)
	}
	a.ordered[order.ID], a.buying[order.ID] = true, order
	return protocol.Output{}
}

func (a *agent) saved(table, key string) bool { return a.disk[table][key] != nil }

func (a *agent) Launch(_ time.Time, run message.Run) protocol.Output {
	task := run.ID[:strings.LastIndex(run.ID, ".")]
	for id, r := range a.runs {
		if !r.Over && (strings.HasPrefix(id, task+".") || r.Contract == run.Contract) {
			a.t.Fatalf("%s begins while %s runs", run.ID, id)
		}
	}
	if by := a.placed[task]; by != "" && a.done(task) {
		a.t.Fatalf("%s begins; %s has brought the task's result", run.ID, by)
	}
	return a.keep(run)
}

// done reports whether a task is done, as saved.
func (a *agent) done(task string) bool {
	var t sweep.Task
	return json.Unmarshal(a.disk[sweeper.TableTasks][task], &t) == nil && t.State == sweep.Done
}

func (a *agent) keep(run message.Run) protocol.Output {
	a.runs[run.ID] = run
	value, err := json.Marshal(run)
	if err != nil {
		a.t.Fatal(err)
	}
	return protocol.Output{Save: []protocol.Record{{Table: "runs", Key: run.ID, Value: value}}}
}

func (a *agent) Kill(_ time.Time, id string) protocol.Output {
	a.ends[id] = -1
	return protocol.Output{}
}

func (a *agent) Discard(_ time.Time, id string) protocol.Output {
	delete(a.runs, id)
	return protocol.Output{Save: []protocol.Record{{Table: "runs", Key: id}}}
}

func (a *agent) Release(_ time.Time, lease string, _ protocol.AgentID, contract protocol.ContractID) protocol.Output {
	for id, r := range a.runs {
		if r.Contract == contract && !r.Over {
			a.t.Fatalf("%s is given back while %s runs", lease, id)
		}
	}
	return protocol.Output{}
}

func (a *agent) Run(id string) (message.Run, bool) { r, ok := a.runs[id]; return r, ok }
func (a *agent) Going(id string) (string, bool)    { _, ok := a.buying[id]; return "", ok }

// carryOut makes an output durable and begins what it sends, unless the agent crashes.
func (a *agent) carryOut(out protocol.Output) {
	crash := rapid.IntRange(0, 30).Draw(a.t, "crash")
	if crash != 0 {
		for _, r := range out.Save {
			if a.disk[r.Table] == nil {
				a.disk[r.Table] = map[string][]byte{}
			}
			if a.disk[r.Table][r.Key] = r.Value; r.Value == nil {
				delete(a.disk[r.Table], r.Key)
			}
		}
	}
	if crash <= 1 {
		a.restart()
		return
	}
	for _, m := range out.Send {
		if s, ok := m.Body.(message.StageOut); ok {
			a.staging[s.Launch] = s
		}
	}
	a.check()
}

// restart loads the agent from its disk, as a live one does: sweeps, then runs, then purchases.
func (a *agent) restart() {
	a.load()
	if err := a.sweeps.Restore(a.disk); err != nil {
		a.t.Fatal(err)
	}
	for id, value := range a.disk["runs"] {
		var r message.Run
		if err := json.Unmarshal(value, &r); err != nil {
			a.t.Fatal(err)
		}
		a.runs[id] = r
	}
	var out protocol.Output
	for _, id := range slices.Sorted(maps.Keys(a.bought)) {
		out = out.Join(a.sweeps.Bought(a.now, a.bought[id]))
	}
	a.carryOut(out.Join(a.sweeps.Resume(a.now)))
}

// check holds what is durable and what was ordered against the terms.
func (a *agent) check() {
	var sum protocol.Credits
	for id, b := range a.bought {
		sum += b.Total - b.Refunded
		if !a.saved(sweeper.TableLeases, id) {
			a.t.Fatalf("lease %s was bought, and is not saved", id)
		}
	}
	for id, order := range a.buying {
		if !a.saved(sweeper.TableLeases, id) {
			a.t.Fatalf("lease %s is ordered, and is not saved", id)
		}
		sum += order.Options.MaxCost
	}
	if sum > a.budget {
		a.t.Fatalf("%s are paid or committed, of %s", sum, a.budget)
	}
	for _, s := range a.sweeps.Sizes() {
		if s.N > s.Most {
			a.t.Fatalf("%d %s, at most %d", s.N, s.Of, s.Most)
		}
	}
}

// happen lets one thing happen, and time pass.
func (a *agent) happen() {
	switch pick := rapid.IntRange(0, 9).Draw(a.t, "event"); {
	case a.trade != "" && pick < 4:
		a.carryOut(a.traded())
	case len(a.buying) > 0 && pick < 5:
		a.carryOut(a.buy())
	case len(a.staging) > 0 && pick < 7:
		a.carryOut(a.stage())
	case pick == 7 && rapid.IntRange(0, 3).Draw(a.t, "refund") == 0:
		if out, ok := a.refund(); ok {
			a.carryOut(out)
		}
	case pick < 9:
		if out, ok := a.end(); ok {
			a.carryOut(out)
			break
		}
		fallthrough
	default:
		a.now = a.now.Add(time.Duration(rapid.IntRange(1, 40).Draw(a.t, "seconds")) * time.Second)
	}
	a.carryOut(a.sweeps.Act(a.now))
}

func (a *agent) traded() protocol.Output {
	t := sweeper.Traded{ID: a.trade, Currency: "CRD"}
	a.trade = ""
	for _, s := range slices.Sorted(maps.Keys(a.prices)) {
		if rapid.IntRange(0, 4).Draw(a.t, "offers") > 0 {
			t.Offers = append(t.Offers, sweeper.Offer{Seller: s, Price: a.prices[s], Start: a.now})
		}
	}
	return a.sweeps.Traded(a.now, t)
}

// buy decides an order: it is refused, or bought for what it may cost or less.
func (a *agent) buy() protocol.Output {
	id := slices.Sorted(maps.Keys(a.buying))[0]
	order := a.buying[id]
	delete(a.buying, id)
	if rapid.IntRange(0, 3).Draw(a.t, "refused") == 0 {
		return a.sweeps.Bought(a.now, sweeper.Bought{ID: id, Why: "busy"})
	}
	var l sweep.Lease
	if err := json.Unmarshal(a.disk[sweeper.TableLeases][id], &l); err != nil {
		a.t.Fatal(err)
	}
	slot := protocol.Slot{Start: dawn.Add(l.Start), End: dawn.Add(l.End), Cores: 1}
	if slot.End.After(a.deadline) {
		a.t.Fatalf("lease %s ends at %s, after %s", id, slot.End, a.deadline)
	}
	a.bought[id] = sweeper.Bought{ID: id, Settled: true, Contract: protocol.ContractID("c" + id), Slot: slot, Total: order.Options.MaxCost, Entry: 1}
	return a.sweeps.Bought(a.now, a.bought[id])
}

// refund has a site pay back a part of a lease that it has lost; false: none is left.
func (a *agent) refund() (protocol.Output, bool) {
	for _, id := range slices.Sorted(maps.Keys(a.bought)) {
		if b := a.bought[id]; !b.Ended {
			b.Ended, b.Refunded = true, b.Total/2
			a.bought[id] = b
			return a.sweeps.Bought(a.now, b), true
		}
	}
	return protocol.Output{}, false
}

// end ends a run; false: none runs.
func (a *agent) end() (protocol.Output, bool) {
	for _, id := range slices.Sorted(maps.Keys(a.runs)) {
		r := a.runs[id]
		if r.Over {
			continue
		}
		if _, known := a.ends[id]; !known {
			a.ends[id] = rapid.SampledFrom([]int{0, 0, 0, 0, 0, 1, -1}).Draw(a.t, "exit")
		}
		u := &r.Units[0]
		r.Units = []message.RunUnit{*u}
		u = &r.Units[0]
		r.Over, u.Status.Stage = true, message.StageDone
		u.Status.Job = protocol.JobStatus{State: protocol.JobExited, Exit: a.ends[id]}
		if a.ends[id] < 0 {
			u.Status.Stage, u.Status.Why, u.Status.Job = message.StageFailed, "the site failed", protocol.JobStatus{}
		}
		return a.keep(r).Join(a.sweeps.Ran(a.now, r)), true
	}
	return protocol.Output{}, false
}

// stage brings outputs, or says that they cannot be had.
func (a *agent) stage() protocol.Output {
	id := slices.Sorted(maps.Keys(a.staging))[0]
	s := a.staging[id]
	delete(a.staging, id)
	task := id[:strings.LastIndex(id, ".")]
	if rapid.IntRange(0, 9).Draw(a.t, "gone") == 0 && a.placed[task] != id {
		return a.sweeps.Staged(a.now, message.StagedOut{Launch: id, Why: "gone"})
	}
	if !strings.HasPrefix(s.Name, "failed/") {
		if by := a.placed[task]; by != "" && by != id {
			a.t.Fatalf("%s brings the result of %s, as %s did", id, task, by)
		}
		a.placed[task] = id
	}
	return a.sweeps.Staged(a.now, message.StagedOut{Launch: id})
}

// Whatever its sellers, sites and files do, and whenever it crashes: a sweep keeps to its budget and
// deadline, orders a lease and begins an attempt once, runs no task twice at once, uses one result of
// each, and its ledger is what was paid.
func TestASweepSurvivesItsAgent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newAgent(t)
		n := rapid.IntRange(1, 8).Draw(t, "tasks")
		p := plan.Plan{
			Axes: []plan.Axis{{Name: "n", Values: make([]string, n)}}, Cores: 1, Wall: time.Minute, Command: []string{"./task", "${n}"},
			Deadline: time.Duration(rapid.IntRange(2, 40).Draw(t, "minutes")) * time.Minute, Budget: protocol.Credits(rapid.IntRange(1, 20).Draw(t, "budget")) * protocol.Credit,
			Strategy: rapid.SampledFrom(sweep.Strategies()).Draw(t, "strategy"), RetryExit: 2, RetrySite: 5,
		}
		for i := range p.Axes[0].Values {
			p.Axes[0].Values[i] = fmt.Sprint(i)
		}
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		a.budget, a.deadline = p.Budget, dawn.Add(p.Deadline)
		order := message.SweepOrder{ID: "s", Plan: text, Out: "/out"}
		for steps := 0; a.now.Before(a.deadline.Add(2*time.Minute)) && steps < 3000; steps++ {
			if steps == 0 || !a.saved(sweeper.Table, "s") { // its owner repeats an order that was lost
				out, err := a.sweeps.Order(dawn, order, nil)
				if err != nil {
					t.Fatal(err)
				}
				a.carryOut(out)
			}
			a.happen()
		}
		a.finish(n)
	})
}

// finish compares the sweep with what was paid and brought.
func (a *agent) finish(tasks int) {
	view, ok := a.sweeps.Show(a.now, "s")
	if !ok {
		return // its order was lost to the end
	}
	ledger, _ := a.sweeps.Ledger("s")
	var paid, sum protocol.Credits
	for _, b := range a.bought {
		paid += b.Total - b.Refunded
	}
	for _, e := range ledger {
		sum += e.Paid - e.Refunded
	}
	if view.Spent != paid || sum != paid {
		a.t.Fatalf("%s were paid; the sweep has spent %s, its ledger sums to %s", paid, view.Spent, sum)
	}
	list, _ := a.sweeps.Tasks("s")
	for _, task := range list {
		if by := a.placed[fmt.Sprintf("s.t%05d", task.Task)]; task.State == "done" && by == "" {
			a.t.Fatalf("task %d is done, and nothing was brought", task.Task)
		}
	}
	if len(list) != tasks || view.Tasks.Running > len(a.runs)+len(a.staging) {
		a.t.Fatalf("%d tasks, %d of them running in %d runs", len(list), view.Tasks.Running, len(a.runs))
	}
}

package sweep_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/agents/user/sweep"
	"ramp/protocol"
)

// problem draws a small problem; alike: all tasks have one size.
func problem(t *rapid.T, tasks, resources, lanes int, alike bool) sweep.Problem {
	p := sweep.Problem{
		Strategy: rapid.SampledFrom(sweep.Strategies()).Draw(t, "strategy"),
		Now:      time.Duration(rapid.IntRange(0, 3).Draw(t, "now")) * time.Second,
		Deadline: time.Duration(rapid.IntRange(0, 30).Draw(t, "deadline")) * time.Second,
		Money:    protocol.Credits(rapid.Int64Range(0, 200).Draw(t, "money")) * protocol.Credit,
		Equal:    rapid.SampledFrom([]int{0, 200}).Draw(t, "equal"),
	}
	for range rapid.IntRange(0, tasks).Draw(t, "tasks") {
		size := int64(4)
		if !alike {
			size = rapid.Int64Range(1, 9).Draw(t, "size")
		}
		p.Sizes = append(p.Sizes, size)
	}
	for range rapid.IntRange(1, resources).Draw(t, "resources") {
		r := sweep.Resource{
			Until: time.Duration(rapid.IntRange(0, 40).Draw(t, "until")) * time.Second,
			Price: protocol.Credits(rapid.Int64Range(0, 9).Draw(t, "price")) * protocol.Credit * 3600,
			Work:  rapid.Int64Range(1, 5).Draw(t, "work"), Time: time.Second,
		}
		for range rapid.IntRange(0, lanes).Draw(t, "lanes") {
			r.Lanes = append(r.Lanes, time.Duration(rapid.IntRange(0, 5).Draw(t, "free"))*time.Second)
		}
		p.Resources = append(p.Resources, r)
	}
	return p
}

// A plan keeps to time, money and lanes, and loses no task.
func TestAPlanKeepsItsTerms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problem(t, 12, 4, 3, false)
		plan := sweep.Advise(p)
		var all []int
		var cost protocol.Credits
		var finish time.Duration
		for i, r := range p.Resources {
			free := slices.Clone(r.Lanes)
			for _, task := range plan.Tasks[i] {
				c, d := r.Costs(p.Sizes[task])
				slices.Sort(free)
				free[0] = max(free[0], p.Now) + d
				if free[0] > min(p.Deadline, r.Until) {
					t.Fatalf("task %d ends at %s on resource %d", task, free[0], i)
				}
				finish, cost, all = max(finish, free[0]), cost+c, append(all, task)
			}
		}
		if cost != plan.Cost || cost > p.Money || finish != plan.Finish {
			t.Fatalf("costs %s of %s and ends at %s; the plan says %s, %s", cost, p.Money, finish, plan.Cost, plan.Finish)
		}
		all = append(all, plan.Left...)
		slices.Sort(all)
		for i, task := range all {
			if task != i {
				t.Fatalf("tasks %v", all)
			}
		}
		if len(all) != len(p.Sizes) {
			t.Fatalf("%d of %d tasks", len(all), len(p.Sizes))
		}
	})
}

// best tries every assignment of tasks that are alike: the most that can be done, their least cost,
// and the earliest end of that many at any cost within the money.
func best(p sweep.Problem) (done int, cost protocol.Credits, finish time.Duration) {
	type use struct {
		end  time.Duration
		cost protocol.Credits
	}
	type outcome struct {
		n int
		use
	}
	seen := []outcome{{}}
	for _, r := range p.Resources {
		var next []outcome
		for _, o := range seen {
			free := slices.Clone(r.Lanes)
			u := o.use
			next = append(next, o)
			for n := o.n; n < len(p.Sizes) && len(free) > 0; n++ {
				c, d := r.Costs(p.Sizes[0])
				slices.Sort(free)
				free[0] = max(free[0], p.Now) + d
				u.cost += c
				if free[0] > min(p.Deadline, r.Until) || u.cost > p.Money {
					break
				}
				u.end = max(u.end, free[0])
				next = append(next, outcome{n + 1, u})
			}
		}
		seen = next
	}
	for _, o := range seen {
		if o.n > done {
			done, cost, finish = o.n, o.cost, o.end
		} else if o.n == done {
			cost, finish = min(cost, o.cost), min(finish, o.end)
		}
	}
	return done, cost, finish
}

// Against every assignment there is: tasks that are alike are as many as can be and cost the least
// by cost and cost-time; with money for every resource they end first by time.
func TestPlansAreTheBestOfAllAssignments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problem(t, 7, 3, 3, true)
		p.Equal = 0
		if p.Strategy == sweep.None {
			p.Strategy = sweep.Cost
		}
		rich := p.Strategy == sweep.Time || p.Strategy == sweep.ConservativeTime
		if rich {
			p.Money = 1_000_000 * protocol.Credit
		}
		plan := sweep.Advise(p)
		done, cost, finish := best(p)
		if got := len(p.Sizes) - len(plan.Left); got != done {
			t.Fatalf("%s: %d tasks, want %d", p.Strategy, got, done)
		}
		if rich && plan.Finish != finish {
			t.Fatalf("%s: ends at %s, want %s", p.Strategy, plan.Finish, finish)
		}
		if !rich && plan.Cost != cost {
			t.Fatalf("%s: costs %s, want %s", p.Strategy, plan.Cost, cost)
		}
	})
}

// Cost-time costs what cost costs, and never ends later, where tasks are alike.
func TestCostTimeIsNeverLaterThanCost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problem(t, 20, 5, 4, true)
		p.Equal = 0
		p.Strategy = sweep.Cost
		by := sweep.Advise(p)
		p.Strategy = sweep.CostTime
		if also := sweep.Advise(p); also.Cost != by.Cost || also.Finish > by.Finish || len(also.Left) != len(by.Left) {
			t.Fatalf("cost-time: %s, ends at %s; cost: %s, ends at %s", also.Cost, also.Finish, by.Cost, by.Finish)
		}
	})
}

// More money or time never gets fewer tasks done, where they are alike.
func TestMoreMoneyOrTimeGetsNoFewerDone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problem(t, 20, 5, 4, true)
		if p.Strategy == sweep.None {
			p.Strategy = sweep.Time
		}
		left := len(sweep.Advise(p).Left)
		p.Money += protocol.Credits(rapid.Int64Range(0, 50).Draw(t, "more money")) * protocol.Credit
		p.Deadline += time.Duration(rapid.IntRange(0, 9).Draw(t, "more time")) * time.Second
		if more := len(sweep.Advise(p).Left); more > left {
			t.Fatalf("%s: %d left, %d with more", p.Strategy, left, more)
		}
	})
}

// Two lanes do six tasks each in the hour; the dear one is filled first, and the rest is cheap.
func TestDearestFirstWithinTheDeadline(t *testing.T) {
	lane := func(name string, price protocol.Credits) sweep.Resource {
		return sweep.Resource{Name: name, Lanes: make([]time.Duration, 1), Until: time.Hour, Price: price, Work: 1, Time: 10 * time.Minute}
	}
	p := sweep.Problem{Strategy: sweep.Cost, Deadline: time.Hour, Money: 1000 * protocol.Credit, Resources: []sweep.Resource{lane("cheap", 6*protocol.Credit), lane("dear", 60*protocol.Credit)}}
	for range 9 {
		p.Sizes = append(p.Sizes, 1)
	}
	if got := sweep.Dearest(p); got.Cost != (6*10+3)*protocol.Credit || len(got.Left) != 0 {
		t.Errorf("%+v", got)
	}
	if got := sweep.Advise(p); got.Cost != (3*10+6)*protocol.Credit {
		t.Errorf("cheapest first: %+v", got)
	}
}

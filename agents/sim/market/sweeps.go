package market

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ramp/agents/sim"
	"ramp/agents/user/sweep"
	"ramp/agents/user/sweep/plan"
	"ramp/agents/user/sweeper"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Task is the program of a sweep's tasks.
const Task = "/bin/task"

// taskWall is the most time for a task of a sweep.
const taskWall = 3 * time.Minute

// brokenEvery is how many sites there are for each one where tasks fail at once.
const brokenEvery = 4

// tasksOf draws how tasks behave on a site: every fourth has no such program, some are slower than others
// or become so, and anywhere a task may fail or take longer than it may.
func (m *Market) tasksOf(i int) Behavior {
	c := sim.NewChance(m.cfg.Seed, streamTask+uint64(i))
	slow := 1 + c.N(3)
	turns := Dawn.Add(time.Duration(c.N(int(m.cfg.Length/time.Second))) * time.Second)
	return func(now time.Time, job message.Job) (time.Duration, int, bool) {
		if !slices.Contains(job.Argv, Task) {
			return 0, 0, false
		}
		if i%brokenEvery == 0 {
			return time.Second, 127, true
		}
		length := time.Duration(slow*(1+c.N(40))) * time.Second
		if now.After(turns) {
			length *= 2
		}
		switch c.N(40) {
		case 0:
			return length, 1, true
		case 1:
			return 2 * taskWall, 0, true
		}
		return length, 0, true
	}
}

// sweepOwner is the owner of a user agent who orders sweeps, and changes them while they run.
type sweepOwner struct {
	market *Market
	user   *User
	chance sim.Chance
	begun  []message.SweepOrder // oldest first
	given  map[string]sweepTerms
}

// sweepTerms are what an owner has ever allowed for a sweep.
type sweepTerms struct {
	budgets   []protocol.Credits
	deadlines []time.Time
}

// next has the owner order again and again, at random, until the market is calm.
func (o *sweepOwner) next() {
	if o.market.cfg.Sweeps == 0 {
		return
	}
	o.market.World.After(o.chance.Waiting(time.Duration(float64(time.Hour)/o.market.cfg.Sweeps)), func() {
		if o.market.calm {
			return
		}
		o.order()
		o.next()
	})
}

// order gives an order, and sometimes the same again.
func (o *sweepOwner) order() {
	n := 1 + o.chance.N(16)
	p := plan.Plan{
		Axes:  []plan.Axis{{Name: "n", Values: make([]string, n)}},
		Cores: 1 << o.chance.N(3), Wall: taskWall, Command: []string{Task, "${n}"},
		AtOnce:   o.chance.N(2) * (1 + o.chance.N(4)),
		Strategy: sweep.Strategies()[o.chance.N(len(sweep.Strategies()))], Equal: o.chance.N(2) * 2000, RetryExit: o.chance.N(3), RetrySite: o.chance.N(6),
	}
	for i := range p.Axes[0].Values {
		p.Axes[0].Values[i] = fmt.Sprint(i)
	}
	p.Deadline, p.Budget = o.span(), o.money(&p)
	order := o.begin(p)
	o.later(func() { o.give(order) })
	for range o.chance.N(3) {
		o.later(func() { o.change(order.ID) })
	}
}

// begin orders a sweep.
func (o *sweepOwner) begin(p plan.Plan) message.SweepOrder {
	p.DeadlineAt = o.user.Host.Now().Truncate(time.Second).Add(p.Deadline)
	text, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("market: plan %s: %v", p.Name, err))
	}
	id := fmt.Sprintf("%s-sweep-%d", o.user.Host.Name, len(o.begun)+1)
	order := message.SweepOrder{ID: id, Plan: text, Out: "/" + id}
	o.given[id] = sweepTerms{[]protocol.Credits{p.Budget}, []time.Time{p.DeadlineAt}}
	o.begun = append(o.begun, order)
	o.give(order)
	return order
}

// Sweep orders a sweep, whose deadline is counted from now, and returns its ID.
func (u *User) Sweep(p plan.Plan) string { return u.sweeps.begin(p).ID }

// Sweeps are those of the agent; nil while it is down.
func (u *User) Sweeps() *sweeper.Sweeps {
	role, ok := u.Host.Role().(userRole)
	if !ok {
		return nil
	}
	return role.Sweeps()
}

// later has an owner do something within the hour, sometimes.
func (o *sweepOwner) later(f func()) {
	if o.chance.N(3) > 0 {
		return
	}
	o.market.World.After(time.Duration(o.chance.N(3600))*time.Second, func() {
		if !o.market.calm {
			f()
		}
	})
}

func (o *sweepOwner) span() time.Duration { return time.Duration(5+o.chance.N(85)) * time.Minute }

// money is a budget, which may be too small.
func (o *sweepOwner) money(p *plan.Plan) protocol.Credits {
	return protocol.Credits(p.Len()*p.Cores*(1+o.chance.N(16))) * protocol.Credit / 4
}

func (o *sweepOwner) give(order message.SweepOrder) {
	o.do(func(now time.Time, s *sweeper.Sweeps) (protocol.Output, error) { return s.Order(now, order, nil) })
}

// change changes terms of a sweep, or has it paused, resumed, retried or killed.
func (o *sweepOwner) change(id string) {
	i := slices.IndexFunc(o.begun, func(x message.SweepOrder) bool { return x.ID == id })
	set, t := message.SweepSet{ID: id}, o.given[id]
	switch o.chance.N(6) {
	case 0:
		set.Budget = t.budgets[0] * protocol.Credits(1+o.chance.N(4)) / 2
		t.budgets = append(t.budgets, set.Budget)
	case 1:
		set.Deadline = o.user.Host.Now().Add(o.span()).Truncate(time.Second)
		t.deadlines = append(t.deadlines, set.Deadline)
	case 2:
		set.Strategy = string(sweep.Strategies()[o.chance.N(len(sweep.Strategies()))])
	case 3:
		set.Verb = message.SweepPause
		o.market.World.After(o.chance.Around(5*time.Minute), func() { o.set(message.SweepSet{ID: id, Verb: message.SweepResume}) })
	case 4:
		set.Verb = message.SweepRetry
	case 5:
		if i%3 == 0 {
			set.Verb = message.SweepKill
		}
	}
	o.given[id] = t
	o.set(set)
}

func (o *sweepOwner) set(q message.SweepSet) {
	o.do(func(now time.Time, s *sweeper.Sweeps) (protocol.Output, error) { return s.Set(now, q) })
}

// do does something with the sweeps of the agent, unless it is down. An error is one that its owner
// is shown: the order of a sweep may have been lost.
func (o *sweepOwner) do(f func(now time.Time, s *sweeper.Sweeps) (protocol.Output, error)) {
	o.market.World.Do(o.user.Host, func(now time.Time) protocol.Output {
		out, err := f(now, o.user.Host.Role().(userRole).Sweeps())
		if err != nil {
			return protocol.Output{}
		}
		return out
	})
}

// outputs are the files of a user, with what its tasks have left. They outlive its agent.
type outputs struct {
	agent  protocol.AgentID
	chance sim.Chance
	placed map[string]string // launches, by the directory that has what they have left
}

// Receive fetches outputs after a while; some cannot be had.
func (o *outputs) Receive(_ time.Time, m protocol.Message) []sim.Later {
	r, ok := m.Body.(message.StageOut)
	if !ok {
		return nil
	}
	answer, to := message.StagedOut{Launch: r.Launch}, r.Dir+"/"+r.Name
	if o.placed[to] != r.Launch && o.chance.N(30) == 0 {
		answer.Why = "it is not kept any more"
	} else {
		o.placed[to] = r.Launch
	}
	return []sim.Later{{After: o.chance.Around(time.Second), Message: protocol.Message{
		Performative: protocol.Inform, Sender: protocol.LocalFiles, Receivers: []protocol.AgentID{o.agent}, Protocol: protocol.ProtocolQueue, Body: answer,
	}}}
}

// Advance has nothing to do.
func (*outputs) Advance(time.Time) ([]sim.Later, time.Time) { return nil, time.Time{} }

package sweeper

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"ramp/agents/user/sweep"
	"ramp/agents/user/sweep/plan"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// Act has every sweep do what is to be done now.
func (s *Sweeps) Act(now time.Time) (out protocol.Output) {
	for _, id := range slices.Clone(s.order) {
		if x := s.by[id]; x != nil && !x.quiet {
			out = out.Join(s.act(now, x))
		}
	}
	return out
}

func (s *Sweeps) act(now time.Time, x *live) (out protocol.Output) {
	if len(x.stuck) == 0 {
		for a := x.Act(x.since(now)); x.dry == nil && a.Any(); a = x.Act(x.since(now)) {
			out = out.Join(s.carryOut(now, x, a))
		}
	}
	if x.over() {
		out = out.Join(s.giveBack(now, x))
		x.quiet = x.dry == nil && !x.buying()
	} else {
		out = out.Join(s.trade(now, x))
		if next := x.Next(x.since(now)); next > 0 {
			out.WakeAt = protocol.Earlier(out.WakeAt, x.at(next))
		}
	}
	if state := x.state(now); state != x.shown && x.dry == nil {
		x.shown = state
		if state != stateRunning {
			out.Send = append(out.Send, s.files(message.SaveFile{Sweep: x.Order.ID, Path: x.Order.Out + "/" + plan.ResultsFile, Content: x.results()}))
		}
	}
	return out
}

// carryOut saves leases and attempts, and orders and launches them.
func (s *Sweeps) carryOut(now time.Time, x *live, a sweep.Actions) (out protocol.Output) {
	for _, b := range a.Buy {
		x.leases = append(x.leases, lease{Cores: x.Plan.Cores})
		out.Save = append(out.Save, x.saveLease(b.Lease))
	}
	for _, l := range a.Launch {
		out.Save = append(out.Save, x.saveTask(l.Task))
	}
	for _, b := range a.Buy {
		out = out.Join(s.buy(now, x, b))
	}
	for _, l := range a.Launch {
		out = out.Join(s.agent.Launch(now, x.run(now, l)))
	}
	for _, n := range a.Close {
		out = out.Join(s.release(now, x, n))
	}
	return out
}

func (s *Sweeps) release(now time.Time, x *live, n int) protocol.Output {
	out := protocol.Output{Save: []protocol.Record{x.saveLease(n)}}
	if l := x.leases[n]; l.Contract != "" && now.Before(x.at(x.At(n).End)) {
		out = out.Join(s.agent.Release(now, x.leaseID(n), protocol.AgentID(x.At(n).Site), l.Contract))
	}
	return out
}

// giveBack releases every lease of a sweep that is over.
func (s *Sweeps) giveBack(now time.Time, x *live) (out protocol.Output) {
	for n := range x.leases {
		if l := x.At(n); l.Signed && !l.Closed {
			x.Over(n)
			out = out.Join(s.release(now, x, n))
		}
	}
	return out
}

// trade asks all sellers what a lease costs, if that is due.
func (s *Sweeps) trade(now time.Time, x *live) protocol.Output {
	deadline := x.at(x.Terms.Deadline)
	switch {
	case x.trading != "" || x.Terms.Paused || x.Count(sweep.Waiting)+x.Count(sweep.Assigned) == 0 || !now.Before(deadline):
		return protocol.Output{}
	case now.Before(x.tradeAt):
		return protocol.Output{WakeAt: x.tradeAt}
	}
	x.trades++
	// Sellers remember quotes, also those of before a restart.
	x.trading = fmt.Sprintf("%s%s.%d", protocol.QuotePrefix, strings.TrimPrefix(x.Order.ID, protocol.QuotePrefix), now.UnixNano())
	wall := min((x.Plan.Wall + slack + time.Minute - 1).Truncate(time.Minute), deadline.Sub(now).Truncate(time.Minute))
	q := rfql.DraftRequest{Name: x.Plan.Name, TotalCores: x.Plan.Cores, Wall: max(wall, time.Minute), End: deadline}
	order, err := x.order(now, x.trading, q)
	if err != nil {
		return s.Traded(now, Traded{ID: x.trading, Why: err.Error()})
	}
	order.Options.QuoteOnly = true
	return s.agent.Buy(now, order)
}

func (x *live) order(now time.Time, id string, q rfql.DraftRequest) (message.Buy, error) {
	doc, err := rfql.Check(rfql.Draft{Objective: protocol.ObjectiveCost, Requests: []rfql.DraftRequest{q}}, now)
	if err != nil {
		return message.Buy{}, err
	}
	intent := &message.Intent{App: x.Plan.App}
	for _, in := range x.Plan.Task(0).Inputs {
		for _, f := range x.Order.Inputs[in] {
			intent.Input += f.File.Size
		}
	}
	return message.Buy{ID: id, Name: x.Plan.Name, Document: doc.XML(), Intent: intent, Options: message.Options{NoReplace: true}}, nil
}

// buy orders a lease at its seller, at the traded price.
func (s *Sweeps) buy(now time.Time, x *live, b sweep.Buy) protocol.Output {
	id := x.leaseID(b.Lease)
	order, err := x.order(now, id, rfql.DraftRequest{Name: x.Plan.Name, TotalCores: x.Plan.Cores, Price: b.Price / protocol.Credits(x.Plan.Cores), NotBefore: x.at(b.Start), End: x.at(b.End)})
	if err != nil {
		return s.Bought(now, Bought{ID: id, Why: err.Error()})
	}
	order.Only, order.Options.MaxCost = protocol.AgentID(b.Site), b.Most
	return s.agent.Buy(now, order)
}

// run is an attempt as a run in the unit of its lease.
func (x *live) run(now time.Time, l sweep.Launch) message.Run {
	task, of := x.Plan.Task(l.Task), x.leases[l.Lease]
	id := x.attemptID(l.Task, l.Attempt)
	site := x.At(l.Lease)
	return message.Run{
		ID: id, Name: x.Plan.Name, Contract: of.Contract, Created: now, Program: Program(task, x.Order.Inputs), Sweep: x.Order.ID, Follows: !x.Single,
		Units: []message.RunUnit{{
			Launch: id, Resource: protocol.AgentID(site.Site).Name(), Seller: protocol.AgentID(site.Site),
			Slot: protocol.Slot{Start: x.at(site.Start), End: x.at(site.End), Cores: of.Cores}, Status: message.LaunchStatus{Stage: message.StageAsked},
		}},
	}
}

// Program is the program of a task, with its inputs by the words of the plan.
func Program(t plan.Task, inputs map[string][]message.RunInput) message.Program {
	p := message.Program{App: t.App, Params: t.Params, Command: t.Command, Outputs: t.Outputs, Detached: true}
	for _, in := range t.Inputs {
		p.Inputs = append(p.Inputs, inputs[in]...)
	}
	for i := range p.Inputs { // what the command runs is a program, whatever its mode is here
		if f := &p.Inputs[i].File; len(p.Command) > 0 && p.Command[0] == "./"+f.Path {
			f.Exec = true
		}
	}
	return p
}

// Traded takes the outcome of a trade.
func (s *Sweeps) Traded(now time.Time, t Traded) protocol.Output {
	i := slices.IndexFunc(s.order, func(id string) bool { return s.by[id].trading == t.ID })
	if i < 0 || t.ID == "" {
		return protocol.Output{}
	}
	x := s.by[s.order[i]]
	x.trading, x.offers, x.why = "", t.Offers, t.Why
	if t.Currency != "" {
		x.Currency, x.Single = t.Currency, t.Mode != "" && t.Mode != protocol.ModeOnReservation
	}
	if x.Lease = longest; x.Single {
		x.Lease = 0
	}
	x.Trade(x.since(now), x.offered(s.agent.Sellers(now), now))
	x.Advise(x.since(now))
	if x.dry != nil {
		x.dry(x.forecast(now))
		s.drop(x.Order.ID)
		return protocol.Output{}
	}
	x.tradeAt = now.Add(tradeMost)
	switch {
	case x.Count(sweep.Waiting) > 0:
		x.barren++
		x.tradeAt = now.Add(min(tradeFirst<<min(x.barren, 8), tradeMost))
	case slices.ContainsFunc(x.Sites(), func(v sweep.SiteView) bool { return v.Silent && v.Assigned > 0 }): // tasks wait for a site that is silent
		x.tradeAt = now.Add(awaited)
	}
	x.row.Offers = x.Sweep.Offers()
	return protocol.Output{Save: []protocol.Record{x.save()}, WakeAt: now}
}

// offered are the offers of a trade by lane.
func (x *live) offered(sellers []Seller, now time.Time) (list []sweep.Offer) {
	for _, o := range x.offers {
		i := slices.IndexFunc(sellers, func(s Seller) bool { return s.ID == o.Seller })
		if i < 0 || slices.ContainsFunc(list, func(y sweep.Offer) bool { return y.Site == string(o.Seller) }) {
			continue
		}
		start := x.since(o.Start)
		if o.Start.Sub(now) <= soon {
			start = 0 // a window that fits exactly needs no lead
		}
		list = append(list, sweep.Offer{Site: string(o.Seller), Price: o.Price * protocol.Credits(x.Plan.Cores), Lanes: sellers[i].Cores / x.Plan.Cores, Start: start})
	}
	return list
}

// soon is a start that a seller's lead explains.
const soon = 15 * time.Minute

// Bought takes how the purchase of a lease stands.
func (s *Sweeps) Bought(now time.Time, b Bought) protocol.Output {
	x, n := s.leaseOf(b.ID)
	if x == nil {
		return protocol.Output{}
	}
	l, of := x.At(n), &x.leases[n]
	x.quiet = false
	switch {
	case of.Ended || !b.Settled && l.Closed:
		return protocol.Output{}
	case !b.Settled:
		of.Ended, x.why, x.poor = true, b.Why, b.Poor
		x.tradeAt = protocol.Earlier(x.tradeAt, now.Add(tradeFirst))
		x.Refused(x.since(now), n, b.Why)
	case !l.Signed:
		of.Contract, of.Entry, x.barren, x.poor = b.Contract, b.Entry, 0, false
		x.Signed(n, x.since(b.Slot.Start), x.since(b.Slot.End), b.Total)
		fallthrough
	default:
		of.Refunded, of.Ended = b.Refunded, b.Ended
		if b.After && !b.Ended {
			x.Account(n, 0, b.Total)
		} else {
			x.Account(n, b.Total-b.Refunded, 0)
		}
		if b.Ended && b.Refunded > 0 {
			x.Over(n)
		}
	}
	return protocol.Output{Save: []protocol.Record{x.saveLease(n)}, WakeAt: now}
}

// Ran takes a run that is over.
func (s *Sweeps) Ran(now time.Time, r message.Run) protocol.Output {
	id, i, ok := cut(r.ID, ".t")
	x := s.by[id]
	if !ok || x == nil || i >= x.Len() || x.Task(i).State != sweep.Running || x.runID(i) != r.ID {
		return s.agent.Discard(now, r.ID) // of an attempt that is over
	}
	attempts := x.Task(i).Attempts
	n := attempts[len(attempts)-1].Lease
	how, exit, why := ended(r, x.Killed)
	x.Ended(x.since(now), n, how, exit, why)
	out := protocol.Output{Save: []protocol.Record{x.saveTask(i)}, WakeAt: now}
	if r.Units[0].Status.Stage != message.StageDone || how == sweep.Lost {
		return out.Join(s.agent.Discard(now, r.ID)) // it has left nothing
	}
	return out.Join(s.fetch(x, i, len(attempts), r))
}

func ended(r message.Run, killed bool) (how sweep.End, exit int, why string) {
	u := r.Units[0]
	why = cmp.Or(u.Status.Why, u.Status.Job.Note)
	switch {
	case u.Status.Job.State == protocol.JobExited && u.Status.Job.Exit == 0:
		return sweep.Succeeded, 0, ""
	case u.Status.Job.State == protocol.JobExited:
		return sweep.Exited, u.Status.Job.Exit, fmt.Sprintf("the program ended with exit code %d", u.Status.Job.Exit)
	case u.Status.Job.State == protocol.JobExpired:
		return sweep.Expired, 0, "it was ended with its slot"
	case r.Fault != "": // an input of its owner
		return sweep.Exited, exitNever, r.Fault
	case killed || u.Status.Job.State == protocol.JobKilled:
		why = "it was killed"
	}
	return sweep.Lost, 0, why
}

// exitNever is the exit code of a task that could not start.
const exitNever = 125

// fetch has what an attempt of a task has left brought to the task's directory; that of a failed one is
// kept apart.
func (s *Sweeps) fetch(x *live, i, attempt int, r message.Run) protocol.Output {
	u, name := r.Units[0], x.Plan.Task(i).Directory
	if x.Task(i).Attempts[attempt-1].How != sweep.Succeeded {
		name = fmt.Sprintf("%s/%s.%d", plan.FailedDir, name, attempt)
	}
	x.fetching[r.ID] = i
	return protocol.Output{Send: []protocol.Message{s.files(message.StageOut{Contract: r.Contract, Launch: r.ID, Seller: u.Seller, Files: r.Program.Wanted(u), Dir: x.Order.Out, Name: name})}}
}

func (s *Sweeps) files(body protocol.Body) protocol.Message {
	return protocol.Message{Performative: protocol.Request, Sender: s.self, Receivers: []protocol.AgentID{protocol.LocalFiles}, Protocol: protocol.ProtocolQueue, Body: body}
}

// Staged takes the outputs of a launch that have come, or cannot come. Nothing begins while they cannot be
// written here.
func (s *Sweeps) Staged(now time.Time, b message.StagedOut) protocol.Output {
	id, _, launch := cut(b.Launch, ".t")
	if !launch {
		id = b.Launch // of its results.csv
	}
	x := s.by[id]
	if x == nil {
		return protocol.Output{}
	}
	i, ok := x.fetching[b.Launch]
	switch {
	case b.Again && b.Here:
		x.stuck[b.Launch] = b.Why
		return protocol.Output{}
	case b.Again:
		x.why = fmt.Sprintf("outputs of %s: %s", b.Launch, b.Why)
		return protocol.Output{}
	}
	delete(x.stuck, b.Launch)
	if !ok {
		return protocol.Output{WakeAt: now}
	}
	delete(x.fetching, b.Launch)
	out := s.agent.Discard(now, b.Launch)
	if x.Task(i).State != sweep.Fetching || x.runID(i) != b.Launch {
		return out // of an attempt that failed
	}
	if b.Why == "" {
		x.Fetched(i)
	} else {
		x.Gone(i, b.Why)
	}
	out.Save = append(out.Save, x.saveTask(i))
	return out.Join(protocol.Output{WakeAt: now})
}

// Resume goes on with the sweeps of an agent that has restarted, once its purchases and runs are
// restored.
func (s *Sweeps) Resume(now time.Time) (out protocol.Output) {
	for _, id := range slices.Clone(s.order) {
		x := s.by[id]
		x.tradeAt = now
		for n := range x.leases {
			l := x.At(n)
			if _, going := s.agent.Going(x.leaseID(n)); !l.Signed && !l.Closed && !going {
				out = out.Join(s.Bought(now, Bought{ID: x.leaseID(n), Why: "the agent stopped before it was bought"}))
			}
		}
		for i := range x.Len() {
			out = out.Join(s.resumeTask(now, x, i))
		}
	}
	return out.Join(s.Act(now))
}

// resumeTask goes on with the attempts of a task that run, or whose outputs are fetched.
func (s *Sweeps) resumeTask(now time.Time, x *live, i int) (out protocol.Output) {
	t := x.Task(i)
	for k := range t.Attempts {
		last := k == len(t.Attempts)-1
		r, ok := s.agent.Run(x.attemptID(i, k+1))
		switch {
		case !ok && last && t.State == sweep.Running:
			out = out.Join(s.Ran(now, message.Run{ID: x.runID(i), Units: []message.RunUnit{{Status: message.LaunchStatus{Why: "its record is lost"}}}}))
		case !ok && last && t.State == sweep.Fetching:
			x.Gone(i, "the record of its run is lost")
			out.Save = append(out.Save, x.saveTask(i))
		case !ok || !r.Over || r.Discarding:
		case last && t.State == sweep.Running:
			out = out.Join(s.Ran(now, r))
		case r.Units[0].Status.Stage == message.StageDone:
			out = out.Join(s.fetch(x, i, k+1, r))
		default:
			out = out.Join(s.agent.Discard(now, r.ID))
		}
	}
	return out
}

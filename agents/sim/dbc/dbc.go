// Package dbc runs the experiment of 004 (section 4): jobs of known lengths on priced resources,
// scheduled by the planner of live sweeps in virtual time.
package dbc

import (
	"cmp"
	"slices"
	"time"

	"ramp/agents/user/sweep"
	"ramp/protocol"
)

// Unit is a time unit of 004.
const Unit = time.Second

// Resource is a resource as in 004's table 1.
type Resource struct {
	Name string
	PEs  int
	MIPS int64 // of a processor, in millionths
	// Shared: its processors are time-shared. A broker deploys at most as many jobs on a resource as
	// it has processors, so each job has one to itself, and both policies run the same.
	Shared bool
	Price  protocol.Credits // of a processor and time unit
}

// Outcome is what a broker reached.
type Outcome struct {
	Done  int
	Time  time.Duration // when the last job ended
	Spent protocol.Credits
	Per   map[string]int // jobs done, by resource
}

// Run schedules jobs, whose lengths are in millionths of a million instructions, on resources within
// a deadline and a budget. watch, if not nil, is called after each event.
func Run(resources []Resource, lengths []int64, terms sweep.Terms, watch func(now time.Duration, s *sweep.Sweep)) Outcome {
	s := sweep.New(sweep.Config{Terms: terms, Sizes: lengths})
	var offers []sweep.Offer
	for _, r := range resources {
		offers = append(offers, sweep.Offer{Site: r.Name, Price: r.Price * protocol.Credits(time.Hour/Unit), Lanes: r.PEs, Work: r.MIPS, Time: Unit})
	}
	s.Trade(0, offers)
	out := Outcome{Per: map[string]int{}}
	var running leases
	for now := time.Duration(0); ; now = out.Time {
		running.begin(s, now)
		if watch != nil {
			watch(now, s)
		}
		if len(running) == 0 {
			break
		}
		l := running[0]
		running = running[1:]
		out.Time = l.End
		s.Fetched(s.Ended(l.End, l.Lease, sweep.Succeeded, 0, ""))
		s.Account(l.Lease, l.Most, 0)
	}
	for _, x := range s.Sites() {
		out.Per[x.Site] = x.Done
	}
	out.Done = s.Count(sweep.Done)
	out.Spent, _ = s.Money()
	return out
}

// leases are those that run a job, in order of their ends.
type leases []sweep.Buy

// begin does what a sweep wants done. A resource sells what it offers, at once, and a job takes the
// whole of its lease.
func (l *leases) begin(s *sweep.Sweep, now time.Duration) {
	for a := s.Act(now); len(a.Buy)+len(a.Launch) > 0; a = s.Act(now) {
		for _, b := range a.Buy {
			s.Signed(b.Lease, b.Start, b.End, b.Most)
			at, _ := slices.BinarySearchFunc(*l, b, func(x, y sweep.Buy) int { return cmp.Or(cmp.Compare(x.End, y.End), cmp.Compare(x.Lease, y.Lease)) })
			*l = slices.Insert(*l, at, b)
		}
	}
}

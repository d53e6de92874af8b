// Package dbc runs the experiment of 004: jobs of known lengths on priced resources, scheduled by
// the planner of live sweeps in virtual time.
package dbc

import (
	"container/heap"
	"time"

	"ramp/agents/user/sweep"
	"ramp/protocol"
)

// Unit is a time unit of 004.
const Unit = time.Second

// Resource is a resource of 004's table 1. A broker deploys at most as many jobs on a resource as
// it has processors, so time-shared and space-shared ones run the same.
type Resource struct {
	Name  string
	PEs   int
	MIPS  int64            // of a processor, in millionths
	Price protocol.Credits // of a processor and time unit
}

// Outcome is what a broker reached.
type Outcome struct {
	Done  int
	Time  time.Duration // of the last job's end
	Spent protocol.Credits
	Per   map[string]int
	Trace []Event
}

// Event is a change of a resource's numbers of jobs.
type Event struct {
	At       time.Duration
	Resource int
	Done     int
}

// Run schedules jobs, their lengths in millionths of a MI, by deadline and budget.
func Run(resources []Resource, lengths []int64, terms sweep.Terms) Outcome {
	s := sweep.New(sweep.Config{Terms: terms, Sizes: lengths})
	var offers []sweep.Offer
	for _, r := range resources {
		offers = append(offers, sweep.Offer{Site: r.Name, Price: r.Price * protocol.Credits(time.Hour/Unit), Lanes: r.PEs, Work: r.MIPS, Time: Unit})
	}
	s.Trade(offers)
	var now time.Duration
	var running ends
	held := map[int]sweep.Buy{}
	var out Outcome
	for {
		for a := s.Act(now); len(a.Buy)+len(a.Launch) > 0; a = s.Act(now) {
			for _, b := range a.Buy {
				s.Signed(b.Lease, b.Start, b.End, b.Most)
				held[b.Lease] = b
			}
			for _, l := range a.Launch {
				heap.Push(&running, held[l.Lease])
			}
		}
		if len(running) == 0 {
			break
		}
		b := heap.Pop(&running).(sweep.Buy)
		now = b.End
		s.Ended(now, b.Lease, sweep.Succeeded)
		s.Paid(b.Lease, b.Most)
		out.Time = now
	}
	out.Done, out.Per = s.Count(sweep.Done), s.Per()
	out.Spent, _ = s.Money()
	return out
}

// ends are leases in the order of their ends.
type ends []sweep.Buy

func (e ends) Len() int { return len(e) }
func (e ends) Less(i, j int) bool {
	return e[i].End < e[j].End || e[i].End == e[j].End && e[i].Lease < e[j].Lease
}
func (e ends) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)   { *e = append(*e, x.(sweep.Buy)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

package sweep_test

import (
	"fmt"
	"testing"
	"time"

	"ramp/agents/user/sweep"
	"ramp/protocol"
)

// 10,000 tasks of unknown lengths on 100 sites of eight lanes, leased for 15 minutes at a time; an event,
// the end of a task and what follows from it, costs at most 100 µs on a machine of 2020.
func BenchmarkLiveEvent(b *testing.B) {
	events := 0
	for b.Loop() {
		c := liveConfig(10_000)
		c.Budget, c.Deadline, c.Before, c.Round = 1e6*protocol.Credit, 24*time.Hour, 2*time.Second, time.Second
		s := sweep.New(c)
		var offers []sweep.Offer
		for i := range 100 {
			offers = append(offers, sweep.Offer{Site: fmt.Sprintf("site%03d", i), Price: protocol.Credits(1+i%9) * protocol.Credit, Lanes: 8})
		}
		s.Trade(0, offers)
		due := map[time.Duration][]int{} // leases whose tasks end, by time
		for now := time.Duration(0); s.Count(sweep.Done) < s.Len(); now += time.Second {
			for _, n := range due[now] {
				s.Fetched(s.Ended(now, n, sweep.Succeeded, 0, ""))
				events++
				began(s, now, due)
			}
			delete(due, now)
			began(s, now, due)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(events), "µs/event")
}

// began does what a sweep wants done now.
func began(s *sweep.Sweep, now time.Duration, due map[time.Duration][]int) {
	for a := s.Act(now); a.Any(); a = s.Act(now) {
		for _, x := range a.Buy {
			s.Signed(x.Lease, x.Start, x.End, x.Most)
			s.Account(x.Lease, x.Most, 0)
		}
		for _, l := range a.Launch {
			end := now + time.Duration(20+l.Task%20)*time.Second
			due[end] = append(due[end], l.Lease)
		}
	}
}

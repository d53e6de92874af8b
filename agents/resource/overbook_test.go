package resource_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/agents/resource"
	"ramp/agents/resource/forecast"
	"ramp/agents/workload"
	"ramp/protocol"
	"ramp/protocol/message"
)

// overbooking is a site that overbooks, and has learnt that jobs of up to four cores run
// a tenth to three tenths of their requested time.
func (a *agents) overbooking() resource.Config {
	cfg := a.config()
	cfg.Overbook, cfg.Learnt = true, &forecast.Forecast{}
	for i := range 300 {
		cfg.Learnt.Ended(4, 1000, int64(100+i%200))
	}
	return cfg
}

// drawState is a busy machine of 100 cores at noon, in whole minutes.
func drawState(t *rapid.T) (q message.QueueChanged, claims []forecast.Claim) {
	q = message.QueueChanged{At: noon, Capacity: 100}
	free := 100
	for i := range rapid.IntRange(0, 30).Draw(t, "running") {
		wall := time.Duration(rapid.IntRange(10, 600).Draw(t, "wall")) * time.Minute
		began := noon.Add(-time.Duration(rapid.IntRange(0, 9).Draw(t, "began")) * time.Minute)
		c := min(rapid.IntRange(1, 8).Draw(t, "cores"), free)
		if free -= c; c == 0 {
			break
		}
		q.Running = append(q.Running, message.RunningJob{Cores: c, End: began.Add(wall), ID: fmt.Sprint(i), Started: began, Wall: wall})
		claims = append(claims, forecast.Claim{Cores: c, Start: began.Unix(), Requested: int64(wall / time.Second)})
	}
	for range rapid.IntRange(0, 4).Draw(t, "waiting") {
		q.Queued = append(q.Queued, message.QueuedJob{Cores: rapid.IntRange(1, 100).Draw(t, "cores"), Wall: time.Hour})
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "reservations") {
		start := noon.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "from")) * time.Minute)
		q.Reservations = append(q.Reservations, message.QueueReservation{ID: fmt.Sprint("other", i), Slot: protocol.Slot{
			Start: start, End: start.Add(time.Duration(rapid.IntRange(1, 300).Draw(t, "long")) * time.Minute), Cores: rapid.IntRange(1, 40).Draw(t, "cores")}})
	}
	return q, claims
}

// oracle is the rule as measured on logs: a slot is sold if the requested times allow
// it, or if the bounds do and the running jobs break it with at most one in twenty.
type oracle struct {
	learnt *forecast.Forecast
	snap   workload.Snapshot
	claims []forecast.Claim
}

func newOracle(f *forecast.Forecast, q message.QueueChanged, claims []forecast.Claim) oracle {
	o := oracle{learnt: f, claims: claims, snap: workload.Snapshot{Now: noon.Unix(), Capacity: q.Capacity}}
	for i, j := range q.Running {
		o.snap.Running = append(o.snap.Running, workload.Running{Number: int32(i), Cores: j.Cores, End: j.End.Unix()})
	}
	for i, j := range q.Queued {
		o.snap.Waiting = append(o.snap.Waiting, workload.Waiting{Number: int32(i), Cores: j.Cores, Wall: int64(j.Wall / time.Second)})
	}
	for _, r := range q.Reservations {
		o.snap.Reservations = append(o.snap.Reservations, workload.Reservation{ID: r.ID, Start: r.Slot.Start.Unix(), End: r.Slot.End.Unix(), Cores: r.Slot.Cores})
	}
	return o
}

// reserved is the most cores that reservations take at a minute of [start, end).
func (o oracle) reserved(start, end int64) int {
	most := 0
	for at := start; at < end; at += 60 {
		sum := 0
		for _, r := range o.snap.Reservations {
			if r.Start <= at && at < r.End {
				sum += r.Cores
			}
		}
		most = max(most, sum)
	}
	return most
}

// sells reports whether it sells a slot, and whether the requested times allow it.
func (o oracle) sells(slot protocol.Slot) (sells, plain bool) {
	start, end, view := slot.Start.Unix(), slot.End.Unix(), forecast.UsualView()
	if o.snap.Project().Free(start, end) >= slot.Cores {
		return true, true
	}
	shortened := o.learnt.Shorten(o.snap, func(r workload.Running) forecast.Claim { return o.claims[r.Number] }, view.Level)
	room := o.snap.Capacity - slot.Cores - o.reserved(start, end)
	risk := o.learnt.Shortfall(o.claims, o.snap.Now, start, room, view.Level.Confidence)
	return risk <= view.Risk && shortened.Project().Free(start, end) >= slot.Cores, false
}

// offers reports whether the agent would offer a slot of an hour.
func (s *site) offers(slot protocol.Slot) bool {
	lines, err := s.role.Check(s.now, document(slot.Cores, slot.Start, slot.End), 1)
	must(s.tb, err)
	return len(lines) > 0 && lines[0].Offer != nil
}

// For slots with a given start, a site that overbooks offers what the rule allows.
func TestAnOverbookingSiteOffersWhatTheRuleAllows(t *testing.T) {
	a := newAgents(t, "atlas", "bank")
	more := 0
	rapid.Check(t, func(rt *rapid.T) {
		plain, overbooked := newSite(t, a.config()), newSite(t, a.overbooking())
		q, claims := drawState(rt)
		plain.tells(q)
		overbooked.tells(q)
		o := newOracle(overbooked.cfg.Learnt, q, claims)
		for range 5 {
			start := noon.Add(time.Duration(rapid.IntRange(1, 80).Draw(rt, "start")) * 5 * time.Minute)
			slot := protocol.Slot{Start: start, End: start.Add(time.Hour), Cores: rapid.IntRange(1, 100).Draw(rt, "cores")}
			sells, usual := o.sells(slot)
			if got := plain.offers(slot); got != usual {
				rt.Fatalf("by the requested times %v offered: %v, want %v", slot, got, usual)
			}
			if got := overbooked.offers(slot); got != sells {
				rt.Fatalf("overbooking %v offered: %v, want %v", slot, got, sells)
			}
			if sells && !usual {
				more++
			}
		}
	})
	t.Logf("%d slots were offered that the requested times do not allow", more)
}

// crowded is a machine full of jobs of four cores that ask for ten hours.
func crowded() message.QueueChanged {
	q := message.QueueChanged{At: noon, Capacity: 100}
	for i := range 25 {
		q.Running = append(q.Running, message.RunningJob{Cores: 4, End: noon.Add(10 * time.Hour), ID: fmt.Sprint(i), Started: noon, Wall: 10 * time.Hour})
	}
	return q
}

// A slot that may move begins sooner.
func TestAnOverbookingSiteStartsSooner(t *testing.T) {
	a := newAgents(t, "atlas", "bank")
	starts := map[bool]time.Time{}
	for _, overbook := range []bool{false, true} {
		cfg := a.overbooking()
		cfg.Overbook = overbook
		s := newSite(t, cfg)
		s.tells(crowded())
		lines, err := s.role.Check(noon, document(50, noon.Add(5*time.Minute), noon.Add(20*time.Hour)), 1)
		must(t, err)
		starts[overbook] = lines[0].Slot.Start
	}
	if want := noon.Add(10 * time.Hour); !starts[false].Equal(want) {
		t.Errorf("by the requested times it starts at %s, want %s", starts[false], want)
	}
	if soon := noon.Add(3*time.Hour + 5*time.Minute); starts[true].After(soon) || starts[true].Before(noon.Add(time.Hour)) {
		t.Errorf("overbooking, it starts at %s, want one to three hours after noon", starts[true])
	}
}

// Beyond the owner's bound a site stops overbooking until it has kept enough other
// promises; the count survives a restart.
func TestTooManyBrokenPromisesStopOverbooking(t *testing.T) {
	a := newAgents(t, "atlas", "bank")
	slot := protocol.Slot{Start: noon.Add(4 * time.Hour), End: noon.Add(5 * time.Hour), Cores: 50}
	for _, c := range []struct {
		kept, broken, bound int
		selling             bool
	}{
		{0, 0, 0, true}, {50, 1, 0, false}, {98, 1, 0, false}, {99, 1, 0, true}, {50, 1, 20, true}, {990, 10, 0, true}, {989, 11, 0, false},
		{2000, 11, 0, false},
	} {
		cfg := a.overbooking()
		cfg.BrokenPerMille = c.bound
		s := newSite(t, cfg)
		s.store[resource.TablePromises] = map[string][]byte{}
		for i := range c.kept + c.broken {
			end := "kept"
			if i >= c.kept {
				end = "broken"
			}
			s.store[resource.TablePromises][fmt.Sprint(i)] = fmt.Appendf(nil, `{"start":"%s","sharp":true,"end":"%s"}`, noon.Add(time.Duration(i-4000)*time.Minute).Format(time.RFC3339), end)
		}
		s.start()
		s.tells(crowded())
		if got := s.offers(slot); got != c.selling {
			t.Errorf("%d kept, %d broken, bound %d: offers %v, want %v", c.kept, c.broken, c.bound, got, c.selling)
		}
		st := s.role.Status(s.now).Forecast.Overbook
		if st.Selling != c.selling || st.Broken != c.broken || st.Ended != min(c.kept+c.broken, resource.MaxEnded) {
			t.Errorf("%d kept, %d broken: status %+v", c.kept, c.broken, st)
		}
		if rows := len(s.store[resource.TablePromises]); rows != st.Ended {
			t.Errorf("%d kept, %d broken: %d rows, want %d", c.kept, c.broken, rows, st.Ended)
		}
	}
}

// The site releases an overbooked slot minutes before its start if the jobs do not end,
// so that its buyer gets the money back in time to buy another slot. A restart at any
// point changes nothing.
func TestAnUnlikelyOverbookedSlotIsReleasedInTime(t *testing.T) {
	a := newAgents(t, "ann", "atlas", "bank")
	for _, restarts := range []bool{false, true} {
		s := newSite(t, a.overbooking())
		s.batch.running = crowded().Running
		s.tells(s.batch.state(s.now))
		b := &buyer{agents: a, name: "ann", site: s}
		l := &ledger{agents: a, decided: map[protocol.ContractID]protocol.Receipt{}}
		for range 100 {
			b.step()
			b.hear()
			l.work(s)
			b.hear()
			s.pass(time.Second)
		}
		lines := s.role.Reservations()
		if len(lines) != 1 || lines[0].State != "sold" || s.role.Status(s.now).Forecast.Overbook.Overbooked != 1 {
			t.Fatalf("sold %+v, want one slot over jobs", lines)
		}
		start := lines[0].Slot.Start
		until := func(before time.Duration) {
			for s.now.Before(start.Add(-before)) {
				s.pass(time.Minute)
				if restarts {
					s.start()
				}
			}
		}
		if until(10 * time.Minute); s.role.Reservations()[0].State != "sold" {
			t.Fatalf("ten minutes ahead it is %+v", s.role.Reservations()[0])
		}
		until(2 * time.Minute)
		st := s.role.Status(s.now).Forecast.Overbook
		if state := s.role.Reservations()[0].State; state != "broken" || len(s.batch.slots) != 0 || st.OverbookedBroken != 1 || st.Selling {
			t.Fatalf("two minutes ahead it is %s, the batch system has %v, status %+v", state, s.batch.slots, st)
		}
	}
}

package resource_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/agents/resource"
	"ramp/agents/resource/forecast"
	"ramp/protocol"
	"ramp/protocol/message"
)

// machine is the jobs of a site, as they really are.
type machine struct {
	jobs []realJob
}

// realJob is submitted, starts and ends at seconds after noon.
type realJob struct {
	submit, start, end int
	cores              int
}

const requested = time.Hour

// at is what the batch system tells at a second.
func (m machine) at(second int) message.QueueChanged {
	clock := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	q := message.QueueChanged{At: clock(second), Capacity: 100}
	for i, j := range m.jobs {
		id := fmt.Sprintf("job-%d", i)
		switch {
		case second < j.submit || second >= j.end:
		case second < j.start:
			q.Queued = append(q.Queued, message.QueuedJob{Cores: j.cores, Wall: requested, ID: id, Submitted: clock(j.submit)})
		default:
			q.Running = append(q.Running, message.RunningJob{
				Cores: j.cores, End: clock(j.start).Add(requested), ID: id, Submitted: clock(j.submit), Started: clock(j.start), Wall: requested})
		}
	}
	return q
}

func (s *site) tells(q message.QueueChanged) {
	s.now = q.At
	s.receive(protocol.Message{Performative: protocol.Inform, Sender: protocol.LocalQueue, Body: q})
}

// Each wait is learnt once, however often the state is told and wherever the agent
// is restarted. What the last minutes before a crash taught is learnt again or
// forgotten, never counted twice. The oracle counts the jobs that were shown to run.
func TestEachWaitIsLearntOnce(t *testing.T) {
	a := newAgents(t, "atlas", "bank")
	rapid.Check(t, func(rt *rapid.T) {
		var m machine
		for range rapid.IntRange(0, 60).Draw(rt, "jobs") {
			submit := rapid.IntRange(0, 3000).Draw(rt, "submit")
			start := submit + rapid.IntRange(0, 900).Draw(rt, "wait")
			m.jobs = append(m.jobs, realJob{submit, start, start + rapid.IntRange(1, 3000).Draw(rt, "run"), rapid.IntRange(1, 4).Draw(rt, "cores")})
		}
		s := newSite(t, a.config())
		shown, crashes := map[int]bool{}, rapid.Bool().Draw(rt, "crashes")
		for second := 1; second < 7000; second += rapid.IntRange(20, 250).Draw(rt, "until the next state") {
			s.tells(m.at(second))
			for i, j := range m.jobs {
				if second >= j.start && second < j.end {
					shown[i] = true
				}
			}
			if crashes && rapid.IntRange(0, 9).Draw(rt, "crash") == 0 {
				s.start()
			}
		}
		seen := 0
		for _, w := range s.role.Status(s.now).Forecast.Waits {
			seen += w.Seen
		}
		if seen > len(shown) || !crashes && seen < len(shown) {
			rt.Fatalf("%d waits are learnt, %d jobs were shown to run", seen, len(shown))
		}
	})
}

// steady is a site whose jobs come every minute, wait ten and run twenty of the
// sixty minutes that they ask for.
func steady(jobs int) (m machine) {
	for i := range jobs {
		m.jobs = append(m.jobs, realJob{60 * i, 60*i + 600, 60*i + 1800, 2})
	}
	return m
}

func TestWhatIsLearntIsToldAndOutlivesARestart(t *testing.T) {
	a := newAgents(t, "ann", "atlas", "bank")
	s := newSite(t, a.config())
	m := steady(400)
	for second := 0; second < 3600*6; second += 30 {
		s.tells(m.at(second))
	}
	w := s.role.Status(s.now).Forecast.Waits[0]
	if w.Seen < 300 || w.Bound == nil || *w.Bound != 600 || w.Runs < 300 || w.Hour == nil || *w.Hour < .98 {
		t.Fatalf("learnt %+v, want waits of 600 s", w)
	}
	if w.Rate == nil || *w.Rate != 1 || w.Told < 200 {
		t.Fatalf("told %d bounds, held at a rate of %v; want all of them", w.Told, w.Rate)
	}
	offer := func(ahead time.Duration, cores int) protocol.Odds {
		t.Helper()
		doc := document(cores, s.now.Add(ahead), s.now.Add(ahead+time.Hour))
		out := s.role.Receive(s.now, protocol.Message{
			Performative: protocol.CFP, Sender: a.id("ann"), Conversation: fmt.Sprint(ahead, cores, s.now),
			Body: message.CallForProposals{Round: 1, Document: doc, Terms: s.cfg.Terms, Modes: []protocol.Mode{protocol.ModeOnReservation}},
		})
		return out.Send[0].Body.(message.Proposal).Offers[0].Queued
	}
	if near, far := offer(5*time.Minute, 2), offer(time.Hour, 2); near >= far || far < protocol.OddsOf(.98) {
		t.Fatalf("in five minutes %s, in an hour %s", near, far)
	}
	if o := offer(time.Hour, 50); o != 0 {
		t.Fatalf("of jobs that were never seen %s is told", o)
	}
	s.carryOut(s.role.Leave())
	s.start()
	if again := s.role.Status(s.now).Forecast.Waits[0]; again.Seen != w.Seen || *again.Bound != 600 {
		t.Fatalf("after a restart %+v, before it %+v", again, w)
	}
	s.store[resource.TableForecast]["learnt"] = []byte("not what it was, by far")
	s.start()
	if again := s.role.Status(s.now).Forecast.Waits[0]; again.Seen != 0 {
		t.Fatalf("of bytes that cannot be read %+v is learnt", again)
	}
}

// The past of a log is what its waits teach in order of start.
func TestASiteMayBeginWithAPast(t *testing.T) {
	a := newAgents(t, "ann", "atlas", "bank")
	cfg := a.config()
	cfg.Learnt = &forecast.Forecast{}
	for range 100 {
		cfg.Learnt.Started(10, 300, forecast.Bound{})
	}
	s := newSite(t, cfg)
	if w := s.role.Status(s.now).Forecast.Waits[1]; w.Seen != 100 || *w.Median != 300 {
		t.Fatalf("learnt %+v", w)
	}
}

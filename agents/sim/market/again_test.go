package market_test

import (
	"slices"
	"testing"
	"time"

	"ramp/agents/sim"
	"ramp/agents/sim/market"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// A program in two units waits for its slots when a site loses one for good: that
// one is bought elsewhere, once, even if the buyer's agent is killed just then, and
// the program runs in both.
func TestAProgramGoesOnInASlotThatIsBoughtAgain(t *testing.T) {
	cast, err := market.NewCast()
	if err != nil {
		t.Fatal(err)
	}
	for name, crash := range map[string]time.Duration{"nobody is killed": 0, "the buyer's agent is killed soon": 90 * time.Second, "and once it is bought": 5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			cfg := market.Default()
			cfg.Resources, cfg.Users, cfg.Rate, cfg.Length, cfg.Faults, cfg.Launches = 4, 1, 0, 8*time.Hour, sim.Levels()["none"], 1000
			m, checks := market.Open(cast, cfg)
			m.World.Run(time.Minute)
			u := m.Users()[0]
			order(t, m, u)
			m.World.Run(5 * time.Minute)
			lost := loseFirst(t, m, u)
			if crash > 0 {
				m.World.After(crash, func() { m.World.Crash(u.Host, 10*time.Second) })
			}
			m.World.Run(20 * time.Minute)
			m.Live(checks, nil)
			for _, v := range checks.Violations() {
				t.Errorf("%s: %s", v.Invariant, v.What)
			}
			ranTogether(t, u, lost)
		})
	}
}

// order buys two units that begin in an hour, and a program in them.
func order(t *testing.T, m *market.Market, u *market.User) {
	t.Helper()
	now := u.Host.Now().Truncate(time.Minute)
	q := rfql.DraftRequest{Price: 100 * protocol.Credit, TotalCores: 4, NotBefore: now.Add(time.Hour), End: now.Add(3 * time.Hour), Wall: 2 * time.Hour}
	doc, err := rfql.Check(rfql.Draft{Requests: []rfql.DraftRequest{q, q}}, now)
	if err != nil {
		t.Fatal(err)
	}
	m.World.Tell(u.Host, protocol.Message{
		Performative: protocol.Request, Sender: protocol.LocalControl, Receivers: []protocol.AgentID{u.Host.ID()}, Protocol: protocol.ProtocolControl,
		Body: message.Buy{ID: "job", Name: "job", Document: doc.XML(), Program: &message.Program{Command: []string{"/bin/job"}}},
	})
}

// loseFirst takes its cores, and all that it has, from the site of the first unit.
func loseFirst(t *testing.T, m *market.Market, u *market.User) (site string) {
	t.Helper()
	value, _ := u.Host.Disk().Get(user.TableRuns, "job")
	run, err := user.ReadRun(value)
	if err != nil || run.State != string(message.StageReady) {
		t.Fatalf("before anything is lost: %+v, %v", run, err)
	}
	for _, s := range m.Sites() {
		if s.Host.ID() == run.Units[0].Seller {
			clear(s.Cluster.Slots())
			s.Cluster.Cores = 0
		}
	}
	return run.Units[0].Resource
}

func ranTogether(t *testing.T, u *market.User, lost string) {
	t.Helper()
	value, _ := u.Host.Disk().Get(user.TableRuns, "job")
	run, err := user.ReadRun(value)
	if err != nil || !run.Over || !run.Moved() {
		t.Fatalf("%+v, %v", run, err)
	}
	for _, x := range run.Units {
		if x.Resource == lost || x.Lost || x.Status.Stage != message.StageDone {
			t.Errorf("unit %d is %s at %s: %s", x.Unit+1, x.Status.Stage, x.Resource, x.Status.Why)
		}
	}
	if !slices.ContainsFunc(run.Units, func(x message.RunUnit) bool { return x.Launch == "job.1.again1.1" || x.Launch == "job.1.again2.1" }) {
		t.Errorf("the launches are %+v", run.Units)
	}
}

// The slots of an array are each by themselves: one that is lost is bought again though
// another runs already, and neither knows of the other.
func TestAnArrayGoesOnWithoutALostSlot(t *testing.T) {
	cast, err := market.NewCast()
	if err != nil {
		t.Fatal(err)
	}
	cfg := market.Default()
	cfg.Resources, cfg.Users, cfg.Rate, cfg.Length, cfg.Faults, cfg.Launches = 4, 1, 0, 12*time.Hour, sim.Levels()["none"], 1000
	m, checks := market.Open(cast, cfg)
	m.World.Run(time.Minute)
	u := m.Users()[0]
	now := u.Host.Now().Truncate(time.Minute)
	q := rfql.DraftRequest{Price: 100 * protocol.Credit, TotalCores: 4, NotBefore: now.Add(30 * time.Minute), End: now.Add(2 * time.Hour), Wall: time.Hour}
	later := q
	later.NotBefore, later.End = now.Add(3*time.Hour), now.Add(8*time.Hour)
	doc, err := rfql.Check(rfql.Draft{Requests: []rfql.DraftRequest{q, later}}, now)
	if err != nil {
		t.Fatal(err)
	}
	m.World.Tell(u.Host, protocol.Message{
		Performative: protocol.Request, Sender: protocol.LocalControl, Receivers: []protocol.AgentID{u.Host.ID()}, Protocol: protocol.ProtocolControl,
		Body: message.Buy{ID: "job", Name: "job", Document: doc.XML(), Program: &message.Program{Array: true, Commands: [][]string{{"/bin/job", "1"}, {"/bin/job", "2"}}}},
	})
	m.World.Run(time.Hour)
	value, _ := u.Host.Disk().Get(user.TableRuns, "job")
	run, err := user.ReadRun(value)
	if err != nil || len(run.Units) != 2 || run.Units[0].Status.Stage != message.StageSubmitted || run.Units[1].Status.Stage != message.StageReady {
		t.Fatalf("before anything is lost: %+v, %v", run, err)
	}
	for _, s := range m.Sites() {
		if s.Host.ID() == run.Units[1].Seller {
			for id, slot := range s.Cluster.Slots() {
				if slot.Start.After(u.Host.Now()) {
					delete(s.Cluster.Slots(), id)
				}
			}
			s.Cluster.Cores = 0
		}
	}
	m.World.Run(10 * time.Hour)
	m.Live(checks, nil)
	for _, v := range checks.Violations() {
		t.Errorf("%s: %s", v.Invariant, v.What)
	}
	value, _ = u.Host.Disk().Get(user.TableRuns, "job")
	if run, err = user.ReadRun(value); err != nil || !run.Over || !run.Moved() || run.Killing {
		t.Fatalf("%+v, %v", run, err)
	}
	for _, x := range run.Units {
		if x.Status.Stage != message.StageDone {
			t.Errorf("slot %d is %s: %s", x.Unit+1, x.Status.Stage, x.Status.Why)
		}
	}
}

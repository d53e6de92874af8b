package sweeper_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"ramp/agents/user/sweep/plan"
	"ramp/agents/user/sweeper"
	"ramp/protocol"
	"ramp/protocol/message"
)

// refusing is an agent whose only site makes offers, and sells nothing.
type refusing struct {
	orders []message.Buy
}

func (a *refusing) Sellers(time.Time) []sweeper.Seller { return []sweeper.Seller{{ID: "a", Cores: 2}} }
func (a *refusing) Buy(_ time.Time, o message.Buy) protocol.Output {
	a.orders = append(a.orders, o)
	return protocol.Output{}
}
func (a *refusing) Launch(time.Time, message.Run) protocol.Output { panic("nothing was bought") }
func (a *refusing) Kill(time.Time, string) protocol.Output        { return protocol.Output{} }
func (a *refusing) Discard(time.Time, string) protocol.Output     { return protocol.Output{} }
func (a *refusing) Release(time.Time, string, protocol.AgentID, protocol.ContractID) protocol.Output {
	return protocol.Output{}
}
func (a *refusing) Run(string) (message.Run, bool) { return message.Run{}, false }
func (a *refusing) Going(string) bool              { return true }

// eightTasks is a plan.
func eightTasks(t *testing.T) []byte {
	t.Helper()
	p, err := plan.Parse("plan.yaml", []byte("task: {command: [\"true\"], wall: 1m}\nparameters: {x: {range: [1, 8], step: 1}}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// A site that refuses every lease ends the hope for it: the sweep says that it is short, and why. When it sells
// after all, the sweep goes on.
func TestASiteThatRefusesEveryLeaseLeavesTheSweepShort(t *testing.T) {
	a := &refusing{}
	s := sweeper.New("me", a)
	doc := eightTasks(t)
	now := dawn
	out, err := s.Order(now, message.SweepOrder{ID: "s", Plan: doc, Out: "/out"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	state := func() message.Sweep { v, _ := s.Show(now, "s"); return v }
	for state().State == "running" {
		if now.Sub(dawn) > 10*time.Minute {
			t.Fatalf("after %s it is %s: %s", now.Sub(dawn), state().State, state().Why)
		}
		orders := a.orders
		a.orders = nil
		for _, o := range orders {
			if protocol.IsQuote(o.ID) {
				out = out.Join(s.Traded(now, sweeper.Traded{ID: o.ID, Currency: "CPU", Offers: []sweeper.Offer{{Seller: "a", Price: protocol.Credit, Start: now}}}))
			} else {
				out = out.Join(s.Bought(now, sweeper.Bought{ID: o.ID, Why: "the site is closed to strangers"}))
			}
		}
		if len(a.orders) == 0 {
			if now = now.Add(time.Second); out.WakeAt.After(now) {
				now = out.WakeAt
			}
			out = s.Act(now)
		}
	}
	if v := state(); v.State != "short" || !strings.Contains(v.Why, "closed to strangers") {
		t.Errorf("it is %s: %s", v.State, v.Why)
	}
}

// Results of two sweeps do not go to one directory: whoever comes later is told of the first,
// until that has ended.
func TestADirectoryIsOneSweeps(t *testing.T) {
	s := sweeper.New("me", &refusing{})
	doc := eightTasks(t)
	order := func(id, out string, dry func(message.Sweep)) error {
		_, err := s.Order(dawn, message.SweepOrder{ID: id, Plan: doc, Out: out}, dry)
		return err
	}
	if err := order("a", "/out", nil); err != nil {
		t.Fatal(err)
	}
	if err := order("b", "/out", nil); err == nil || !strings.Contains(err.Error(), "sweep a writes to /out") {
		t.Errorf("a second sweep in the same directory: %v", err)
	}
	for name, err := range map[string]error{
		"the same": order("a", "/out", nil), "elsewhere": order("b", "/other", nil), "dry": order("c", "/out", func(message.Sweep) {}),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Set(dawn, message.SweepSet{ID: "a", Verb: message.SweepKill}); err != nil {
		t.Fatal(err)
	}
	if err := order("d", "/out", nil); err != nil {
		t.Errorf("after the end of the first: %v", err)
	}
}

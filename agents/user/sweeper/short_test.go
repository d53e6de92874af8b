package sweeper_test

import (
	"cmp"
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
	waits  string // what the bank of its purchases waits for
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
func (a *refusing) Going(string) (string, bool)    { return a.waits, true }

// eightTasks is a plan with terms.
func eightTasks(t *testing.T, terms string) []byte {
	t.Helper()
	p, err := plan.Parse("plan.yaml", []byte("task: {command: [\"true\"], wall: 1m}\nparameters: {x: {range: [1, 8], step: 1}}\n"+terms), nil)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// A sweep that cannot go on says that it is short, and why, and what helps.
func TestASweepThatIsShortSaysWhy(t *testing.T) {
	offer := sweeper.Offer{Seller: "a", Price: protocol.Credit, Start: dawn}
	for want, c := range map[string]struct {
		terms   string
		refusal sweeper.Bought
	}{
		"a: the site is closed to strangers; the sweep goes on once that has changed, until 2026-08-01T01:00:00Z; 'ramp user sweeps kill s' ends it": {terms: "deadline: 1h\n", refusal: sweeper.Bought{Why: "the site is closed to strangers"}},
		"the account has too little for a lease: the sweep goes on once it has more; 'ramp user sweeps kill s' ends it":                              {refusal: sweeper.Bought{Why: "funds", Poor: true}},
		"budget is too small: 'ramp user sweeps set s --budget 0.14' ":                                                                               {terms: "budget: 0.01\n"},
		"too small: 'ramp user sweeps set s --budget 0.07 --deadline ":                                                                               {terms: "budget: 0.01\ndeadline: 3m\n"},
	} {
		a := &refusing{}
		s := sweeper.New("me", a)
		now := dawn
		order := message.SweepOrder{ID: "s", Plan: eightTasks(t, c.terms), Out: "/out"}
		out, err := s.Order(now, order, nil)
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
					out = out.Join(s.Traded(now, sweeper.Traded{ID: o.ID, Currency: "CPU", Offers: []sweeper.Offer{offer}}))
				} else {
					c.refusal.ID = o.ID
					out = out.Join(s.Bought(now, c.refusal))
				}
			}
			if len(a.orders) == 0 {
				if now = now.Add(time.Second); out.WakeAt.After(now) {
					now = out.WakeAt
				}
				out = s.Act(now)
			}
		}
		if v := state(); v.State != "short" || !strings.Contains(v.Why, want) {
			t.Errorf("it is %s: %s; want %q", v.State, v.Why, want)
		}
		a.orders = nil
		if _, err := s.Order(now, order, nil); err != nil || state().State != "running" || len(a.orders) == 0 {
			t.Errorf("ordered again, it is %s with %d orders: %v", state().State, len(a.orders), err)
		}
	}
}

// A sweep whose lease the bank does not decide says what it waits for, whatever failed before.
func TestASweepSaysThatTheBankHasNotDecided(t *testing.T) {
	a := &refusing{}
	s := sweeper.New("me", a)
	if _, err := s.Order(dawn, message.SweepOrder{ID: "s", Plan: eightTasks(t, ""), Out: "/out"}, nil); err != nil {
		t.Fatal(err)
	}
	s.Act(dawn)
	quote := a.orders[0].ID
	s.Traded(dawn, sweeper.Traded{ID: quote, Why: "nobody answered"})
	why := func() string { v, _ := s.Show(dawn, "s"); return cmp.Or(v.Waits, v.Why) }
	if got := why(); got != "nobody answered" {
		t.Errorf("after a failed trade: %q", got)
	}
	now := dawn.Add(time.Hour)
	s.Act(now)
	s.Traded(now, sweeper.Traded{ID: a.orders[1].ID, Currency: "CPU", Offers: []sweeper.Offer{{Seller: "a", Price: protocol.Credit, Start: now}}, Why: "earlier"})
	s.Act(now)
	lease := a.orders[2]
	if lease.Options.MaxCost == 0 {
		t.Fatalf("the lease has no bound: %+v", lease)
	}
	if _, err := s.Set(now, message.SweepSet{ID: "s", Budget: lease.Options.MaxCost - 1}); err == nil || !strings.Contains(err.Error(), "want at least "+(2*lease.Options.MaxCost).String()+", which is spent or committed") {
		t.Errorf("a budget below what is committed: %v", err)
	}
	for waits, want := range map[string]string{"": "earlier", "it is away": "the bank has not decided on lease s.l0001: it is away; asking again"} {
		if a.waits = waits; why() != want {
			t.Errorf("it says %q, want %q", why(), want)
		}
	}
}

// Results of two sweeps do not go to one directory: whoever comes later is told of the first,
// until that has ended.
func TestADirectoryIsOneSweeps(t *testing.T) {
	s := sweeper.New("me", &refusing{})
	doc := eightTasks(t, "")
	order := func(id, out string, dry func(message.Sweep)) error {
		_, err := s.Order(dawn, message.SweepOrder{ID: id, Plan: doc, Out: out}, dry)
		return err
	}
	if err := order("a", "/out", nil); err != nil {
		t.Fatal(err)
	}
	if err := order("b", "/out", nil); err == nil || !strings.Contains(err.Error(), "sweep a writes to /out, and this plan, its inputs or its --id differ: ") {
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

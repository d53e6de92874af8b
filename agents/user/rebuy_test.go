package user_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ramp/agents/markettest"
	"ramp/agents/sim"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// lose has a site's batch system lose all that it has, and its cores with it.
func lose(m *markettest.Market, site string) {
	b := m.Batch(site)
	clear(b.Slots)
	b.Cores = 0
}

// siteOf is the party that sold a unit.
func siteOf(t *testing.T, m *markettest.Market, p message.Purchase, unit int) string {
	t.Helper()
	for _, u := range p.Units {
		if u.Unit == unit {
			return u.Resource
		}
	}
	t.Fatalf("no unit %d in %+v", unit, p)
	return ""
}

// A unit that its site loses is bought elsewhere, once, wherever the buyer's agent
// is killed meanwhile; and the money adds up.
func TestALostUnitIsBoughtAgain(t *testing.T) {
	crashes := []int{0}
	for n := range 24 {
		crashes = append(crashes, n+1)
	}
	for _, at := range crashes {
		for _, point := range []sim.Point{sim.BeforeSave, sim.AfterSave, sim.AfterSend} {
			t.Run(fmt.Sprintf("killed at output %d, point %d", at, point), func(t *testing.T) {
				m, _ := open(t, 2, nil)
				first := settle(t, m, 1, message.Options{})
				from := m.Outputs(markettest.User)
				m.Crash = func(b sim.Boundary) sim.Point {
					if at > 0 && b.Host.Name == markettest.User && b.Output == from+at {
						return point
					}
					return sim.Survives
				}
				lose(m, siteOf(t, m, first, 0))
				m.Run(10 * time.Minute)
				boughtOnceMore(t, m)
			})
		}
	}
}

// boughtOnceMore: unit 0 of p is paid at another site, and nothing else is.
func boughtOnceMore(t *testing.T, m *markettest.Market) {
	t.Helper()
	all := m.Purchases()
	p := all["p"]
	next := all[p.Units[0].Again]
	if next.State != user.StateSettled || next.Replaces != "p" || next.Units[0].Resource == p.Units[0].Resource {
		t.Fatalf("p is %+v\nnext is %+v", p, next)
	}
	for id, x := range all {
		if x.Settled && id != "p" && id != next.ID {
			t.Errorf("%s is bought as well", id)
		}
	}
	if got, want := m.Balance(markettest.User), 1_000_000*protocol.Credit-next.Total; got != want {
		t.Errorf("the user has %s, want %s", got, want)
	}
	if err := m.Check(); err != nil {
		t.Error(err)
	}
}

func TestALostUnitThatIsNotBoughtAgain(t *testing.T) {
	late := func(m *markettest.Market, p message.Purchase) {
		m.Run(p.Units[0].Start.Sub(m.Now()) - time.Second)
	}
	for name, c := range map[string]struct {
		options message.Options
		before  func(m *markettest.Market, p message.Purchase)
		why     string
	}{
		"the order says so":  {options: message.Options{NoReplace: true}, why: "its order says so"},
		"its slot has begun": {before: late, why: "its slot has begun"},
		"nobody sells it": {before: func(m *markettest.Market, _ message.Purchase) {
			lose(m, markettest.Seller(1))
			lose(m, markettest.Seller(2))
		}, why: "it was bought again 8 times, which is the most"},
		"an order that needs approval": {options: message.Options{Approve: true}, why: "needs approval"},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := open(t, 2, nil)
			m.Buy("p", 1, c.options)
			m.RunUntil(time.Minute, func() bool { return last(m).Event == "approval" || last(m).Done })
			m.Tell(message.Approval{ID: "p", Yes: true})
			m.RunUntil(time.Minute, func() bool { return last(m).Done })
			m.Run(time.Second)
			p := m.Purchases()["p"]
			if c.before != nil {
				c.before(m, p)
			}
			lose(m, siteName(p))
			m.Run(3 * time.Hour)
			after := m.Purchases()["p"]
			if after.Units[0].Again != "" || !strings.Contains(after.Why, "it is not bought again: ") || !strings.Contains(after.Why, c.why) {
				t.Fatalf("%+v", after)
			}
			if got, want := m.Balance(markettest.User), 1_000_000*protocol.Credit; got != want {
				t.Fatalf("the user has %s, want %s", got, want)
			}
		})
	}
}

func siteName(p message.Purchase) string { return p.Units[0].Resource }

// What is bought again costs at most what is left of the order's limit, and is in
// its bank and currency; a successor that is lost has one of its own.
func TestTheLimitsOfWhatIsBoughtAgain(t *testing.T) {
	m, _ := open(t, 4, nil)
	most := 2000 * protocol.Credit
	p := settle(t, m, 2, message.Options{MaxCost: most})
	lose(m, siteOf(t, m, p, 0))
	m.Run(5 * time.Minute)
	p = m.Purchases()["p"]
	next := m.Purchases()[p.Units[0].Again]
	if got, want := p.Units[0].AgainMost, most-p.Units[1].Cost; got != want || next.ID != "p.1.again1" || next.State != user.StateSettled {
		t.Fatalf("its limit is %s, want %s; %+v", got, want, next)
	}
	lose(m, siteOf(t, m, next, 0))
	m.Run(5 * time.Minute)
	next = m.Purchases()["p.1.again1"]
	third := m.Purchases()["p.1.again2"]
	if third.State != user.StateSettled || third.Replaces != "p.1.again1" || next.Units[0].Again != third.ID || next.Units[0].AgainMost != p.Units[0].AgainMost {
		t.Fatalf("%+v\n%+v", next, third)
	}
	lose(m, siteOf(t, m, p, 1))
	m.Run(5 * time.Minute)
	if u := m.Purchases()["p"].Units[1]; u.AgainMost != most-p.Units[0].AgainMost || m.Balance(markettest.User) < 1_000_000*protocol.Credit-most {
		t.Errorf("the other unit has the limit %s; spent are %s of %s", u.AgainMost, 1_000_000*protocol.Credit-m.Balance(markettest.User), most)
	}
}

// Its owner can stop what is being bought again.
func TestBuyingAgainIsCancelled(t *testing.T) {
	m, _ := open(t, 1, nil)
	p := settle(t, m, 1, message.Options{})
	lose(m, siteName(p))
	m.RunUntil(5*time.Minute, func() bool { return m.Purchases()["p"].Units[0].Again != "" })
	give(t, m, -1)
	m.Run(2 * time.Hour)
	if p := m.Purchases()["p"]; p.Units[0].Again != "" || !strings.Contains(p.Why, "it was cancelled") || len(m.Purchases()) > 2 {
		t.Fatalf("%+v", m.Purchases())
	}
}

// A seller tells once that a slot is lost; if that does not arrive, the buyer hears
// of it from the bank.
func TestALostUnitIsHeardOfFromTheBank(t *testing.T) {
	m, cast := open(t, 2, nil)
	p := settle(t, m, 1, message.Options{})
	m.Fate = func(k markettest.Packet) markettest.Fate {
		_, decision := k.Message.Body.(message.Decision)
		return markettest.Fate{Drop: decision && k.From == siteName(p) && k.Message.Receivers[0] == cast.ID(markettest.User)}
	}
	lose(m, siteName(p))
	m.Run(20 * time.Minute)
	boughtOnceMore(t, m)
}

// A unit that began together with others is not bought again at another time: beside the
// other unit there is no room until that one has ended.
func TestALostUnitThatBeganTogetherIsNotBoughtLater(t *testing.T) {
	for _, same := range []bool{false, true} {
		m, _ := open(t, 2, nil)
		from := markettest.Dawn.Add(2 * time.Hour)
		unit := rfql.DraftRequest{Price: 60 * protocol.Credit, TotalCores: markettest.UnitCores, NotBefore: from, End: from.Add(8 * time.Hour), Wall: 2 * time.Hour}
		doc, err := rfql.Check(rfql.Draft{SameStart: same, Requests: []rfql.DraftRequest{unit, unit}}, markettest.Dawn)
		if err != nil {
			t.Fatal(err)
		}
		m.Tell(message.Buy{ID: "p", Name: "p", Document: doc.XML(), Options: message.Options{Objective: protocol.ObjectiveTime}})
		m.RunUntil(time.Minute, func() bool { return last(m).Done })
		first := last(m).Purchase
		if first.State != user.StateSettled || !first.Units[0].Start.Equal(first.Units[1].Start) {
			t.Fatalf("%+v", first)
		}
		lose(m, siteOf(t, m, first, 0))
		m.Run(10 * time.Minute)
		again := m.Purchases()[m.Purchases()["p"].Units[0].Again]
		if bought := again.State == user.StateSettled; bought == same {
			t.Fatalf("together %v: bought again %v, %+v", same, bought, again)
		}
	}
}

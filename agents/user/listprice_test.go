package user_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"ramp/agents/markettest"
	"ramp/agents/resource"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// ceilings are the prices per core-hour in a document.
func ceilings(t *testing.T, document []byte) []protocol.Credits {
	t.Helper()
	draft, _, err := rfql.Read(document)
	if err != nil {
		t.Fatal(err)
	}
	var list []protocol.Credits
	for _, q := range draft.Requests {
		list = append(list, q.Price)
	}
	return list
}

// unpriced is the market's document for units whose ceilings are given; zero: without one.
func unpriced(t *testing.T, m *markettest.Market, given ...protocol.Credits) []byte {
	t.Helper()
	draft, _, err := rfql.Read(m.Document(len(given)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range draft.Requests {
		draft.Requests[i].Price = given[i]
	}
	doc, err := rfql.Check(draft, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	return doc.XML()
}

// Where an order leaves out a ceiling, the highest list price of the sites that have the
// machine is put in; what is sent and bought stays within it.
func TestAnOrderWithoutACeilingOpensAtTheListPrices(t *testing.T) {
	m, _ := open(t, 3, func(name string, cfg *resource.Config) {
		cfg.Price.Min = 10 * protocol.Credit
		cfg.Price.Start = map[string]protocol.Credits{"s01": 20, "s02": 30, "s03": 90}[name] * protocol.Credit
		if name == "s03" {
			cfg.Properties.Cores = markettest.UnitCores - 1 // too small: its price does not count
		}
	})
	m.Run(time.Minute)
	m.Tell(message.Buy{ID: "p", Name: "p", Document: unpriced(t, m, 0, 25*protocol.Credit), Options: message.Options{Confirm: true}})
	m.RunUntil(time.Minute, func() bool { return last(m).Event == "approval" })
	offered := last(m).Purchase
	m.Tell(message.Approval{ID: "p", Yes: true})
	m.RunUntil(time.Minute, func() bool { return last(m).Done })
	m.Run(time.Second)
	row, err := user.ReadRow(m.Store(markettest.User)[user.TablePurchases]["p"])
	if err != nil {
		t.Fatal(err)
	}
	if got := ceilings(t, row.Order.Document); got[0] != 30*protocol.Credit || got[1] != 25*protocol.Credit {
		t.Errorf("ceilings %v", got)
	}
	if p := m.Purchases()["p"]; !p.Settled || p.Total != offered.Total || len(row.Order.Listed) != 1 || row.Order.Listed[0] != 0 {
		t.Errorf("%s %s: %s, offered %s, listed %v", p.State, p.Why, p.Total, offered.Total, row.Order.Listed)
	}
	for _, u := range row.Units {
		want := map[string]protocol.Credits{"s01": 20, "s02": 30}[u.Resource] * protocol.Credit
		if most := []protocol.Credits{30, 25}[u.Unit] * protocol.Credit; u.List != want || u.Price > most {
			t.Errorf("unit %d: %s lists %s, want %s, and bids %s of %s", u.Unit, u.Resource, u.List, want, u.Price, most)
		}
	}
	if err := m.Check(); err != nil {
		t.Error(err)
	}
}

func TestAnOrderWithoutACeilingNeedsAListPrice(t *testing.T) {
	for want, sellers := range map[string]int{"^no site is known: 'ramp doctor' finds the cause$": 0, "^no site lists a price in CRD of bank@[a-z2-7]{32}: name a limit with --max-price$": 1} {
		m, _ := open(t, sellers, func(_ string, cfg *resource.Config) {
			cfg.Terms = []protocol.Terms{{Bank: cfg.Terms[0].Bank, Currency: "EUR"}}
		})
		m.Run(time.Minute)
		m.Tell(message.Buy{ID: "p", Name: "p", Document: unpriced(t, m, 0)})
		if p := last(m); !p.Done || p.Purchase.State != user.StateFailed || !regexp.MustCompile(want).MatchString(p.Purchase.Why) {
			t.Errorf("%s: %s, want %s", p.Purchase.State, p.Purchase.Why, want)
		}
	}
}

// The owner reads of a ceiling more than twice the list prices before anybody bids.
func TestACeilingFarAboveTheListPricesIsRemarkedOn(t *testing.T) {
	for ceiling, want := range map[protocol.Credits]string{
		60: "", 61: "sites list 20.00–30.00 per core-hour; you allowed 61.00",
	} {
		m, _ := open(t, 2, func(name string, cfg *resource.Config) {
			cfg.Price.Min = 10 * protocol.Credit
			cfg.Price.Start = map[string]protocol.Credits{"s01": 20, "s02": 30}[name] * protocol.Credit
		})
		m.Run(time.Minute)
		before := len(m.Progress)
		m.Tell(message.Buy{ID: "p", Name: "p", Document: unpriced(t, m, ceiling*protocol.Credit, ceiling*protocol.Credit)})
		if got := strings.Join(m.Progress[before].Purchase.Notes, "; "); m.Progress[before].Event != "found" || got != want {
			t.Errorf("%d: %s %q, want %q", ceiling, m.Progress[before].Event, got, want)
		}
	}
}

// What the owner has confirmed is bought again when it is lost; only Approve forbids that.
func TestAConfirmedUnitThatIsLostIsBoughtAgain(t *testing.T) {
	m, _ := open(t, 2, nil)
	m.Buy("p", 1, message.Options{Confirm: true})
	m.RunUntil(time.Minute, func() bool { return last(m).Event == "approval" })
	m.Tell(message.Approval{ID: "p", Yes: true})
	m.RunUntil(time.Minute, func() bool { return last(m).Done })
	m.Run(time.Second)
	lose(m, siteName(m.Purchases()["p"]))
	m.Run(10 * time.Minute)
	boughtOnceMore(t, m)
}

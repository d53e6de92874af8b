package auction_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/message"
	"ramp/rfql"
)

// togetherMarket is sellers with calendars and units that must begin together.
type togetherMarket struct {
	hintMarket
	units []rfql.DraftRequest
}

func drawTogether(t *rapid.T) *togetherMarket {
	m := &togetherMarket{hintMarket: hintMarket{t: t, sellers: map[protocol.AgentID]auction.SellerConfig{}, cal: map[protocol.AgentID]*machine{}}}
	for i := range rapid.IntRange(1, 3).Draw(t, "sellers") {
		id := agent(fmt.Sprint("s", i))
		cfg := newStand().cfg
		cfg.Self, cfg.Properties.Cores = id, 10
		cfg.Lead = time.Duration(rapid.IntRange(1, 70).Draw(t, "lead")) * time.Minute
		m.sellers[id], m.order = cfg, append(m.order, id)
		m.cal[id] = &machine{capacity: 10, free: rapid.SliceOfN(rapid.IntRange(0, 10), 6, 8).Draw(t, "free")}
	}
	end := noon.Add(time.Duration(rapid.IntRange(3, 12).Draw(t, "until")) * time.Hour)
	for range rapid.IntRange(2, 3).Draw(t, "units") {
		u := rfql.DraftRequest{Price: 50 * protocol.Credit, Wall: 90 * time.Minute, End: end, TotalCores: rapid.IntRange(1, 10).Draw(t, "cores")}
		if rapid.Bool().Draw(t, "begins later") {
			u.NotBefore = noon.Add(time.Duration(rapid.IntRange(1, 60).Draw(t, "from")) * time.Minute)
		}
		m.units = append(m.units, u)
	}
	return m
}

// buy is an auction from begin to end.
func (m *togetherMarket) buy(t *rapid.T) *auction.Buyer {
	doc, err := rfql.Check(rfql.Draft{SameStart: true, Requests: m.units}, noon)
	if err != nil {
		t.Fatal(err)
	}
	cfg := auction.BuyerConfig{
		Self: ann, Conversation: "c", Document: doc.XML(), Sellers: m.order, Rounds: 2, RoundLimit: time.Second, SameStart: true,
		Objective: protocol.ObjectiveCost, Terms: []protocol.Terms{{Bank: bank, Currency: "CRD"}}, Modes: []protocol.Mode{protocol.ModeOnReservation},
	}
	for _, q := range doc.Requests() {
		cfg.Wants = append(cfg.Wants, auction.Want{Ceiling: q.Price, NotBefore: q.NotBefore, End: q.End, Wall: q.Wall, Cores: q.Cores})
	}
	b, out := auction.NewBuyer(noon, cfg, auction.NewTiming())
	live := map[protocol.AgentID]*auction.Sellers{}
	for id, cfg := range m.sellers {
		live[id] = auction.NewSellers(cfg)
	}
	for len(out.Send) > 0 && !b.Over() {
		out = m.round(b, live, out.Send)
	}
	for _, bid := range b.Result().Bids {
		if _, _, ok := live[bid.Seller].Offer(noon, ann, "c", bid.Offer.ID); !ok {
			t.Fatalf("%s does not know its offer %s", bid.Seller.Name(), bid.Offer.ID)
		}
	}
	return b
}

// possible reports whether the units from one on fit at a start beside those placed.
func (m *togetherMarket) possible(start time.Time, unit int, used map[protocol.AgentID]int) bool {
	if unit == len(m.units) {
		return true
	}
	u := m.units[unit]
	if start.Before(u.NotBefore) || start.Add(u.Wall).After(u.End) {
		return false
	}
	return slices.ContainsFunc(m.order, func(id protocol.AgentID) bool {
		if start.Before(noon.Add(m.sellers[id].Lead)) || used[id]+u.TotalCores > m.cal[id].Free(start, start.Add(u.Wall)) {
			return false
		}
		used[id] += u.TotalCores
		defer func() { used[id] -= u.TotalCores }()
		return m.possible(start, unit+1, used)
	})
}

// TestUnitsBeginTogetherOrNotAtAll compares with looking at every minute and every
// distribution of the units over the sellers. Two units are bought if that is possible;
// three may miss a start that needs two of them at one seller and the third elsewhere.
func TestUnitsBeginTogetherOrNotAtAll(t *testing.T) {
	bought := 0
	rapid.Check(t, func(t *rapid.T) {
		m := drawTogether(t)
		b := m.buy(t)
		var first time.Time
		for at := noon; first.IsZero() && at.Before(noon.Add(12*time.Hour)); at = at.Add(time.Minute) {
			if m.possible(at, 0, map[protocol.AgentID]int{}) {
				first = at
			}
		}
		if b.State() != auction.Awarded {
			if !first.IsZero() && len(m.units) == 2 {
				t.Fatalf("%s, but both can begin at %s: %v", b.State(), clock(first), b.Rounds())
			}
			if b.State() == auction.Closest {
				m.same(t, b.Result().Bids)
			}
			return
		}
		bought++
		if start := m.same(t, b.Result().Bids); first.IsZero() || start.Before(first) {
			t.Fatalf("they begin at %s, the first possible start is %s", clock(start), clock(first))
		}
	})
	if bought == 0 {
		t.Fatal("nothing was ever bought")
	}
}

// same fails unless a set covers every unit, begins at one instant, and its sellers have
// the cores.
func (m *togetherMarket) same(t *rapid.T, set []protocol.Bid) (start time.Time) {
	used, covered := map[protocol.AgentID]int{}, 0
	for _, bid := range set {
		for _, it := range bid.Offer.Items {
			covered++
			if start.IsZero() {
				start = it.Slot.Start
			}
			if used[bid.Seller] += it.Slot.Cores; !it.Slot.Start.Equal(start) || used[bid.Seller] > m.cal[bid.Seller].Free(it.Slot.Start, it.Slot.End) {
				t.Fatalf("unit %d begins at %s on %d cores of %s, another at %s", it.Unit, clock(it.Slot.Start), used[bid.Seller], bid.Seller.Name(), clock(start))
			}
		}
	}
	if covered != len(m.units) {
		t.Fatalf("%d units of %d", covered, len(m.units))
	}
	return start
}

// TestASellerKeepsItsJointOffers: a later call does not make a seller forget what it has
// offered at a start that its units can have together.
func TestASellerKeepsItsJointOffers(t *testing.T) {
	w := newStand()
	w.cal.free = []int{6, 6, 20}
	doc, err := rfql.Check(rfql.Draft{SameStart: true, Requests: []rfql.DraftRequest{
		{Price: 50 * protocol.Credit, Wall: time.Hour, End: noon.Add(9 * time.Hour), TotalCores: 5},
		{Price: 50 * protocol.Credit, Wall: time.Hour, End: noon.Add(9 * time.Hour), TotalCores: 5},
	}}, noon)
	if err != nil {
		t.Fatal(err)
	}
	var made []protocol.Offer
	for round := 1; round <= 3; round++ {
		call := message.CallForProposals{Round: round}
		if round == 1 {
			call.Document, call.Terms, call.Modes = doc.XML(), w.cfg.Terms, w.cfg.Modes
		}
		answer, _ := w.sellers.Call(w.now, protocol.Message{Performative: protocol.CFP, Sender: ann, Conversation: "c"}, call, w.cal)
		if p, ok := answer.Body.(message.Proposal); ok {
			made = append(made, p.Offers...)
		}
	}
	if len(made) != 4 || !made[2].Items[0].Slot.Start.Equal(noon.Add(2*time.Hour)) || !made[3].Items[0].Slot.Start.Equal(noon.Add(2*time.Hour)) {
		t.Fatalf("offered %v, want each unit now, and both at 14:00", made)
	}
	for _, o := range made {
		if _, _, ok := w.sellers.Offer(w.now, ann, "c", o.ID); !ok {
			t.Errorf("offer %s is forgotten", o.ID)
		}
	}
}

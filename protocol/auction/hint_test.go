package auction_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/message"
	"ramp/rfql"
)

// hintMarket has sellers that answer many auctions, each independent of the others.
type hintMarket struct {
	t       *rapid.T
	sellers map[protocol.AgentID]auction.SellerConfig
	cal     map[protocol.AgentID]*machine
	order   []protocol.AgentID
}

func drawHintMarket(t *rapid.T) *hintMarket {
	m := &hintMarket{t: t, sellers: map[protocol.AgentID]auction.SellerConfig{}, cal: map[protocol.AgentID]*machine{}}
	for i := range rapid.IntRange(1, 5).Draw(t, "sellers") {
		id := agent(fmt.Sprintf("s%d", i))
		size := rapid.IntRange(20, 100).Draw(t, "size")
		least := rapid.IntRange(5, 60).Draw(t, "least")
		cfg := newStand().cfg
		cfg.Self, cfg.Properties.Cores = id, size
		cfg.Pricing = linear{protocol.Credits(2*least) * protocol.Credit, protocol.Credits(least) * protocol.Credit}
		if rapid.IntRange(0, 5).Draw(t, "other system") == 0 {
			cfg.Properties.OS = "Plan9"
		}
		m.sellers[id], m.order = cfg, append(m.order, id)
		m.cal[id] = &machine{capacity: size, free: rapid.SliceOfN(rapid.IntRange(0, size), 12, 12).Draw(t, "free")}
	}
	return m
}

func drawHintRequest(t *rapid.T) rfql.DraftRequest {
	r := rfql.DraftRequest{
		Price: protocol.Credits(rapid.IntRange(10, 60).Draw(t, "price")) * protocol.Credit, OS: "Linux",
		Wall: time.Duration(rapid.IntRange(1, 150).Draw(t, "minutes")) * time.Minute, TotalCores: rapid.IntRange(1, 110).Draw(t, "cores"),
	}
	begins := noon
	if rapid.Bool().Draw(t, "begins later") {
		r.NotBefore = noon.Add(time.Duration(rapid.IntRange(1, 300).Draw(t, "from")) * time.Minute)
		begins = r.NotBefore
	}
	r.End = begins.Add(r.Wall + time.Duration(rapid.IntRange(1, 200).Draw(t, "slack"))*time.Minute)
	return r
}

// ask is an auction from begin to end.
func (m *hintMarket) ask(r rfql.DraftRequest, rounds int) *auction.Buyer {
	doc, err := rfql.Check(rfql.Draft{Requests: []rfql.DraftRequest{r}}, noon)
	if err != nil {
		m.t.Fatalf("%v: %v", r, err)
	}
	q := doc.Request(0)
	b, out := auction.NewBuyer(noon, auction.BuyerConfig{
		Self: ann, Conversation: "c", Document: doc.XML(), Sellers: m.order, Rounds: rounds, RoundLimit: time.Second,
		Wants:     []auction.Want{{Ceiling: q.Price, NotBefore: q.NotBefore, End: q.End, Wall: q.Wall, Cores: q.Cores, Contract: q.Contract}},
		Objective: protocol.ObjectiveCost, Terms: []protocol.Terms{{Bank: bank, Currency: "CRD"}}, Modes: modeOf(q),
	}, auction.NewTiming())
	live := map[protocol.AgentID]*auction.Sellers{}
	for id, cfg := range m.sellers {
		live[id] = auction.NewSellers(cfg)
	}
	for len(out.Send) > 0 && !b.Over() {
		out = m.round(b, live, out.Send)
	}
	return b
}

func modeOf(q rfql.Request) []protocol.Mode {
	if q.Metered() {
		return []protocol.Mode{protocol.ModeMetered}
	}
	return []protocol.Mode{protocol.ModeOnReservation}
}

// round carries calls to their receivers and the answers back; the last answer
// brings the next round.
func (m *hintMarket) round(b *auction.Buyer, live map[protocol.AgentID]*auction.Sellers, calls []protocol.Message) (out protocol.Output) {
	for _, c := range calls {
		for _, to := range c.Receivers {
			a, ok := live[to].Call(noon, c, c.Body.(message.CallForProposals), m.cal[to])
			if !ok {
				m.t.Fatalf("%s does not answer", to)
			}
			out = out.Join(b.Receive(noon, protocol.Message{Performative: a.Performative, Sender: to, Conversation: "c", Body: a.Body}))
		}
	}
	return out
}

// offersIn are the sellers with an offer in the first round, and the lowest price
// among them.
func offersIn(b *auction.Buyer) (int, protocol.Credits) {
	first := b.Rounds()[0]
	if first.Best[0] == nil {
		return 0, 0
	}
	return first.Offers, *first.Best[0]
}

// A change that a failed auction proposes yields the announced number of offers if
// nothing else changes, and a later start yields the announced price.
func TestFollowingAHintGetsOffers(t *testing.T) {
	kinds := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		m := drawHintMarket(t)
		r := drawHintRequest(t)
		b := m.ask(r, rapid.IntRange(1, 3).Draw(t, "rounds"))
		if b.State() == auction.Awarded {
			if len(b.Explain().Relaxations()) > 0 {
				t.Fatalf("bought, and advised %v", b.Explain().Relaxations())
			}
			return
		}
		for _, x := range b.Explain().Relaxations() {
			changed := r
			changed.End = r.End.Add(x.Later)
			if x.Price > 0 {
				changed.Price = x.Price
			}
			if x.Cores > 0 {
				changed.TotalCores = x.Cores
			}
			kinds[fmt.Sprint(x.Later > 0, x.Price > 0, x.Cores > 0)]++
			n, price := offersIn(m.ask(changed, 1))
			if n < x.Offers {
				t.Fatalf("%s: got %d offers", x.Change, n)
			}
			if x.From > 0 && price != x.From {
				t.Fatalf("%s: the lowest was %s", x.Change, price)
			}
		}
	})
	t.Log(kinds)
}

// If a market has offers for the first request, there is nothing to relax. If it has
// offers for the changed request, the advice names a change whenever a single change of
// end or price would do.
func TestASingleSufficientChangeIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawHintMarket(t)
		r := drawHintRequest(t)
		b := m.ask(r, 1)
		if b.State() == auction.Awarded {
			return
		}
		later, dearer := r, r
		later.End = r.End.Add(24 * time.Hour)
		dearer.Price = 1000 * protocol.Credit
		var helps [2]bool
		for _, x := range b.Explain().Relaxations() {
			helps[0] = helps[0] || x.Later > 0 && x.Price == 0
			helps[1] = helps[1] || x.Price > 0 && x.Later == 0 && x.Cores == 0
		}
		for i, changed := range []rfql.DraftRequest{later, dearer} {
			if n, _ := offersIn(m.ask(changed, 1)); (n > 0) != helps[i] {
				t.Fatalf("change %d gets %d offers, advised %v", i, n, b.Explain().Relaxations())
			}
		}
	})
}

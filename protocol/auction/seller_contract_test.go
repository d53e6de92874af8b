package auction_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/message"
	"ramp/rfql"
)

// metered asks one seller for one unit at a time.
type metered struct {
	cfg auction.SellerConfig
	cal *machine
	n   int
}

func drawMetered(t *rapid.T) *metered {
	cfg := newStand().cfg
	cfg.Properties.Cores = rapid.IntRange(1, 64).Draw(t, "size")
	least := protocol.Credits(rapid.Int64Range(1000, 60*int64(protocol.Credit)).Draw(t, "least"))
	cfg.Pricing = linear{least + protocol.Credits(rapid.Int64Range(0, int64(least)).Draw(t, "above")), least}
	free := rapid.SliceOfN(rapid.IntRange(0, cfg.Properties.Cores), 8, 8).Draw(t, "free")
	return &metered{cfg: cfg, cal: &machine{capacity: cfg.Properties.Cores, free: free}}
}

func drawContract(t *rapid.T) rfql.Contract {
	ramp := func(name string, top int64) protocol.Ramp {
		lo := rapid.Int64Range(0, 40*protocol.Core).Draw(t, name+" lo")
		return protocol.Ramp{Lo: lo * rapid.Int64Range(0, 1).Draw(t, name+" from above 0"), Hi: lo + rapid.Int64Range(0, 20*protocol.Core).Draw(t, name+" wide"),
			Top: protocol.Credits(rapid.Int64Range(0, top).Draw(t, name+" top"))}
	}
	c := rfql.Contract{Prepay: rapid.Bool().Draw(t, "prepaid")}
	if rapid.Bool().Draw(t, "P") {
		c.P = ramp("P", 80*int64(protocol.Credit))
	}
	if c.P.Top == 0 || rapid.Bool().Draw(t, "Q") {
		c.P, c.Q = protocol.Ramp{Lo: c.P.Lo, Hi: c.P.Hi, Top: c.P.Top}, ramp("Q", 500*int64(protocol.Credit))
		c.Q.Top++
	}
	return c
}

func (m *metered) draw(t *rapid.T) rfql.DraftRequest {
	wall := time.Duration(rapid.IntRange(1, 120).Draw(t, "minutes")) * time.Minute
	return rfql.DraftRequest{
		Price: protocol.Credits(rapid.Int64Range(1, 90*int64(protocol.Credit)).Draw(t, "price")), Wall: wall,
		End:        noon.Add(wall + time.Duration(rapid.IntRange(3, 200).Draw(t, "slack"))*time.Minute),
		TotalCores: rapid.IntRange(1, m.cfg.Properties.Cores).Draw(t, "cores"), Contract: drawContract(t),
	}
}

// ask runs a new auction, and shows the offer or the reason.
func (m *metered) ask(t *rapid.T, r rfql.DraftRequest, best bool) (*protocol.Offer, protocol.Tariff, []protocol.Reason) {
	doc, err := rfql.Check(rfql.Draft{Requests: []rfql.DraftRequest{r}}, noon)
	if err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	m.n++
	c := protocol.Message{Sender: ann, Conversation: fmt.Sprint("c", m.n)}
	sellers := auction.NewSellers(m.cfg)
	a, _ := sellers.Call(noon, c, message.CallForProposals{
		Round: 1, Document: doc.XML(), Terms: []protocol.Terms{{Bank: bank, Currency: "CRD"}}, Modes: []protocol.Mode{protocol.ModeMetered}, Best: best,
	}, m.cal)
	if p, ok := a.Body.(message.Proposal); ok {
		return &p.Offers[0], sellers.Tariffs(ann, c.Conversation, p.Offers[0])[0], nil
	}
	return nil, protocol.Tariff{}, a.Body.(message.Refusal).Reasons
}

// comesTo is the cost of a core-hour of n cores in constant use, by the formula of the
// source: P(n) + Q(n)/n.
func comesTo(p, q protocol.Ramp, n int) *big.Rat {
	at := func(r protocol.Ramp) *big.Rat {
		x := int64(n) * protocol.Core
		switch {
		case x <= r.Lo:
			return new(big.Rat)
		case x >= r.Hi:
			return big.NewRat(int64(r.Top), 1)
		}
		up := big.NewRat(x-r.Lo, r.Hi-r.Lo)
		return up.Mul(up, big.NewRat(int64(r.Top), 1))
	}
	sum := at(q)
	return sum.Quo(sum, big.NewRat(int64(n), 1)).Add(sum, at(p))
}

func rat(c protocol.Credits) *big.Rat { return big.NewRat(int64(c), 1) }

// A seller makes an offer whenever the request's ceiling and the contract's peak reach its
// lowest price and the contract promises nothing impossible. Then a slot in constant use
// pays at least that price, up to a micro-credit for the part withheld for Q.
func TestAMeteredOfferIsWorthTheLeastPrice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMetered(t)
		r := m.draw(t)
		_, least := m.cfg.Pricing.Limits()
		offer, tariff, reasons := m.ask(t, r, false)
		if offer != nil {
			worth := comesTo(tariff.P, tariff.Q, r.TotalCores)
			if worth.Add(worth, rat(1)).Cmp(rat(least)) <= 0 || offer.Items[0].Price > r.Price {
				t.Fatalf("offers %+v, which comes to %s of at least %s", tariff, worth.FloatString(3), least)
			}
			return
		}
		c := r.Contract
		steep := c.P.Hi <= int64(r.TotalCores)*protocol.Core && c.Q.Hi <= int64(r.TotalCores)*protocol.Core
		promised := c.P.Lo
		if c.Q.Top > 0 {
			promised = c.Q.Lo
		}
		would := r.Price >= least && comesTo(c.P, c.Q, r.TotalCores).Cmp(rat(least)) >= 0 && promised <= int64(r.TotalCores)*protocol.Core
		if would && steep && reasons[0].Code == protocol.CodePrice {
			t.Fatalf("%+v at %s is refused: %+v", c, r.Price, reasons)
		}
	})
}

// Following a counter-offer now yields an offer at its price, in the best-offer round as
// well. It changes nothing else: reachable rates and sufficient prices stay.
func TestACounterOfferWouldBeAcceptedNow(t *testing.T) {
	made := map[protocol.Code]int{}
	rapid.Check(t, func(t *rapid.T) {
		m := drawMetered(t)
		r := m.draw(t)
		best := rapid.Bool().Draw(t, "best")
		_, _, reasons := m.ask(t, r, best)
		for _, reason := range reasons {
			if reason.Code == protocol.CodePrice && len(reason.Hints) == 0 && !best { // the ceiling that was asked for may do
				t.Fatalf("a price is refused without a counter-offer: %+v", reason)
			}
			for _, h := range reason.Hints {
				made[reason.Code]++
				m.checkCounter(t, r, h)
			}
		}
	})
	t.Log(made)
}

func (m *metered) checkCounter(t *rapid.T, r rfql.DraftRequest, h protocol.Hint) {
	c := r
	c.Price, c.TotalCores = max(r.Price, h.Price), h.Cores
	c.Contract.P, c.Contract.Q = h.Tariff.P, h.Tariff.Q
	if end := h.Start.Add(r.Wall); end.After(r.End) {
		c.End = end
	}
	offer, _, reasons := m.ask(t, c, false)
	if offer == nil {
		t.Fatalf("%+v would accept %+v, and says of it %+v", r, h, reasons)
	}
	it := offer.Items[0]
	if it.Price != h.Price || !it.Slot.Start.Equal(h.Start) || h.Tariff.TimeLimit != r.Wall || (h.Tariff.Prepay > 0) != r.Contract.Prepay {
		t.Fatalf("it said %+v, and offers %+v", h, it)
	}
	for _, f := range [][2]protocol.Ramp{{r.Contract.P, h.Tariff.P}, {r.Contract.Q, h.Tariff.Q}} {
		most := int64(h.Cores) * protocol.Core
		kept := f[1].Top >= f[0].Top && f[1].Hi == min(f[0].Hi, max(most, f[1].Hi)) && (f[1].Lo == f[0].Lo || f[0].Lo >= most)
		if !kept {
			t.Fatalf("%+v became %+v", f[0], f[1])
		}
	}
}

// If nobody accepts a buyer's contract, the buyer learns who would accept which, and gets no
// advice to change price or time that would not suffice.
func TestABuyerListsCounterOffers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawHintMarket(t)
		for id, cfg := range m.sellers {
			cfg.Modes = []protocol.Mode{protocol.ModeMetered}
			m.sellers[id] = cfg
		}
		r := drawHintRequest(t)
		r.Contract = rfql.Contract{P: protocol.Ramp{Hi: protocol.Core, Top: protocol.Credits(rapid.IntRange(1, 60).Draw(t, "Pmax")) * protocol.Credit}}
		b := m.ask(r, rapid.IntRange(1, 2).Draw(t, "rounds"))
		counters := b.Explain().Counters()
		if b.State() == auction.Awarded && len(counters) > 0 {
			t.Fatalf("bought, and countered %+v", counters)
		}
		for _, c := range counters {
			changed := r
			changed.Price, changed.TotalCores = max(r.Price, c.Price), c.Cores
			changed.End = r.End.Add(c.Later)
			changed.Contract.P, changed.Contract.Q = c.Contract.P, c.Contract.Q
			one := *m
			one.order = []protocol.AgentID{c.Seller}
			if n, price := offersIn(one.ask(changed, 1)); n != 1 || price > c.Price {
				t.Fatalf("%s would accept %q, and makes %d offers at %s", c.Resource, c.Change, n, price)
			}
			if strings.Contains(c.Change, "Pmax") != (c.Contract.P.Top != r.Contract.P.Top) || c.Change == "" {
				t.Fatalf("%+v is told as %q", c, c.Change)
			}
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
			if n, _ := offersIn(m.ask(changed, 1)); n < x.Offers {
				t.Fatalf("%s: got %d offers of %d", x.Change, n, x.Offers)
			}
		}
	})
}

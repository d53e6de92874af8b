package auction_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/message"
	"ramp/rfql"
)

// town is a market of sellers with calendars, prices and loads of their own.
type town struct {
	ids       []protocol.AgentID
	sellers   map[protocol.AgentID]*auction.Sellers
	calendars map[protocol.AgentID]*machine
	prospects []auction.Prospect
	document  []byte
	wants     []auction.Want
	listed    bool // the sellers are a shortlist from an index, and open at list prices
}

// newTown draws n sellers: prices as in the simulator, machines of 64 to 1024
// cores that are busy from a third to all of the time.
func newTown(r *rand.Rand, n, units int) *town { return newTownOf(r, n, units, false) }

func newTownOf(r *rand.Rand, n, units int, listed bool) *town {
	w := &town{listed: listed, sellers: map[protocol.AgentID]*auction.Sellers{}, calendars: map[protocol.AgentID]*machine{}}
	var d rfql.Draft
	for range units {
		from := noon.Add(time.Duration(10+r.IntN(240)) * time.Minute)
		wall := time.Duration(10+r.IntN(180)) * time.Minute
		d.Requests = append(d.Requests, rfql.DraftRequest{
			Price: protocol.Credits(15+r.IntN(60)) * protocol.Credit, TotalCores: 1 << r.IntN(8),
			NotBefore: from, End: from.Add(wall + time.Duration(r.IntN(120))*time.Minute), Wall: wall,
		})
	}
	doc, err := rfql.Check(d, noon)
	must(err)
	w.document = doc.XML()
	for _, q := range doc.Requests() {
		w.wants = append(w.wants, auction.Want{Ceiling: q.Price, NotBefore: q.NotBefore, End: q.End, Wall: q.Wall, Cores: q.Cores})
	}
	for i := range n {
		w.settle(r, protocol.AgentID(fmt.Sprintf("s%d@%s", i, strings.Repeat("a", protocol.FingerprintLen))), doc)
	}
	return w
}

func (w *town) settle(r *rand.Rand, id protocol.AgentID, doc rfql.Document) {
	cal := &machine{capacity: 64 << r.IntN(5)}
	usual := 35 + r.IntN(65) // per cent busy
	for range 12 {
		busy := min(100, max(0, usual+r.IntN(41)-20))
		cal.free = append(cal.free, cal.capacity*(100-busy)/100)
	}
	least := protocol.Credits(10+r.IntN(30)) * protocol.Credit
	price := linear{least + protocol.Credits(5+r.IntN(35))*protocol.Credit, least}
	props := protocol.Properties{OS: "Linux", Arch: "x86_64", Cores: cal.capacity}
	p := auction.Prospect{Start: price.start, Min: price.least}
	for u, q := range doc.Requests() {
		if len(rfql.Match(q, props)) == 0 {
			p.Units.Add(u)
		}
	}
	w.ids, w.calendars[id], w.prospects = append(w.ids, id), cal, append(w.prospects, p)
	pricing := auction.Pricing(price)
	if w.listed {
		pricing = posted{price}
	}
	w.sellers[id] = auction.NewSellers(auction.SellerConfig{
		Self: id, Properties: props, Terms: terms, Modes: modes, Pricing: pricing,
		Validity: protocol.OfferValidity, Lead: auction.DefaultLead, Horizon: 48 * time.Hour,
	})
}

var (
	terms = []protocol.Terms{{Bank: bank, Currency: "CRD"}}
	modes = []protocol.Mode{protocol.ModeOnReservation}
)

// outcome is the result of an auction, with the number of messages.
type outcome struct {
	state     auction.BuyerState
	cost      protocol.Credits
	rounds    int
	messages  int
	proposals []int // by round
}

func (o outcome) most() int {
	most := 0
	for _, n := range o.proposals {
		most = max(most, n)
	}
	return most
}

// trade is an auction with answers that take no time.
func (w *town) trade(name string, rounds, budget int) outcome {
	now := noon
	for _, s := range w.sellers {
		s.Forget(ann, name)
	}
	b, out := auction.NewBuyer(now, auction.BuyerConfig{
		Self: ann, Conversation: name, Document: w.document, Wants: w.wants, Sellers: w.ids, Rounds: rounds,
		RoundLimit: 15 * time.Second, Objective: protocol.ObjectiveCost, Terms: terms, Modes: modes,
		Budget: budget, Prospects: w.prospects, Shortlist: w.listed,
	}, auction.NewTiming())
	var o outcome
	for !b.Over() {
		answers, heard := w.answers(now, out.Send)
		o.messages += heard + len(answers)
		proposals, next := 0, protocol.Output{WakeAt: out.WakeAt}
		for _, a := range answers {
			if a.Performative == protocol.Propose {
				proposals++
			}
			if got := b.Receive(now.Add(time.Millisecond), a); len(got.Send) > 0 {
				next = got
			}
		}
		o.proposals = append(o.proposals, proposals)
		if len(next.Send) == 0 && !b.Over() {
			now = next.WakeAt
			next = b.Wake(now)
		}
		out = next
	}
	o.state, o.rounds = b.State(), len(b.Rounds())
	for _, bid := range b.Result().Bids {
		o.cost += bid.Offer.Cost
	}
	return o
}

func (w *town) answers(now time.Time, calls []protocol.Message) (list []protocol.Message, heard int) {
	for _, m := range calls {
		to := m.Receivers
		if to[0] == protocol.Everyone {
			to = w.ids
		}
		heard += len(to)
		for _, id := range to {
			if a, ok := w.sellers[id].Call(now, m, m.Body.(message.CallForProposals), w.calendars[id]); ok {
				list = append(list, m.Reply(id, a.Performative, a.Body))
			}
		}
	}
	return list, heard
}

// Asking everybody is the oracle: over many auctions the price with the budget is
// within 1 %, no purchase fails that could succeed, and no buyer is flooded.
func TestABudgetCostsLessThanAPercent(t *testing.T) {
	sizes := map[int]int{100: 20, 1_000: 10, 10_000: 1} // auctions
	if testing.Short() {
		delete(sizes, 10_000)
	}
	for n, auctions := range sizes {
		t.Run(fmt.Sprintf("of %d sellers", n), func(t *testing.T) { checkBudget(t, n, auctions) })
	}
}

func checkBudget(t *testing.T, n, auctions int) {
	var all, few protocol.Credits
	var lost, won, most, allSaid, fewSaid, both int
	worst := 0.0
	for i := range auctions {
		r := rand.New(rand.NewPCG(uint64(n), uint64(i)))
		w := newTown(r, n, 1+i%3)
		rounds := 1 + (i+2)%4
		name := fmt.Sprint("c", i)
		x, y := w.trade(name, rounds, 0), w.trade(name+"b", rounds, auction.DefaultBudget)
		most = max(most, y.most())
		allSaid, fewSaid = allSaid+x.messages, fewSaid+y.messages
		switch {
		case x.state == auction.Awarded && y.state == auction.Awarded:
			all, few, both = all+x.cost, few+y.cost, both+1
			worst = max(worst, float64(y.cost)/float64(x.cost))
		case x.state == auction.Awarded:
			lost++
		case y.state == auction.Awarded:
			won++
		}
	}
	ratio := float64(few) / float64(all)
	t.Logf("%d sellers: %d auctions bought by both, price %.4f of asking everybody, worst %.3f; lost %d, won %d; at most %d proposals; messages %d and %d per auction",
		n, both, ratio, worst, lost, won, most, allSaid/auctions, fewSaid/auctions)
	if ratio > 1.01 || most > auction.DefaultBudget || lost > 0 {
		t.Errorf("price %.4f of asking everybody, want at most 1.01; %d proposals in a round, want at most %d; %d not bought", ratio, most, auction.DefaultBudget, lost)
	}
}

// posted is the rule of a seller with a list price.
type posted struct{ linear }

func (p posted) Ask(standing protocol.Credits, busy, capacity int) (protocol.Credits, bool) {
	ask, ok := p.linear.Ask(standing, busy, capacity)
	if standing > p.start {
		ask = p.start
	}
	return ask, ok
}

// A shortlist calls the most promising only when they are needed. The price is nearly that of
// calling the whole list in every round, also where most machines are busy.
func TestAShortlistCostsLessThanAPercent(t *testing.T) {
	var all, few protocol.Credits
	for i := range 720 {
		r := rand.New(rand.NewPCG(64, uint64(i)))
		units, rounds := 1+i%3, i/3%6
		w := newTownOf(r, 64, units, true)
		y := w.trade(fmt.Sprint("s", i), rounds, auction.ShortBudget)
		w.listed = false
		x := w.trade(fmt.Sprint("s", i, "b"), rounds, 0)
		if x.state != y.state {
			t.Errorf("market %d: %v, with the whole list %v", i, y.state, x.state)
		}
		if x.state == auction.Awarded && y.state == auction.Awarded {
			all, few = all+x.cost, few+y.cost
		}
	}
	ratio := float64(few) / float64(all)
	t.Logf("price %.4f of calling the whole list", ratio)
	if ratio > 1.01 {
		t.Errorf("price %.4f of calling the whole list, want at most 1.01", ratio)
	}
}

// Where nearly all machines are full, a shortlist still finds the few that are not, almost as
// often as calling everybody on it.
func TestAShortlistFindsTheLastRoom(t *testing.T) {
	bought, lost := 0, 0
	for i := range 600 {
		r := rand.New(rand.NewPCG(97, uint64(i)))
		w := newTownOf(r, 64, 1+i%2, true)
		for _, id := range w.ids {
			if r.IntN(100) < 90+i%8 {
				clear(w.calendars[id].free)
			}
		}
		y := w.trade(fmt.Sprint("f", i), 0, auction.ShortBudget)
		w.listed = false
		if x := w.trade(fmt.Sprint("f", i, "b"), 0, 0); x.state == auction.Awarded {
			bought++
			if y.state != auction.Awarded {
				lost++
			}
		}
	}
	t.Logf("%d of %d not bought", lost, bought)
	if bought < 100 || 100*lost > bought {
		t.Errorf("%d of %d not bought, want at most 1 %%", lost, bought)
	}
}

// Everybody computes the same lot, and about as many sellers are chosen as wanted.
func TestChosenIsAFairLot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		conversation, round := rapid.String().Draw(t, "conversation"), rapid.IntRange(1, protocol.MaxRounds).Draw(t, "round")
		budget, among := rapid.IntRange(1, 100).Draw(t, "budget"), rapid.IntRange(200, 20_000).Draw(t, "among")
		chosen, n := 0, 4000
		for i := range n {
			id := agent(fmt.Sprint("s", i))
			is := auction.Chosen(conversation, round, id, budget, among)
			if is != auction.Chosen(conversation, round, id, budget, among) {
				t.Fatalf("%s is chosen now and then", id)
			}
			if is {
				chosen++
			}
		}
		mean := float64(n) * float64(budget) / float64(among)
		if far := float64(chosen) - mean; far*far > 36*mean+36 { // six deviations
			t.Fatalf("%d of %d chosen, want about %.0f", chosen, n, mean)
		}
	})
}

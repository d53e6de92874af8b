package auction_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/message"
)

func TestBuyerConfigIsBounded(t *testing.T) {
	good := auction.BuyerConfig{Wants: []auction.Want{window(50)}, Rounds: 3, RoundLimit: time.Second}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*auction.BuyerConfig){
		"no units":             func(c *auction.BuyerConfig) { c.Wants = nil },
		"many units":           func(c *auction.BuyerConfig) { c.Wants = make([]auction.Want, protocol.MaxUnits+1) },
		"fewer than no rounds": func(c *auction.BuyerConfig) { c.Rounds = -1 },
		"many rounds":          func(c *auction.BuyerConfig) { c.Rounds = protocol.MaxRounds + 1 },
		"short rounds":         func(c *auction.BuyerConfig) { c.RoundLimit = auction.MinRoundLimit - 1 },
		"endless round":        func(c *auction.BuyerConfig) { c.RoundLimit = auction.MaxRoundLimit + 1 },
	} {
		c := good
		if change(&c); c.Validate() == nil {
			t.Errorf("%s are accepted", name)
		}
	}
}

// naive implements the rule of ceilings a second time: it stores every offer that ever
// counted, and searches for the best one before the round each time.
type naive struct {
	counted []protocol.Offer
	before  int // of counted, when the round was called
	ceiling protocol.Credits
}

func (n *naive) take(round int, o protocol.Offer) {
	price := o.Items[0].Price
	best, any := n.ceiling, false
	for _, c := range n.counted[:n.before] {
		if p := c.Items[0].Price; !any || p < best {
			best, any = p, true
		}
	}
	if round == 1 && price <= n.ceiling || round > 1 && (any && price < best || !any && price <= best) {
		n.counted = append(n.counted, o)
	}
}

// A new offer counts only below the call (in round 1: within the request). The machine and
// the naive rule agree on every ceiling, and the winner is the cheapest offer that
// counted.
func TestCeilingsAreTheNaiveRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := &naive{ceiling: 50 * protocol.Credit}
		sellers := []protocol.AgentID{agent("a"), agent("b"), agent("c")}
		b, _ := auction.NewBuyer(begin, auction.BuyerConfig{
			Self: agent("buyer"), Conversation: "c", Wants: []auction.Want{window(50)}, Sellers: sellers,
			Rounds: 4, RoundLimit: time.Second, NoEarlyClose: true, Objective: protocol.ObjectiveCost,
		}, auction.NewTiming())
		now := begin
		for round := 1; round <= 4; round++ {
			for i := range rapid.IntRange(0, 8).Draw(t, "answers") {
				price := rapid.IntRange(-1, 60).Draw(t, "price")
				o := offerOf(now, fmt.Sprintf("0:%d", price))
				o.ID = fmt.Sprintf("%d-%d", round, i)
				b.Receive(now, protocol.Message{Sender: rapid.SampledFrom(sellers).Draw(t, "seller"), Body: message.Proposal{Round: round, Offers: []protocol.Offer{o}}})
				if price > 0 {
					n.take(round, o)
				}
			}
			now = now.Add(time.Second)
			out := b.Wake(now)
			n.before = len(n.counted)
			want := n.ceiling
			for _, c := range n.counted {
				want = min(want, c.Items[0].Price)
			}
			if round < 4 {
				if got := out.Send[0].Body.(message.CallForProposals).Ceilings[0].Price; got != want {
					t.Fatalf("round %d: the ceiling is %s, want %s", round, got, want)
				}
				continue
			}
			if len(n.counted) == 0 {
				if b.State() != auction.BestOffer {
					t.Fatalf("nothing counted, but the auction is %s", b.State())
				}
				return
			}
			if got := b.Result().Bids[0].Offer.Items[0].Price; b.State() != auction.Awarded || got != want {
				t.Fatalf("%s at %s, want %s", b.State(), got, want)
			}
		}
	})
}

// decided shows the state of an auction, and the cost and end of its set.
func decided(b *auction.Buyer) string {
	var cost protocol.Credits
	var end time.Time
	for _, bid := range b.Result().Bids {
		cost += bid.Offer.Cost
		for _, it := range bid.Offer.Items {
			if it.Slot.End.After(end) {
				end = it.Slot.End
			}
		}
	}
	return fmt.Sprintf("%s at %s until %s", b.State(), cost, end)
}

// The order of answers in a round affects neither the next ceilings nor the cost of the
// chosen set. It only decides which of equal offers is outbid.
func TestTheOrderOfAnswersDecidesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sellers := sellersOf("4")
		objective := rapid.SampledFrom([]protocol.Objective{protocol.ObjectiveCost, protocol.ObjectiveTime}).Draw(t, "objective")
		var both [2]*auction.Buyer
		for i := range both {
			both[i], _ = auction.NewBuyer(begin, auction.BuyerConfig{
				Self: agent("buyer"), Conversation: "c", Wants: []auction.Want{window(50), window(50)}, Sellers: sellers,
				Rounds: 3, RoundLimit: time.Second, NoEarlyClose: true, Objective: objective,
			}, auction.NewTiming())
		}
		now := begin
		for round := 1; round <= 3; round++ {
			answers := make([]protocol.Message, len(sellers))
			for i, seller := range sellers {
				answers[i] = protocol.Message{Sender: seller, Body: message.Proposal{Round: round, Offers: anyOffers(t, now, fmt.Sprint(round, i))}}
			}
			now = now.Add(time.Second)
			var said [2]protocol.Output
			for i, order := range [][]protocol.Message{answers, rapid.Permutation(answers).Draw(t, "order")} {
				for _, m := range order {
					both[i].Receive(now.Add(-time.Second), m)
				}
				said[i] = both[i].Wake(now)
			}
			if !slices.Equal(shownCeilings(said[0]), shownCeilings(said[1])) {
				t.Fatalf("round %d: the next ceilings are %v or %v", round, shownCeilings(said[0]), shownCeilings(said[1]))
			}
		}
		if a, b := decided(both[0]), decided(both[1]); a != b {
			t.Fatalf("%s, or %s", a, b)
		}
	})
}

// anyOffers are a seller's offers for one unit, the other or both, at different starts.
func anyOffers(t *rapid.T, now time.Time, id string) (list []protocol.Offer) {
	for k := range rapid.IntRange(0, 3).Draw(t, "offers") {
		o := offerOf(now, fmt.Sprintf("%s:%d@%dm", rapid.SampledFrom([]string{"0", "1", "0+1"}).Draw(t, "units"),
			rapid.IntRange(20, 52).Draw(t, "price"), rapid.IntRange(60, 115).Draw(t, "start")))
		o.ID = fmt.Sprint(id, k)
		list = append(list, o)
	}
	return list
}

func shownCeilings(out protocol.Output) (list []string) {
	for _, m := range out.Send {
		if c, ok := m.Body.(message.CallForProposals); ok {
			for i := range c.Ceilings {
				c.Ceilings[i].Tied = false
			}
			list = append(list, fmt.Sprint(c.Ceilings, c.Bundles))
		}
	}
	return slices.Compact(list)
}

// No answer, however odd, stops an auction: it ends after its rounds and a best-offer
// round, and every chosen offer answers the request.
func TestAnyAnswersEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sellers := sellersOf("5")
		units := rapid.IntRange(1, 3).Draw(t, "units")
		cfg := auction.BuyerConfig{Self: agent("buyer"), Conversation: "c", Sellers: sellers, Rounds: rapid.IntRange(0, 4).Draw(t, "rounds"),
			RoundLimit: 10 * time.Second, Objective: protocol.ObjectiveCost, NoEarlyClose: rapid.Bool().Draw(t, "fixed")}
		for range units {
			cfg.Wants = append(cfg.Wants, window(50))
		}
		b, out := auction.NewBuyer(begin, cfg, auction.NewTiming())
		now, calls := begin, 1
		for steps := 0; !b.Over(); steps++ {
			if steps > 500 {
				t.Fatal("no end after 500 steps")
			}
			if rapid.IntRange(0, 3).Draw(t, "wake") == 0 {
				now = now.Add(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, 10 * time.Second}).Draw(t, "pause"))
				out = b.Wake(now)
			} else {
				out = b.Receive(now, anyAnswer(t, now, rapid.SampledFrom(sellers).Draw(t, "seller")))
			}
			if len(out.Send) > 0 {
				calls++
			}
		}
		if most := cmp.Or(cfg.Rounds, protocol.MostRounds); calls > most+1 {
			t.Fatalf("%d calls for %d rounds", calls, cfg.Rounds)
		}
		if b.State() == auction.Failed {
			return
		}
		covered := map[int]bool{}
		for _, bid := range b.Result().Bids {
			for _, it := range bid.Offer.Items {
				if covered[it.Unit] || it.Unit >= units || it.Cost <= 0 || it.Slot.Cores != 4 {
					t.Fatalf("chosen: %+v", it)
				}
				if b.State() == auction.Awarded && it.Price > 50*protocol.Credit {
					t.Fatalf("awarded at %s", it.Price)
				}
				covered[it.Unit] = true
			}
		}
		if len(covered) != units {
			t.Fatalf("%d of %d units are covered", len(covered), units)
		}
	})
}

func anyAnswer(t *rapid.T, now time.Time, from protocol.AgentID) protocol.Message {
	m := protocol.Message{Sender: from, Conversation: "c"}
	round := rapid.IntRange(0, 6).Draw(t, "round")
	if rapid.Bool().Draw(t, "refuse") {
		m.Body = message.Refusal{Round: round, Reasons: []protocol.Reason{{
			Code: rapid.SampledFrom([]protocol.Code{protocol.CodeStands, protocol.CodePrice, protocol.CodeBusy, protocol.CodeUnknown}).Draw(t, "code"),
			Unit: rapid.IntRange(-1, 5).Draw(t, "of"), Asks: protocol.Credits(rapid.Int64().Draw(t, "asks"))}}}
		return m
	}
	p := message.Proposal{Round: round}
	for i := range rapid.IntRange(0, 3).Draw(t, "offers") {
		o := offerOf(now, fmt.Sprintf("%d:%d@%dm", rapid.IntRange(0, 3).Draw(t, "unit"), rapid.IntRange(-2, 90).Draw(t, "price"), rapid.IntRange(0, 200).Draw(t, "start")))
		o.ID = fmt.Sprint(i)
		if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
			o.Cost = protocol.Credits(rapid.Int64().Draw(t, "cost"))
		}
		if rapid.IntRange(0, 9).Draw(t, "greedy") == 0 {
			o.Items[0].Price = protocol.MaxCredits
		}
		p.Offers = append(p.Offers, o)
	}
	m.Body = p
	return m
}

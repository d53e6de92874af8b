package auction_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/agents/resource/pricing"
	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/message"
)

// priced is the price rule of live sites, or that of 002.
type priced pricing.Band

func (p priced) Ask(standing protocol.Credits, busy, capacity int) (protocol.Credits, bool) {
	return pricing.Band(p).Ask(standing, pricing.Load{Busy: busy, Capacity: capacity})
}
func (p priced) Outbids() bool                           { return pricing.Band(p).Outbids() }
func (p priced) Limits() (start, least protocol.Credits) { return p.Start, p.Min }

// site is a seller of a random market with its machine.
type site struct {
	cfg auction.SellerConfig
	cal *machine
}

func drawSite(t *rapid.T, i int, rule pricing.Rule) site {
	s := site{cfg: newStand().cfg, cal: &machine{capacity: 100}}
	s.cfg.Self = agent(fmt.Sprintf("s%d", i))
	least := rapid.IntRange(4, 9).Draw(t, "least")
	s.cfg.Pricing = priced{
		Start: protocol.Credits(least+rapid.IntRange(0, 8).Draw(t, "span")) * protocol.Credit, Min: protocol.Credits(least) * protocol.Credit,
		Rounds: rapid.IntRange(1, 4).Draw(t, "rounds of the seller"), Rule: rule,
	}
	s.cfg.Properties.OS = rapid.SampledFrom([]string{"Linux", "Linux", "Linux", "Windows"}).Draw(t, "system")
	if rapid.IntRange(0, 9).Draw(t, "other currency") == 0 {
		s.cfg.Terms = []protocol.Terms{{Bank: bank, Currency: "XXX"}}
	}
	s.cal.free = rapid.SliceOfN(rapid.SampledFrom([]int{0, 12, 20, 50, 100}), 5, 5).Draw(t, "free")
	return s
}

func drawOrder(t *rapid.T) auction.BuyerConfig {
	var units []string
	for range rapid.IntRange(1, 3).Draw(t, "units") {
		units = append(units, fmt.Sprintf("%d 13:00 %d:00 60 %d%s", rapid.IntRange(4, 18).Draw(t, "price"), rapid.IntRange(14, 17).Draw(t, "end"),
			rapid.SampledFrom([]int{8, 16, 200}).Draw(t, "cores"), rapid.SampledFrom([]string{"", " OperatingSystem=Linux"}).Draw(t, "system")))
	}
	cfg := auction.BuyerConfig{
		Self: ann, Conversation: "c", Document: document(units), Rounds: rapid.IntRange(0, 6).Draw(t, "rounds"), RoundLimit: time.Second,
		Objective: rapid.SampledFrom([]protocol.Objective{protocol.ObjectiveCost, protocol.ObjectiveTime, protocol.ObjectiveCostTime}).Draw(t, "objective"),
		Terms:     []protocol.Terms{{Bank: bank, Currency: "CRD"}}, Modes: []protocol.Mode{protocol.ModeOnReservation},
	}
	doc, err := auction.Read(cfg.Document)
	must(err)
	for _, q := range doc.Requests {
		cfg.Wants = append(cfg.Wants, auction.Want{Ceiling: q.Price, NotBefore: q.NotBefore, End: q.End, Wall: q.Wall, Cores: q.Cores})
	}
	if rapid.Bool().Draw(t, "late") {
		cfg.Wants[0].LastStart = noon.Add(90 * time.Minute)
	}
	return cfg
}

// Whoever is left out of a round, the outcome is that of calling everybody in every round.
// In the second run every seller hears every call, and a busy seller, which may be free a
// moment later, keeps the rounds going.
func TestSellersLeftOutChangeNothing(t *testing.T) {
	saved := 0
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawOrder(t)
		rule := rapid.SampledFrom([]pricing.Rule{pricing.List, pricing.Ramp}).Draw(t, "rule")
		var sites []site
		for i := range rapid.IntRange(1, 7).Draw(t, "sellers") {
			sites = append(sites, drawSite(t, i, rule))
		}
		advertised := rapid.Bool().Draw(t, "prices known")
		few, called := hold(cfg, sites, advertised, false)
		all, would := hold(cfg, sites, advertised, true)
		if len(all.Rounds()) < cfg.Rounds {
			t.Fatalf("only %d of %d rounds, though a busy seller may make an offer", len(all.Rounds()), cfg.Rounds)
		}
		if few.State() != all.State() || !reflect.DeepEqual(few.Result(), all.Result()) {
			t.Fatalf("%s %+v,\nbut with everybody called %s %+v", few.State(), few.Result(), all.State(), all.Result())
		}
		reasons := all.Explain().Why() // a seller whose offer is late may later refuse the price instead
		if reasons[protocol.CodeBusy]--; reasons[protocol.CodeBusy] <= 0 {
			delete(reasons, protocol.CodeBusy)
		}
		if got := few.Explain().Why(); cfg.Wants[0].LastStart.IsZero() && !maps.Equal(got, reasons) {
			t.Fatalf("reasons %v, but with everybody called %v", got, reasons)
		}
		if len(few.Rounds()) > len(all.Rounds()) {
			t.Fatalf("%d rounds, but %d with everybody called", len(few.Rounds()), len(all.Rounds()))
		}
		saved += would - called
	})
	if saved <= 0 {
		t.Errorf("%d calls were saved", saved)
	}
}

// hold holds an auction and counts the calls that sellers answered.
func hold(cfg auction.BuyerConfig, sites []site, advertised, everybody bool) (b *auction.Buyer, called int) {
	market := make([]*auction.Sellers, len(sites))
	for i, s := range sites {
		cfg.Sellers = append(cfg.Sellers, s.cfg.Self)
		market[i] = auction.NewSellers(s.cfg)
		p := auction.Prospect{}
		if advertised {
			p.Start, p.Min = s.cfg.Pricing.Limits()
		}
		cfg.Prospects = append(cfg.Prospects, p)
	}
	busy := agent("zz")
	if everybody {
		cfg.Sellers, cfg.Prospects = append(cfg.Sellers, busy), append(cfg.Prospects, auction.Prospect{})
	}
	b, out := auction.NewBuyer(noon, cfg, auction.NewTiming())
	for !b.Over() {
		calls := out.Send
		out = protocol.Output{}
		for i := range sites {
			call, ok := callTo(calls, sites[i].cfg.Self, everybody)
			if !ok {
				continue
			}
			called++
			a, ok := market[i].Call(noon, protocol.Message{Sender: ann, Conversation: "c"}, call, sites[i].cal)
			if ok {
				out = out.Join(b.Receive(noon, protocol.Message{Sender: sites[i].cfg.Self, Performative: a.Performative, Body: a.Body}))
			}
		}
		if everybody {
			out = out.Join(b.Receive(noon, protocol.Message{Sender: busy, Performative: protocol.Refuse, Body: message.Refusal{
				Round: b.Round(), Reasons: []protocol.Reason{{Code: protocol.CodeBusy, Unit: protocol.AllUnits}}}}))
		}
	}
	return b, called
}

// callTo finds the call that a seller hears; for everybody, it is that of others, if there
// is none of its own.
func callTo(calls []protocol.Message, id protocol.AgentID, everybody bool) (message.CallForProposals, bool) {
	for _, m := range calls {
		if slices.Contains(m.Receivers, id) {
			return m.Body.(message.CallForProposals), true
		}
	}
	if !everybody {
		return message.CallForProposals{}, false
	}
	call := calls[0].Body.(message.CallForProposals)
	call.Ceilings = slices.Clone(call.Ceilings)
	for i := range call.Ceilings {
		call.Ceilings[i].Tied = false
	}
	return call, true
}

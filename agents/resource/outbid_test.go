package resource_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/agents/resource/pricing"
	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/message"
	"ramp/rfql"
)

// rule is a site's price rule in an auction on its own.
type rule struct{ pricing.Band }

func (r rule) Ask(standing protocol.Credits, busy, capacity int) (protocol.Credits, bool) {
	return r.Band.Ask(standing, pricing.Load{Busy: busy, Capacity: capacity})
}

func (r rule) Limits() (start, least protocol.Credits) { return r.Start, r.Min }

// idle is a machine on which nothing runs.
type idle struct{}

func (idle) Free(_, _ time.Time) int             { return 1000 }
func (idle) Load(time.Time) (busy, capacity int) { return 0, 1000 }
func (idle) Earliest(_ int, _ time.Duration, from, _ time.Time) (time.Time, bool) {
	return from, true
}

var monday = time.Date(2026, 8, 3, 12, 0, 0, 0, time.UTC)

// rivals holds an auction of idle sites until nobody improves. The order in which their
// answers arrive is drawn by pick.
func rivals(t rapid.TB, bands []pricing.Band, ceilings []protocol.Credits, pick func(n int) int) *auction.Buyer {
	t.Helper()
	terms := []protocol.Terms{{Bank: "bank@cccccccccccccccccccccccccccccccc", Currency: "CRD"}}
	modes := []protocol.Mode{protocol.ModeOnReservation}
	cfg := auction.BuyerConfig{
		Self: "ann@bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", Conversation: "c", RoundLimit: protocol.DefaultRoundLimit,
		Objective: protocol.ObjectiveCost, Terms: terms, Modes: modes,
	}
	var draft rfql.Draft
	for _, c := range ceilings {
		r := rfql.DraftRequest{Price: c, TotalCores: 8, NotBefore: monday.Add(time.Hour), End: monday.Add(4 * time.Hour), Wall: time.Hour}
		draft.Requests = append(draft.Requests, r)
		cfg.Wants = append(cfg.Wants, auction.Want{Ceiling: c, NotBefore: r.NotBefore, End: r.End, Wall: r.Wall, Cores: 8})
	}
	doc, err := rfql.Check(draft, monday)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Document = doc.XML()
	sellers := map[protocol.AgentID]*auction.Sellers{}
	for i, b := range bands {
		id := protocol.AgentID(fmt.Sprintf("site-%d@aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", i))
		cfg.Sellers = append(cfg.Sellers, id)
		sellers[id] = auction.NewSellers(auction.SellerConfig{
			Self: id, Properties: protocol.Properties{Cores: 1000}, Terms: terms, Modes: modes, Pricing: rule{b},
			Validity: protocol.OfferValidity, Lead: auction.DefaultLead, Horizon: auction.DefaultHorizon,
		})
	}
	b, out := auction.NewBuyer(monday, cfg, auction.NewTiming())
	for len(out.Send) > 0 {
		var answers []protocol.Message
		for _, m := range out.Send {
			for _, id := range m.Receivers {
				a, _ := sellers[id].Call(monday, m, m.Body.(message.CallForProposals), idle{})
				answers = append(answers, protocol.Message{Performative: a.Performative, Sender: id, Body: a.Body})
			}
		}
		out = protocol.Output{}
		for len(answers) > 0 {
			i := pick(len(answers))
			out = out.Join(b.Receive(monday, answers[i]))
			answers = slices.Delete(answers, i, i+1)
		}
	}
	return b
}

// What a buyer pays does not depend on the ceiling that it names.
func TestRivalsBidDownFromTheirListPrice(t *testing.T) {
	band := pricing.Band{Start: 2 * protocol.Credit, Min: protocol.Credit, Rounds: pricing.DefaultRounds}
	for _, ceiling := range []protocol.Credits{2, 10, 60, 1000} {
		b := rivals(t, []pricing.Band{band, band, band}, []protocol.Credits{ceiling * protocol.Credit}, func(int) int { return 0 })
		if got := b.Result().Bids[0].Offer.Items[0].Price; got != protocol.Credit {
			t.Errorf("three idle sites from 2 to 1 ask %s of a buyer that allows %s, want 1", got, ceiling*protocol.Credit)
		}
	}
	alone := rivals(t, []pricing.Band{band}, []protocol.Credits{1000 * protocol.Credit}, func(int) int { return 0 })
	if got := alone.Result().Bids[0].Offer.Items[0].Price; got != band.Start {
		t.Errorf("a site without a rival asks %s, want its list price %s", got, band.Start)
	}
}

// Nobody pays more for a unit than the lowest start price, nor than the second-lowest
// minimum, of the idle sites whose minimum it allows: whatever it allows, whatever
// the order of answers, and however slowly they may come down. They do so by more than a micro-credit at once.
func TestNobodyPaysForItsCeiling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		price := func(name string, least, most int) protocol.Credits {
			return protocol.Credits(rapid.IntRange(least, most).Draw(t, name)) * protocol.Credit / 100
		}
		var bands []pricing.Band
		for range rapid.IntRange(1, 5).Draw(t, "sites") {
			b := pricing.Band{Min: price("minimum", 1, 400), Rounds: rapid.IntRange(1, pricing.MaxListRounds).Draw(t, "rounds")}
			b.Start = b.Min + price("above it", 0, 400)
			bands = append(bands, b)
		}
		var ceilings []protocol.Credits
		for range rapid.IntRange(1, 3).Draw(t, "units") {
			most := rapid.SampledFrom([]int{10, 1000, 100_000_000}).Draw(t, "allows up to")
			ceilings = append(ceilings, price("ceiling", 1, most))
		}
		b := rivals(t, bands, ceilings, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "next") })
		for unit, ceiling := range ceilings {
			if most, sold := mostDue(bands, ceiling); sold {
				checkPrice(t, b, unit, most)
			} else if b.State() == auction.Awarded {
				t.Fatalf("unit %d was sold below every minimum", unit)
			}
		}
	})
}

// mostDue is the most that a unit may cost, from the bands alone.
func mostDue(bands []pricing.Band, ceiling protocol.Credits) (most protocol.Credits, sold bool) {
	most = ceiling
	var minima []protocol.Credits
	for _, b := range bands {
		if b.Min <= ceiling {
			minima, most = append(minima, b.Min), min(most, b.Start)
		}
	}
	slices.Sort(minima)
	if len(minima) > 1 {
		most = min(most, minima[1])
	}
	return most, len(minima) > 0
}

func checkPrice(t *rapid.T, b *auction.Buyer, unit int, most protocol.Credits) {
	if b.State() != auction.Awarded {
		return // another unit was not sold
	}
	for _, bid := range b.Result().Bids {
		if it := bid.Offer.Items[0]; it.Unit == unit && it.Price > most {
			t.Fatalf("unit %d costs %s after %d rounds, want at most %s", unit, it.Price, b.Round(), most)
		}
	}
}

// When no site goes as low as the ceiling, the closest set is the cheapest one: who asks
// again at its price gets exactly that.
func TestTheClosestSetIsTheCheapest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var bands []pricing.Band
		least := pricing.MaxPrice
		for range rapid.IntRange(1, 5).Draw(t, "sites") {
			b := pricing.Band{Min: protocol.Credits(rapid.IntRange(51, 400).Draw(t, "minimum")) * protocol.Credit / 100, Rounds: pricing.DefaultRounds}
			b.Start = b.Min + protocol.Credits(rapid.IntRange(0, 400).Draw(t, "above it"))*protocol.Credit/100
			bands, least = append(bands, b), min(least, b.Min)
		}
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "next") }
		for _, c := range []struct {
			ceiling protocol.Credits
			want    auction.BuyerState
		}{{protocol.Credit / 2, auction.Closest}, {least, auction.Awarded}} {
			b := rivals(t, bands, []protocol.Credits{c.ceiling}, pick)
			if b.State() != c.want {
				t.Fatalf("a ceiling of %s: %s, want %s", c.ceiling, b.State(), c.want)
			}
			if got := b.Result().Bids[0].Offer.Items[0].Price; got != least {
				t.Fatalf("a ceiling of %s costs %s, want the lowest minimum %s", c.ceiling, got, least)
			}
		}
	})
}

package pricing_test

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"ramp/agents/resource/pricing"
	"ramp/protocol"
)

func credits(t *testing.T, s string) protocol.Credits {
	t.Helper()
	c, err := protocol.ParseCredits(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type ask struct {
	name             string
	start, min       string
	rounds           int
	busy, capacity   int
	standing, expect string // expect "": no bid
}

func (c ask) check(t *testing.T, rule pricing.Rule) {
	t.Run(c.name, func(t *testing.T) {
		band := pricing.Band{Start: credits(t, c.start), Min: credits(t, c.min), Rounds: c.rounds, Rule: rule}
		got, ok := band.Ask(credits(t, c.standing), pricing.Load{Busy: c.busy, Capacity: c.capacity})
		if !ok {
			if c.expect != "" {
				t.Fatalf("no bid, want %s", c.expect)
			}
			return
		}
		if got.String() != c.expect {
			t.Fatalf("asks %s, want %q", got, c.expect)
		}
	})
}

func TestRamp(t *testing.T) {
	for _, c := range []ask{
		{"an idle machine takes a quarter of its band off", "70", "40", 4, 0, 4008, "70", "62.5"},
		{"a half full machine takes half of that", "70", "40", 4, 2004, 4008, "70", "66.25"},
		{"a full machine bids what stands", "70", "40", 4, 4008, 4008, "70", "70"},
		{"a log beyond its machine counts as full", "70", "40", 4, 9999, 4008, "70", "70"},
		{"load below zero counts as idle", "70", "40", 4, -5, 4008, "70", "62.5"},
		{"the minimum is the floor", "70", "40", 4, 0, 4008, "41", "40"},
		{"at its minimum it still bids", "70", "40", 4, 0, 4008, "40", "40"},
		{"one micro-credit below its minimum it does not", "70", "40", 4, 0, 4008, "39.999999", ""},
		{"a request above the start price is met from above", "33", "25", 4, 0, 9216, "70", "68"},
		{"a third is rounded down", "1", "0.000001", 3, 2, 3, "1", "0.888889"},
		{"a half is rounded away from zero", "0.000002", "0.000001", 1, 1, 2, "0.000002", "0.000001"},
		{"equal start and minimum never move", "30", "30", 4, 0, 10, "50", "50"},
		{"a machine without cores moves nothing", "70", "40", 4, 0, 0, "70", "70"},
	} {
		c.check(t, pricing.Ramp)
	}
}

func TestList(t *testing.T) {
	for _, c := range []ask{
		{"above its start price it opens there", "2", "1", 4, 0, 8, "999.99", "2"},
		{"one micro-credit above, too", "2", "1", 4, 0, 8, "2.000001", "2"},
		{"a full machine opens there, too", "2", "1", 4, 8, 8, "60", "2"},
		{"at its start price it goes below", "2", "1", 4, 0, 8, "2", "1.75"},
		{"below its start price it goes on from what stands", "2", "1", 4, 4, 8, "1.6", "1.475"},
		{"the minimum is the floor", "2", "1", 4, 0, 8, "1.1", "1"},
		{"below its minimum it does not bid", "2", "1", 4, 0, 8, "0.999999", ""},
	} {
		c.check(t, pricing.List)
		c.check(t, "")
	}
}

// The oracle is exact rational arithmetic, written from the formula.
func TestAskAgainstRationals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := rapid.SampledFrom([]pricing.Rule{pricing.List, pricing.Ramp}).Draw(t, "rule")
		band := pricing.Band{
			Min:    protocol.Credits(rapid.Int64Range(1, int64(pricing.MaxPrice)).Draw(t, "min")),
			Rounds: rapid.IntRange(1, map[pricing.Rule]int{pricing.List: pricing.MaxListRounds, pricing.Ramp: pricing.MaxRounds}[rule]).Draw(t, "rounds"),
			Rule:   rule,
		}
		band.Start = protocol.Credits(rapid.Int64Range(int64(band.Min), int64(pricing.MaxPrice)).Draw(t, "start"))
		capacity := rapid.IntRange(1, protocol.MaxCores).Draw(t, "capacity")
		busy := rapid.IntRange(-10, capacity+10).Draw(t, "busy")
		standing := protocol.Credits(rapid.Int64Range(1, int64(protocol.MaxCredits)).Draw(t, "standing"))
		if err := band.Validate(); err != nil {
			t.Fatal(err)
		}
		got, bids := band.Ask(standing, pricing.Load{Busy: busy, Capacity: capacity})
		if bids != (standing >= band.Min) {
			t.Fatalf("bids %v at %s with minimum %s", bids, standing, band.Min)
		}
		if bids && got != oracle(band, standing, busy, capacity) {
			t.Fatalf("asks %s, oracle %s", got, oracle(band, standing, busy, capacity))
		}
	})
}

func oracle(b pricing.Band, standing protocol.Credits, busy, capacity int) protocol.Credits {
	if b.Rule == pricing.List && standing > b.Start {
		return b.Start
	}
	l := big.NewRat(int64(busy), int64(capacity))
	if l.Sign() < 0 {
		l = new(big.Rat)
	}
	one := big.NewRat(1, 1)
	if l.Cmp(one) > 0 {
		l = one
	}
	d := new(big.Rat).SetInt64(int64(b.Start - b.Min))
	d.Mul(d, new(big.Rat).Sub(one, l))
	d.Quo(d, big.NewRat(int64(b.Rounds), 1))
	// Half away from zero: floor(2d+1 / 2) for d >= 0.
	d.Add(d, big.NewRat(1, 2))
	rounded := new(big.Int).Quo(d.Num(), d.Denom())
	o := new(big.Int).Sub(big.NewInt(int64(standing)), rounded)
	if o.Cmp(big.NewInt(int64(b.Min))) < 0 {
		return b.Min
	}
	return protocol.Credits(o.Int64())
}

func TestBandValidate(t *testing.T) {
	for _, c := range []struct {
		name string
		band pricing.Band
	}{
		{"no minimum", pricing.Band{Start: 1, Rounds: 4}},
		{"negative minimum", pricing.Band{Start: 1, Min: -1, Rounds: 4}},
		{"start below minimum", pricing.Band{Start: 1, Min: 2, Rounds: 4}},
		{"start too high", pricing.Band{Start: pricing.MaxPrice + 1, Min: 2, Rounds: 4}},
		{"no rounds", pricing.Band{Start: 2, Min: 1}},
		{"another rule", pricing.Band{Start: 2, Min: 1, Rounds: 4, Rule: "vickrey"}},
		{"too many rounds", pricing.Band{Start: 2, Min: 1, Rounds: pricing.MaxRounds + 1, Rule: pricing.Ramp}},
		{"more rounds than bidding has", pricing.Band{Start: 2, Min: 1, Rounds: pricing.MaxListRounds + 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.band.Validate() == nil {
				t.Fatalf("%+v is accepted", c.band)
			}
		})
	}
}

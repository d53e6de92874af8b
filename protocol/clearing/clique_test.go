package clearing

import (
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/protocol"
)

func cliqueMinute(n int) time.Time { return time.Unix(0, 0).UTC().Add(time.Duration(n) * time.Minute) }

// drawShared draws offers of two sellers with joint cores, of one or two units each.
func drawShared(t *rapid.T) Problem {
	p := Problem{Units: 4, Capacity: map[protocol.AgentID][]protocol.Span{}}
	number := func(from, to int, what string) int { return rapid.IntRange(from, to).Draw(t, what) }
	for k := range 2 {
		seller := protocol.AgentID(fmt.Sprintf("s%d@aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", k))
		p.Capacity[seller] = []protocol.Span{
			{Start: cliqueMinute(0), End: cliqueMinute(6), Cores: number(4, 10, "joint")},
			{Start: cliqueMinute(4), End: cliqueMinute(9), Cores: number(4, 10, "joint")},
		}
		for i := range number(2, 8, "offers") {
			b := Bid{Bid: protocol.Bid{Seller: seller, Offer: protocol.Offer{ID: fmt.Sprint(i), Cost: protocol.Credits(number(1, 9, "cost"))}}, Arrival: i}
			if g := number(0, 3, "group"); g > 0 {
				b.Offer.Group = fmt.Sprint(g)
			}
			first := number(0, 3, "unit")
			for u := first; u <= min(first+number(0, 1, "more"), 3); u++ {
				start := number(0, 8, "start")
				b.Offer.Items = append(b.Offer.Items, protocol.Item{Unit: u, Slot: protocol.Slot{
					Start: cliqueMinute(start), End: cliqueMinute(start + number(1, 4, "length")), Cores: number(1, 4, "cores"),
				}})
			}
			p.Bids = append(p.Bids, b)
		}
	}
	return p
}

func drawRelaxation(t *rapid.T) (Problem, *relaxation) {
	p := drawShared(t)
	m := newModel(&p)
	m = m.part(m.all())
	cv := newCover(m, m.all(), &purse{})
	return p, newRelaxation(&cv, &purse{}, cost, [levels]int64{unlimited, unlimited, unlimited, unlimited})
}

// exclusive looks at every unit and minute.
func exclusive(p Problem, x, y *Bid) bool {
	for _, i := range x.Offer.Items {
		for _, j := range y.Offer.Items {
			if i.Unit == j.Unit {
				return true
			}
		}
	}
	if x.Seller != y.Seller {
		return false
	}
	if x.Offer.Group != "" && x.Offer.Group == y.Offer.Group {
		return true
	}
	for n := range 16 {
		used := 0
		for _, i := range append(append([]protocol.Item(nil), x.Offer.Items...), y.Offer.Items...) {
			if !i.Slot.Start.After(cliqueMinute(n)) && i.Slot.End.After(cliqueMinute(n)) {
				used += i.Slot.Cores
			}
		}
		for _, s := range p.Capacity[x.Seller] {
			if !s.Start.After(cliqueMinute(n)) && s.End.After(cliqueMinute(n)) && used > s.Cores {
				return true
			}
		}
	}
	return false
}

// Offers exclude each other if and only if no set may hold both. A clique has only such offers,
// and every one that fits in; its parts exceed one.
func TestOffersOfACliqueExcludeEachOther(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		p, r := drawRelaxation(t)
		m := r.cover.m
		r.excluded = m.exclude(&purse{})
		for x := range m.offers {
			r.on[x], r.x[x] = true, rapid.SampledFrom([]float64{0, 0.3, 0.5, 0.7, 1}).Draw(t, "part")
			for y := range m.offers {
				if want := x != y && exclusive(p, m.offers[x].bid, m.offers[y].bid); want != (r.excluded[x].Bit(y) == 1) {
					t.Fatalf("%+v and %+v exclude each other: %t, want %t", m.offers[x].bid, m.offers[y].bid, !want, want)
				}
			}
		}
		for _, clique := range r.violated() {
			found++
			sum, others := 0.0, new(big.Int).SetBit(new(big.Int), len(m.offers), 1)
			others.Sub(others, big.NewInt(1))
			for i, x := range clique {
				sum += r.x[x]
				others.And(others, r.excluded[x])
				for _, y := range clique[:i] {
					if r.excluded[x].Bit(y) == 0 {
						t.Fatalf("%v: a set may hold %d and %d", clique, x, y)
					}
				}
			}
			if sum < 1+leastViolated || others.Sign() != 0 {
				t.Fatalf("%v: parts of %.2f, others fit in: %v", clique, sum, others)
			}
		}
	})
	if found == 0 {
		t.Fatal("no clique was found")
	}
}

// After cliques have been dropped, the programme has only the others, and offers know their rows.
func TestCliquesWithoutAPriceAreDropped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, r := drawRelaxation(t)
		m := r.cover.m
		var want [][]int
		for n := range rapid.IntRange(1, 6).Draw(t, "cliques") {
			var clique []int
			for b := range m.offers {
				if rapid.Bool().Draw(t, "in") {
					r.put(b, r.cliques+n)
					clique = append(clique, b)
				}
			}
			r.p.Equal, r.p.Right, r.price = append(r.p.Equal, false), append(r.p.Right, 1), append(r.price, int64(-rapid.IntRange(0, 1).Draw(t, "price")))
			if r.price[r.cliques+n] < 0 {
				want = append(want, clique)
			}
		}
		r.dropIdle()
		got := make([][]int, len(r.p.Right)-r.cliques)
		for b, c := range r.p.Columns {
			var rows, parts []int
			for _, e := range c {
				rows = append(rows, e.Row)
				if e.Row >= r.cliques {
					got[e.Row-r.cliques] = append(got[e.Row-r.cliques], b)
				}
			}
			for _, u := range r.parts[b] {
				parts = append(parts, u.row)
			}
			if !slices.Equal(rows, parts) {
				t.Fatalf("offer %d is in %v, its column in %v", b, parts, rows)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || len(r.p.Equal) != len(r.p.Right) {
			t.Fatalf("%v is left, want %v", got, want)
		}
	})
}

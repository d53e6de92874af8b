package lp

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Whatever is switched, marked and returned to, Solve begins with the right reduced costs.
func TestReducedCostsThatAreNotStaleAreRight(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 300 {
		p := assignment(r, 6, 30)
		s := New(p, nil, 0)
		var kept []*Basis
		for range 20 {
			for range 10 {
				s.Switch(r.IntN(s.n), r.IntN(3) > 0)
			}
			if s.Solve(math.Inf(1), math.MaxInt) == Failed {
				t.Fatal("failed")
			}
			if b := s.Mark(); r.IntN(2) == 0 {
				kept = append(kept, b)
			} else {
				kept = append(kept, s.Basis())
			}
			for range r.IntN(3) {
				s.Return(kept[r.IntN(len(kept))])
			}
			s.refresh()
			y := make([]float64, s.m)
			s.Duals(y)
			for j, c := range p.Columns {
				want := p.Costs[j]
				for _, e := range c {
					want -= y[e.Row] * e.Value
				}
				if s.most[j] > 0 && math.Abs(s.d[j]-want) > 1e-6 {
					t.Fatalf("column %d: reduced cost %g, want %g", j, s.d[j], want)
				}
			}
		}
	}
}

// assignment draws columns of some rows, each of which one must cover.
func assignment(r *rand.Rand, m, n int) *Problem {
	p := &Problem{}
	for i := range m {
		p.Equal, p.Right = append(p.Equal, i%3 > 0), append(p.Right, 1)
	}
	for range n {
		var c []Entry
		for _, i := range r.Perm(m)[:1+r.IntN(3)] {
			c = append(c, Entry{i, 1})
		}
		p.Columns, p.Costs = append(p.Columns, c), append(p.Costs, float64(1+r.IntN(20)))
	}
	return p
}

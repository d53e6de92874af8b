package lp_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"ramp/protocol/clearing/lp"
)

// draw makes a small programme of covers.
func draw(r *rand.Rand) *lp.Problem {
	m, n := 1+r.IntN(7), 1+r.IntN(12)
	p := &lp.Problem{}
	for range m {
		p.Equal = append(p.Equal, r.IntN(3) > 0)
		p.Right = append(p.Right, float64(1+r.IntN(2)*r.IntN(2)))
	}
	for range n {
		var c []lp.Entry
		for i := range m {
			if r.IntN(3) == 0 {
				v := 1.0
				if !p.Equal[i] && r.IntN(2) == 0 {
					v = float64(1+r.IntN(8)) / 4
				}
				c = append(c, lp.Entry{Row: i, Value: v})
			}
		}
		p.Columns, p.Costs = append(p.Columns, c), append(p.Costs, float64(r.IntN(20)))
	}
	return p
}

// exact is a tableau of rationals, solved in two phases by Bland's rule: nothing in it is
// shared with the simplex but the meaning of a programme.
type exact struct {
	rows  [][]*big.Rat // the last number of each is its right side
	basis []int
	free  int // columns from here on are artificial
}

// least is the least sum with the columns that are on; false: there is none.
func least(p *lp.Problem, on []bool) (float64, bool) {
	n, m := len(p.Columns), len(p.Right)
	e := &exact{free: n + m + n}
	all := e.free + m
	for i := range m {
		row := zeros(all + 1)
		for j, c := range p.Columns {
			for _, x := range c {
				if x.Row == i && on[j] {
					row[j].SetFloat64(x.Value)
				}
			}
		}
		if !p.Equal[i] {
			row[n+i].SetInt64(1)
		}
		row[e.free+i].SetInt64(1)
		row[all].SetFloat64(p.Right[i])
		e.rows, e.basis = append(e.rows, row), append(e.basis, e.free+i)
	}
	for j := range n {
		row := zeros(all + 1)
		row[j].SetInt64(1)
		row[n+m+j].SetInt64(1)
		row[all].SetInt64(1)
		e.rows, e.basis = append(e.rows, row), append(e.basis, n+m+j)
	}
	costs := zeros(all)
	for k := e.free; k < all; k++ {
		costs[k].SetInt64(1)
	}
	if e.minimise(costs, all).Sign() > 0 {
		return 0, false
	}
	costs = zeros(all)
	for j, c := range p.Costs {
		costs[j].SetFloat64(c)
	}
	for k := e.free; k < all; k++ {
		costs[k].SetInt64(1_000_000) // those left in the basis stay zero
	}
	v, _ := e.minimise(costs, e.free).Float64()
	return v, true
}

func zeros(n int) []*big.Rat {
	row := make([]*big.Rat, n)
	for i := range row {
		row[i] = new(big.Rat)
	}
	return row
}

// minimise pivots until no column before most reduces the sum, and returns it.
func (e *exact) minimise(costs []*big.Rat, most int) *big.Rat {
	for {
		in := -1
		for j := 0; j < most && in < 0; j++ {
			d := new(big.Rat).Set(costs[j])
			for i, b := range e.basis {
				d.Sub(d, new(big.Rat).Mul(costs[b], e.rows[i][j]))
			}
			if d.Sign() < 0 {
				in = j
			}
		}
		if in < 0 {
			break
		}
		out, last := -1, len(e.rows[0])-1
		var ratio *big.Rat
		for i, row := range e.rows {
			if row[in].Sign() > 0 {
				r := new(big.Rat).Quo(row[last], row[in])
				if out < 0 || r.Cmp(ratio) < 0 || r.Cmp(ratio) == 0 && e.basis[i] < e.basis[out] {
					out, ratio = i, r
				}
			}
		}
		e.pivot(out, in)
	}
	sum := new(big.Rat)
	for i, b := range e.basis {
		sum.Add(sum, new(big.Rat).Mul(costs[b], e.rows[i][len(e.rows[i])-1]))
	}
	return sum
}

func (e *exact) pivot(out, in int) {
	by := new(big.Rat).Inv(e.rows[out][in])
	for _, v := range e.rows[out] {
		v.Mul(v, by)
	}
	for i, row := range e.rows {
		if f := new(big.Rat).Set(row[in]); i != out && f.Sign() != 0 {
			for j := range row {
				row[j].Sub(row[j], new(big.Rat).Mul(f, e.rows[out][j]))
			}
		}
	}
	e.basis[out] = in
}

// bound is what prices of the rows prove of every solution's sum, times scale.
func bound(p *lp.Problem, on []bool, y []float64, scale float64) float64 {
	sum := 0.0
	for i, v := range y {
		if !p.Equal[i] {
			v = min(v, 0)
		}
		sum += v * p.Right[i]
	}
	for j, c := range p.Columns {
		d := scale * p.Costs[j]
		for _, e := range c {
			v := y[e.Row]
			if !p.Equal[e.Row] {
				v = min(v, 0)
			}
			d -= v * e.Value
		}
		if on[j] {
			sum += min(d, 0)
		}
	}
	return sum
}

func TestSolveAgreesWithAnExactSimplex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		p := draw(r)
		s := lp.New(p, nil, 0)
		n := len(p.Columns)
		on, y, x := make([]bool, n), make([]float64, len(p.Right)), make([]float64, n)
		var kept *lp.Basis
		for round := range 12 {
			for j := range on {
				on[j] = round == 0 || r.IntN(4) > 0
				s.Switch(j, on[j])
			}
			want, ok := least(p, on)
			switch got := s.Solve(math.Inf(1), math.MaxInt); {
			case got == lp.Infeasible && !ok:
				if s.Ray(y); bound(p, on, y, 0) <= 1e-6 {
					t.Fatalf("round %d: the ray %v proves nothing", round, y)
				}
			case got == lp.Optimal && ok:
				s.Duals(y)
				s.Values(x)
				if b := bound(p, on, y, 1); math.Abs(b-want) > 1e-6 || math.Abs(s.Objective()-want) > 1e-6 || !solves(p, on, x, want) {
					t.Fatalf("round %d: objective %g, bound %g, want %g", round, s.Objective(), b, want)
				}
			default:
				t.Fatalf("round %d: outcome %d, want a solution: %t", round, got, ok)
			}
			if kept == nil || r.IntN(3) == 0 {
				kept = s.Basis()
				if r.IntN(2) == 0 {
					kept = s.Mark()
				}
			} else if r.IntN(3) == 0 {
				s.Return(kept)
			}
			if r.IntN(6) == 0 { // one of these columns at most: a basis without that row still fits
				kept, y = s.Basis(), append(y, 0)
				for j := range n {
					if r.IntN(2) == 0 {
						p.Columns[j] = append(p.Columns[j], lp.Entry{Row: len(p.Right), Value: 1})
					}
				}
				p.Equal, p.Right = append(p.Equal, false), append(p.Right, 1)
				s = lp.New(p, s, r.IntN(len(p.Right)))
				s.Return(kept)
			}
		}
	})
}

// solves reports whether x is a solution of that sum.
func solves(p *lp.Problem, on []bool, x []float64, want float64) bool {
	sums := make([]float64, len(p.Right))
	for j, c := range p.Columns {
		want -= x[j] * p.Costs[j]
		if x[j] < -1e-6 || x[j] > 1+1e-6 || !on[j] && x[j] > 1e-6 {
			return false
		}
		for _, e := range c {
			sums[e.Row] += x[j] * e.Value
		}
	}
	for i, v := range sums {
		if v > p.Right[i]+1e-6 || p.Equal[i] && v < p.Right[i]-1e-6 {
			return false
		}
	}
	return math.Abs(want) < 1e-6
}

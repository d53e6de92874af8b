// Package lp solves linear programmes of covers: minimise a sum over columns between 0 and 1
// such that every row equals its right side, or does not exceed it.
//
// Simplex is a dual simplex for bounded columns, with steepest edge pricing, flips of bounds
// in the ratio test, and sparse LU factors with product-form updates. A column can be
// switched off and on again; the next Solve starts from the last basis.
//
// The arithmetic is floating point and proves nothing: its duals and rays are
// for exact evaluation by the caller. No two operations are fused, every tie has a rule, and
// nothing depends on the order of a map, so that results are the same on every platform.
package lp

import (
	"math"
	"slices"
)

// Entry is a coefficient of a column.
type Entry struct {
	Row   int
	Value float64
}

// Problem is a linear programme. Costs must not be negative.
type Problem struct {
	Equal   []bool // by row; false: at most
	Right   []float64
	Columns [][]Entry
	Costs   []float64
}

// Outcome is how Solve ended.
type Outcome int

// The outcomes.
const (
	Optimal    Outcome = 1
	Infeasible Outcome = 2 // Ray shows it
	Stopped    Outcome = 3 // the objective reached the cutoff, or the work its limit; the duals give a bound
	Failed     Outcome = 4 // numerically; the duals are useless
)

const (
	feasible  = 1e-9 // how far a column may be outside its bounds
	dualZero  = 1e-9
	leastTurn = 1e-7 // pivot
	relative  = 1e-6 // disagreement of a pivot in its row and its column
	refactor  = 64   // updates between factorisations
	leastEdge = 1e-4
	stepWork  = 1000 // of a step, whatever it touches
)

// mul is x·y, rounded: an explicit conversion keeps the compiler from fusing it with a sum.
func mul(x, y float64) float64 { return float64(x * y) }

// Simplex is a programme with a basis. Variables are its columns, and then a slack for each row.
type Simplex struct {
	p      *Problem
	m, n   int
	rows   [][]Entry // by row: Row is the column
	slacks []Entry   // by row
	basic  [][]Entry // by position: its column

	most  []float64 // by variable: its upper bound, 0 for a column that is off
	head  []int     // by position in the basis: its variable
	place []int     // by variable: its position; -1: nonbasic
	upper []bool    // nonbasic at its upper bound
	x     []float64
	d     []float64 // reduced costs of variables
	edge  []float64 // squared norms of the rows of the inverse
	f     factors
	ray   []float64 // by row

	rho, alpha, column, tau, flip []float64
	touched                       []int   // nonbasic variables with an alpha
	marked                        []mark  // by variable
	norm                          float64 // of rho, squared
	candidates                    []int

	Work int // entries touched so far
}

// New begins with the basis of all slacks. old, which may be nil, was for a problem with the same
// columns in the first rows, as many as same, and is not used any more. What a column has in other
// rows comes last in it.
func New(p *Problem, old *Simplex, same int) *Simplex {
	m, n := len(p.Right), len(p.Columns)
	s := &Simplex{
		p: p, m: m, n: n, rows: make([][]Entry, m), most: make([]float64, n+m), head: make([]int, m), place: make([]int, n+m),
		upper: make([]bool, n+m), x: make([]float64, m), d: make([]float64, n+m), edge: make([]float64, m), ray: make([]float64, m),
		rho: make([]float64, m), alpha: make([]float64, n+m), column: make([]float64, m), tau: make([]float64, m), flip: make([]float64, m), marked: make([]mark, n+m),
	}
	if old != nil {
		copy(s.rows, old.rows[:same])
		s.f = old.f
	}
	for j, c := range p.Columns {
		for k := len(c) - 1; k >= 0 && c[k].Row >= same; k-- {
			s.rows[c[k].Row] = append(s.rows[c[k].Row], Entry{j, c[k].Value})
		}
		s.place[j], s.most[j] = -1, 1
	}
	for i := range m {
		s.head[i], s.place[n+i], s.marked[n+i], s.edge[i] = n+i, i, basic, 1
		s.slacks = append(s.slacks, Entry{i, 1})
		if !p.Equal[i] {
			s.most[n+i] = math.Inf(1)
		}
	}
	s.basic = make([][]Entry, m)
	s.f.begin(m)
	s.reset()
	return s
}

// mark is what cross needs to know of a variable.
type mark byte

const (
	crossed mark = 1 // it has an alpha
	stale   mark = 2 // nonbasic, and its reduced cost unknown: it is off, or was
	basic   mark = 3
)

// Switch sets whether column j may be above zero.
func (s *Simplex) Switch(j int, on bool) {
	if on == (s.most[j] == 0) {
		s.most[j] = 1 - s.most[j]
		s.Work++
		if !on && s.place[j] < 0 {
			s.marked[j] = stale
		}
	}
}

// leave notes that a variable is nonbasic.
func (s *Simplex) leave(v int) {
	s.place[v], s.marked[v] = -1, 0
	if s.most[v] == 0 {
		s.marked[v] = stale
	}
}

// Basis is a state of a Simplex to return to.
type Basis struct {
	head  []int
	upper []bool
	edge  []float64

	x, d         []float64 // of a mark
	marked       []mark
	etas, serial int
}

// Basis returns the current one.
func (s *Simplex) Basis() *Basis {
	s.Work += s.n/8 + s.m
	return &Basis{head: slices.Clone(s.head), upper: slices.Clone(s.upper), edge: slices.Clone(s.edge)}
}

// Mark is like Basis. It takes more memory, but Return is fast while the basis is near.
func (s *Simplex) Mark() *Basis {
	b := s.Basis()
	b.x, b.d, b.marked = slices.Clone(s.x), slices.Clone(s.d), slices.Clone(s.marked)
	b.etas, b.serial = len(s.f.etas), s.f.last()
	s.Work += s.n/4 + s.m/4
	return b
}

// Return goes back to b, which may be of a programme without the last rows of this one.
func (s *Simplex) Return(b *Basis) {
	for _, v := range s.head {
		s.leave(v)
	}
	copy(s.head, b.head)
	copy(s.upper, b.upper)
	copy(s.edge, b.edge)
	for i := len(b.head); i < s.m; i++ {
		s.head[i], s.upper[s.n+i], s.edge[i] = s.n+i, false, 1
	}
	for i, v := range s.head {
		s.place[v], s.marked[v] = i, basic
	}
	s.Work += s.n/8 + s.m
	if b.x == nil || !s.f.truncate(b.etas, b.serial) {
		s.reset()
		return
	}
	copy(s.x, b.x)
	copy(s.d, b.d)
	copy(s.marked, b.marked)
	s.Work += s.n/4 + s.m/4
}

// Values fills x with the values of the columns.
func (s *Simplex) Values(x []float64) {
	for j := range x {
		switch {
		case s.place[j] >= 0:
			x[j] = s.x[s.place[j]]
		case s.upper[j] && s.most[j] > 0:
			x[j] = 1
		default:
			x[j] = 0
		}
	}
}

// Objective is the sum at the current basis; once Solve has begun, every solution costs at
// least as much, but for rounding.
func (s *Simplex) Objective() float64 {
	sum := 0.0
	for i, v := range s.head {
		if v < s.n {
			sum += mul(s.p.Costs[v], s.x[i])
		}
	}
	for j := range s.n {
		if s.upper[j] && s.place[j] < 0 && s.most[j] > 0 {
			sum += s.p.Costs[j]
		}
	}
	s.Work += s.n/4 + s.m
	return sum
}

// Duals fills y with the prices of the rows.
func (s *Simplex) Duals(y []float64) {
	for i, v := range s.head {
		y[i] = 0
		if v < s.n {
			y[i] = s.p.Costs[v]
		}
	}
	s.Work += s.f.transposed(y)
}

// Ray fills y with prices by which the rows contradict each other, after Infeasible.
func (s *Simplex) Ray(y []float64) { copy(y, s.ray) }

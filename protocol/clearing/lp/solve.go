package lp

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// Solve looks for the least sum, until the objective exceeds the cutoff or Work the limit.
func (s *Simplex) Solve(cutoff float64, limit int) Outcome {
	if !s.restart() {
		return Failed
	}
	for tries := 0; ; {
		if len(s.f.etas) >= refactor && !s.reset() {
			return Failed
		}
		r := s.leaving()
		if r < 0 {
			return s.confirm(&tries)
		}
		if s.Work >= limit || len(s.f.etas)%8 == 7 && s.Objective() > cutoff {
			return Stopped
		}
		switch s.iterate(r) {
		case Optimal: // one step
		case Infeasible:
			return Infeasible
		default:
			if tries++; tries > 20 || !s.reset() {
				return Failed
			}
		}
	}
}

// confirm computes everything anew, and reports whether the basis is still optimal.
func (s *Simplex) confirm(tries *int) Outcome {
	if len(s.f.etas) == 0 {
		return Optimal
	}
	s.fill()
	if s.leaving() < 0 {
		return Optimal
	}
	if *tries++; *tries > 20 || !s.reset() {
		return Failed
	}
	return s.Solve(math.Inf(1), s.Work+1<<20)
}

// restart makes the basis fit the columns that are on: nonbasic ones go to the bound
// that their reduced cost asks for.
func (s *Simplex) restart() bool {
	if len(s.f.pivots) < s.m && !s.reset() {
		return false
	}
	s.refresh()
	s.bound()
	s.fill()
	return true
}

// refresh computes reduced costs if those of a column that is on are stale.
func (s *Simplex) refresh() {
	for j := range s.n {
		if s.marked[j] == stale && s.most[j] > 0 {
			s.price()
			return
		}
	}
}

// bound puts nonbasic columns to a bound at which their reduced cost is right.
func (s *Simplex) bound() {
	for j := range s.n {
		s.upper[j] = s.d[j] < 0 && s.place[j] < 0 && s.most[j] > 0 && (s.upper[j] || s.d[j] < -dualZero)
	}
	s.Work += s.n / 4
}

// reset factorises the basis, and computes values and reduced costs. If the basis has become
// singular, it begins again with the slacks.
func (s *Simplex) reset() bool {
	for range 2 {
		for i, v := range s.head {
			s.basic[i] = s.columnOf(v)
		}
		work, ok := s.f.factor(s.basic)
		s.Work += work
		if ok {
			s.price()
			s.bound()
			s.fill()
			return true
		}
		for v := range s.place {
			s.leave(v)
			s.upper[v] = false
		}
		for i := range s.head {
			s.head[i], s.place[s.n+i], s.marked[s.n+i], s.edge[i] = s.n+i, i, basic, 1
		}
	}
	return false
}

func (s *Simplex) columnOf(v int) []Entry {
	if v < s.n {
		return s.p.Columns[v]
	}
	return s.slacks[v-s.n : v-s.n+1]
}

func (s *Simplex) price() {
	y := s.rho
	s.Duals(y)
	for j, c := range s.p.Columns {
		if s.place[j] >= 0 {
			continue
		}
		if s.marked[j] = stale; s.most[j] > 0 {
			d := s.p.Costs[j]
			for _, e := range c {
				d -= mul(y[e.Row], e.Value)
			}
			s.d[j], s.marked[j] = d, 0
			s.Work += len(c)
		}
	}
	for i := range s.m {
		s.d[s.n+i] = -y[i]
	}
	for _, v := range s.head {
		s.d[v] = 0
	}
	s.Work += 2*s.n + s.m
}

// fill computes the values of the basis.
func (s *Simplex) fill() {
	copy(s.x, s.p.Right)
	for j := range s.n {
		if s.upper[j] && s.place[j] < 0 {
			for _, e := range s.p.Columns[j] {
				s.x[e.Row] -= e.Value
			}
			s.Work += len(s.p.Columns[j])
		}
	}
	s.Work += s.f.solve(s.x) + s.n/8
}

// beyond is by how far the variable at a position is outside its bounds; negative: below.
func (s *Simplex) beyond(i int) float64 {
	x := s.x[i]
	if x > feasible {
		x = max(x-s.most[s.head[i]], 0)
	}
	if math.Abs(x) <= feasible {
		return 0
	}
	return x
}

// leaving is the position whose row promises the steepest step; -1 if all are within their bounds.
func (s *Simplex) leaving() int {
	best, most := -1, 0.0
	for i := range s.x {
		b := s.beyond(i)
		if b == 0 {
			continue
		}
		if v := mul(b, b) / s.edge[i]; v > most {
			best, most = i, v
		}
	}
	s.Work += 2 * s.m
	return best
}

// iterate exchanges the variable at position r. It returns Optimal for a step, Infeasible or
// Failed.
func (s *Simplex) iterate(r int) Outcome {
	over := s.beyond(r)
	clear(s.rho)
	s.rho[r] = 1
	s.Work += stepWork + s.f.transposed(s.rho)
	s.cross()
	q := s.entering(over)
	if q < 0 {
		for i, v := range s.rho {
			s.ray[i] = v
			if over < 0 {
				s.ray[i] = -v
			}
		}
		s.unturn()
		return Infeasible
	}
	clear(s.column)
	for _, e := range s.columnOf(q) {
		s.column[e.Row] = e.Value
	}
	s.Work += s.f.solve(s.column)
	if math.Abs(s.column[r]-s.alpha[q]) > mul(relative, 1+math.Abs(s.column[r])) || math.Abs(s.column[r]) < leastTurn {
		s.unturn()
		return Failed
	}
	s.flipAll(q)
	s.step(r, q, over > 0)
	return Optimal
}

// cross computes the row of rho over the nonbasic variables into alpha, and its norm.
func (s *Simplex) cross() {
	s.norm = 0
	for i, v := range s.rho {
		if math.Abs(v) < 1e-14 {
			s.rho[i] = 0
			continue
		}
		s.norm += mul(v, v)
		for _, e := range s.rows[i] {
			j := e.Row
			if s.marked[j] > crossed {
				continue
			}
			if s.marked[j] == 0 {
				s.touched, s.marked[j] = append(s.touched, j), crossed
			}
			s.alpha[j] += mul(v, e.Value)
		}
		s.Work += len(s.rows[i])
		if j := s.n + i; s.marked[j] == 0 {
			s.touched, s.marked[j] = append(s.touched, j), crossed
			s.alpha[j] = v
		}
	}
	s.Work += s.m
}

// unturn forgets alpha.
func (s *Simplex) unturn() {
	for _, j := range s.touched {
		s.alpha[j], s.marked[j] = 0, 0
	}
	s.touched = s.touched[:0]
}

// entering chooses the variable to enter: reduced costs keep their signs, but for those of
// columns that go to their other bound while the sum still rises (candidates before the
// result). It returns -1 if there is none.
func (s *Simplex) entering(over float64) int {
	list := s.candidates[:0]
	for _, j := range s.touched {
		a := s.alpha[j]
		if over < 0 {
			a = -a
		}
		if a > 0 != s.upper[j] && math.Abs(a) > dualZero && s.most[j] > 0 {
			list = append(list, j)
		}
	}
	slope := math.Abs(over)
	at := 0
	for ; at < len(list); at++ {
		s.bringNext(list, at)
		slope -= mul(math.Abs(s.alpha[list[at]]), s.most[list[at]])
		if slope <= feasible {
			break
		}
	}
	s.candidates = list
	if at == len(list) {
		s.candidates = list[:0]
		return -1
	}
	// Of those that follow at almost the same ratio, the largest pivot; ties to the smaller.
	best, least := at, s.ratio(list[at])+dualZero
	for k := at + 1; k < len(list); k++ {
		if s.ratio(list[k]) <= least && cmp.Or(cmp.Compare(math.Abs(s.alpha[list[best]]), math.Abs(s.alpha[list[k]])), cmp.Compare(list[k], list[best])) < 0 {
			best = k
		}
	}
	s.Work += 2 * len(list)
	q := list[best]
	if math.Abs(s.alpha[q]) < leastTurn {
		return s.steadier(list, at)
	}
	s.candidates = list[:at]
	return q
}

// ratio is how far the prices can move until j's reduced cost is zero.
func (s *Simplex) ratio(j int) float64 { return math.Abs(s.d[j] / s.alpha[j]) }

// selections is how many candidates are selected one by one before the rest is sorted.
const selections = 6

// bringNext puts the candidate of the least ratio among those from at on there; of equals,
// the smaller.
func (s *Simplex) bringNext(list []int, at int) {
	rest := list[at:]
	switch {
	case at < selections:
		least := 0
		for k := range rest {
			if s.order(rest[k], rest[least]) < 0 {
				least = k
			}
		}
		rest[0], rest[least] = rest[least], rest[0]
		s.Work += len(rest)
	case at == selections:
		slices.SortFunc(rest, s.order)
		s.Work += 4 * len(rest) * bits.Len(uint(len(rest)))
	}
}

// order is the one in which candidates are brought.
func (s *Simplex) order(x, y int) int {
	return cmp.Or(cmp.Compare(s.ratio(x), s.ratio(y)), cmp.Compare(x, y))
}

// steadier looks back from a pivot that is too small for the last one that is not.
func (s *Simplex) steadier(list []int, at int) int {
	for k := at - 1; k >= 0; k-- {
		if math.Abs(s.alpha[list[k]]) >= leastTurn {
			s.candidates = list[:k]
			return list[k]
		}
	}
	s.candidates = list[:at]
	return list[at]
}

// flipAll moves the candidates that come before q to their other bound.
func (s *Simplex) flipAll(q int) {
	moved := false
	for _, j := range s.candidates {
		if j == q {
			continue
		}
		by := 1.0
		if s.upper[j] {
			by = -1
		}
		s.upper[j] = !s.upper[j]
		for _, e := range s.p.Columns[j] {
			s.flip[e.Row] += mul(by, e.Value)
		}
		s.Work += len(s.p.Columns[j])
		moved = true
	}
	if !moved {
		return
	}
	s.Work += s.f.solve(s.flip)
	for i, v := range s.flip {
		s.x[i] -= v
		s.flip[i] = 0
	}
}

// step exchanges the variable at position r, which goes to its upper bound or to zero, for q.
func (s *Simplex) step(r, q int, upper bool) {
	theta := s.d[q] / s.alpha[q]
	for _, j := range s.touched {
		s.d[j] -= mul(theta, s.alpha[j])
	}
	s.unturn()
	out := s.head[r]
	s.d[out], s.d[q] = -theta, 0
	target := 0.0
	if upper {
		target = s.most[out]
	}
	s.upper[out] = target == 1
	s.change(r, (s.x[r]-target)/s.column[r])
	if s.upper[q] {
		s.x[r]++
	}
	s.upper[q] = false
	s.leave(out)
	s.head[r], s.place[q], s.marked[q] = q, r, basic
	s.Work += 2 * s.m
}

// change puts by times the column into the basis at r: it updates the factors, the values, and
// the norms of the inverse's rows.
func (s *Simplex) change(r int, by float64) {
	copy(s.tau, s.rho) // by row
	s.Work += s.f.solve(s.tau) + 2*s.m
	turn := s.column[r]
	for _, e := range s.f.replace(r, s.column) {
		i, k := e.Row, e.Value/turn
		s.x[i] -= mul(by, e.Value)
		s.edge[i] = max(s.edge[i]-mul(mul(2, k), s.tau[i])+mul(mul(k, k), s.norm), leastEdge)
	}
	s.x[r], s.edge[r] = by, max(s.norm/mul(turn, turn), leastEdge)
}

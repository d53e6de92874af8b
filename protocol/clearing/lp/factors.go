package lp

import (
	"cmp"
	"math"
	"slices"
)

// factors are sparse LU factors of a basis, and the updates since.
type factors struct {
	m      int
	pivots []pivot
	work   []float64
	etas   []eta
}

// pivot is a step of the elimination.
type pivot struct {
	row, at int     // at is the position of its column in the basis
	value   float64 // on the diagonal
	upper   []Entry // by row of an earlier pivot
	lower   []Entry // by row, multipliers
}

// eta replaces the column at a position.
type eta struct {
	at     int
	value  float64
	others []Entry // by position
}

func (f *factors) begin(m int) { *f = factors{m: m, work: make([]float64, m)} }

// factor factorises the columns, by position. It reports failure if they are singular.
func (f *factors) factor(columns [][]Entry) (work int, ok bool) {
	f.etas, f.pivots = f.etas[:0], f.pivots[:0]
	e := newElimination(f.m, columns)
	for _, at := range e.order {
		if !f.eliminate(columns[at], at, e) {
			return e.work, false
		}
	}
	return e.work, true
}

// elimination knows the order in which columns are eliminated, and the rows of those that
// need no choice of a pivot.
type elimination struct {
	order  []int
	row    []int  // by position; -1: to be chosen
	done   []bool // by row
	counts []int  // by row: columns left
	work   int
}

// newElimination takes columns with one row left first, then rows with one column left, and
// then the columns with the fewest rows.
func newElimination(m int, columns [][]Entry) *elimination {
	e := &elimination{row: make([]int, m), done: make([]bool, m), counts: make([]int, m)}
	byRow, left := make([][]int, m), make([]int, m) // left: by position, rows
	var queue []int
	for at, c := range columns {
		e.row[at], left[at] = -1, len(c)
		for _, x := range c {
			byRow[x.Row] = append(byRow[x.Row], at)
			e.counts[x.Row]++
		}
		e.work += len(c)
		if len(c) == 1 {
			queue = append(queue, at)
		}
	}
	take := func(at, r int) {
		e.order, e.row[at], e.done[r] = append(e.order, at), r, true
		for _, x := range columns[at] {
			e.counts[x.Row]--
		}
	}
	for k := 0; k < len(queue); k++ {
		at := queue[k]
		r := openRow(columns[at], e.done)
		if r < 0 {
			continue // another column took its row: singular
		}
		take(at, r)
		for _, c := range byRow[r] {
			if left[c]--; left[c] == 1 && e.row[c] < 0 {
				queue = append(queue, c)
			}
		}
		e.work += len(byRow[r])
	}
	e.rowSingletons(columns, byRow, take)
	var rest []int
	for at := range columns {
		if e.row[at] < 0 {
			rest = append(rest, at)
		}
	}
	slices.SortStableFunc(rest, func(x, y int) int { return cmp.Compare(left[x], left[y]) })
	e.order = append(e.order, rest...)
	return e
}

func (e *elimination) rowSingletons(columns [][]Entry, byRow [][]int, take func(at, row int)) {
	var queue []int
	for r := range byRow {
		if e.counts[r] == 1 && !e.done[r] {
			queue = append(queue, r)
		}
	}
	for k := 0; k < len(queue); k++ {
		r := queue[k]
		if e.done[r] || e.counts[r] != 1 {
			continue
		}
		at := slices.IndexFunc(byRow[r], func(c int) bool { return e.row[c] < 0 })
		at = byRow[r][at]
		take(at, r)
		for _, x := range columns[at] {
			if e.counts[x.Row] == 1 && !e.done[x.Row] {
				queue = append(queue, x.Row)
			}
		}
		e.work += len(byRow[r])
	}
}

func openRow(c []Entry, done []bool) int {
	for _, x := range c {
		if !done[x.Row] {
			return x.Row
		}
	}
	return -1
}

// eliminate adds the pivot of one column.
func (f *factors) eliminate(column []Entry, at int, e *elimination) bool {
	w := f.work
	for _, x := range column {
		w[x.Row] = x.Value
	}
	p := pivot{at: at, row: e.row[at]}
	for i := range f.pivots {
		q := &f.pivots[i]
		v := w[q.row]
		if v == 0 {
			continue
		}
		w[q.row] = 0
		p.upper = append(p.upper, Entry{q.row, v})
		for _, x := range q.lower {
			w[x.Row] -= mul(x.Value, v)
		}
		e.work += len(q.lower)
	}
	e.work += len(f.pivots) / 4
	if p.row < 0 {
		p.row = choosePivot(w, e)
	}
	if p.row >= 0 && math.Abs(w[p.row]) > leastTurn {
		p.value = w[p.row]
	}
	for r, v := range w {
		if v != 0 && r != p.row && p.value != 0 && math.Abs(v) > 1e-14 {
			p.lower = append(p.lower, Entry{r, v / p.value})
		}
		w[r] = 0
	}
	e.work += f.m / 4
	if p.value == 0 {
		return false
	}
	e.done[p.row] = true
	f.pivots = append(f.pivots, p)
	return true
}

// choosePivot takes the row with the fewest columns left among those whose value is at least
// a tenth of the largest.
func choosePivot(w []float64, e *elimination) int {
	largest := 0.0
	for r, v := range w {
		if !e.done[r] {
			largest = max(largest, math.Abs(v))
		}
	}
	best := -1
	for r, v := range w {
		if v == 0 || e.done[r] || math.Abs(v) < mul(largest, 0.1) {
			continue
		}
		if best < 0 || e.counts[r] < e.counts[best] {
			best = r
		}
	}
	return best
}

// solve turns x, by row, into the solution of B·y = x, by position.
func (f *factors) solve(x []float64) (work int) {
	for i := range f.pivots {
		p := &f.pivots[i]
		if v := x[p.row]; v != 0 && len(p.lower) > 0 {
			for _, e := range p.lower {
				x[e.Row] -= mul(e.Value, v)
			}
			work += len(p.lower)
		}
	}
	for i := len(f.pivots) - 1; i >= 0; i-- {
		p := &f.pivots[i]
		v := x[p.row]
		if v == 0 {
			f.work[p.at] = 0
			continue
		}
		v /= p.value
		for _, e := range p.upper {
			x[e.Row] -= mul(e.Value, v)
		}
		work += len(p.upper)
		f.work[p.at] = v
	}
	copy(x, f.work)
	clear(f.work)
	for i := range f.etas {
		e := &f.etas[i]
		if x[e.at] == 0 {
			continue
		}
		t := x[e.at] / e.value
		for _, o := range e.others {
			x[o.Row] -= mul(o.Value, t)
		}
		x[e.at] = t
		work += len(e.others)
	}
	return work + f.m/2 + len(f.etas)
}

// transposed turns x, by position, into the solution of y·B = x, by row.
func (f *factors) transposed(x []float64) (work int) {
	for i := len(f.etas) - 1; i >= 0; i-- {
		e := &f.etas[i]
		sum := x[e.at]
		for _, o := range e.others {
			sum -= mul(o.Value, x[o.Row])
		}
		x[e.at] = sum / e.value
		work += len(e.others)
	}
	w := f.work
	for i := range f.pivots {
		p := &f.pivots[i]
		sum := x[p.at]
		for _, e := range p.upper {
			sum -= mul(e.Value, w[e.Row])
		}
		w[p.row] = sum / p.value
		work += len(p.upper)
	}
	for i := len(f.pivots) - 1; i >= 0; i-- {
		p := &f.pivots[i]
		if len(p.lower) == 0 {
			continue
		}
		sum := w[p.row]
		for _, e := range p.lower {
			sum -= mul(e.Value, w[e.Row])
		}
		w[p.row] = sum
		work += len(p.lower)
	}
	copy(x, w)
	clear(w)
	return work + f.m/2 + len(f.etas)
}

// replace puts the column whose solution is given at a position.
func (f *factors) replace(at int, column []float64) {
	e := eta{at: at, value: column[at]}
	for i, v := range column {
		if i != at && math.Abs(v) > 1e-14 {
			e.others = append(e.others, Entry{i, v})
		}
	}
	f.etas = append(f.etas, e)
}

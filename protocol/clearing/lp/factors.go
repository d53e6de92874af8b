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
	upper  []int // pivots with an upper part or a value other than 1
	lower  []int // pivots with a lower part
	rows   []int // by position: of its pivot
	work   []float64
	etas   []eta
	serial int // of the last factorisation or update
	begun  int // of the last factorisation
	order  elimination

	entries []Entry // of all pivots
	changes []Entry // of all etas
}

// pivot is a step of the elimination.
type pivot struct {
	value             float64 // on the diagonal
	row, at           int32   // at is the position of its column in the basis
	begin, middle, to int32   // in entries: rows of earlier pivots, and then, from the middle, multipliers by row
}

// eta replaces the column at a position.
type eta struct {
	at     int
	value  float64
	others []Entry // by position
	serial int
}

// last is the serial number of the newest part of the factors.
func (f *factors) last() int {
	if len(f.etas) > 0 {
		return f.etas[len(f.etas)-1].serial
	}
	return f.begun
}

// truncate forgets the updates after the first n, and reports whether that leaves what had
// this serial number.
func (f *factors) truncate(n, serial int) bool {
	if n > len(f.etas) || n > 0 && f.etas[n-1].serial != serial || n == 0 && f.begun != serial {
		return false
	}
	f.etas = f.etas[:n]
	return true
}

// begin takes another number of rows. Its serial numbers go on, so that no older mark fits.
func (f *factors) begin(m int) {
	f.m, f.work, f.rows, f.order = m, make([]float64, m), make([]int, m), elimination{
		row: make([]int, m), done: make([]bool, m), counts: make([]int, m), left: make([]int, m), first: make([]int, m+1), filled: make([]bool, m),
	}
}

// factor factorises the columns, by position. It reports failure if they are singular.
func (f *factors) factor(columns [][]Entry) (work int, ok bool) {
	f.etas, f.pivots, f.upper, f.lower = f.etas[:0], f.pivots[:0], f.upper[:0], f.lower[:0]
	f.entries, f.changes = f.entries[:0], f.changes[:0]
	f.serial++
	f.begun = f.serial
	e := &f.order
	e.begin(columns)
	for _, at := range e.order {
		f.simple(columns[at], at)
	}
	for _, at := range e.rest {
		if !f.eliminate(columns[at], at) {
			return e.work, false
		}
	}
	return e.work + 6*f.m, len(f.pivots) == f.m
}

// elimination knows the order in which columns are eliminated, and the rows of those that
// need no choice of a pivot.
type elimination struct {
	order   []int // columns with a row of their own
	rest    []int // the others
	row     []int // by position; -1: to be chosen
	done    []bool
	counts  []int // by row: columns left
	left    []int // by position: rows left
	byRow   []int // positions, row by row,
	first   []int // from here on
	queue   []int
	filled  []bool // by row, within eliminate
	nonzero []int
	work    int
}

// begin takes columns with one row left first, then rows with one column left, and then the
// columns with the fewest rows.
func (e *elimination) begin(columns [][]Entry) {
	e.order, e.rest, e.queue, e.work = e.order[:0], e.rest[:0], e.queue[:0], 0
	clear(e.done)
	clear(e.filled)
	clear(e.counts)
	for at, c := range columns {
		e.row[at], e.left[at] = -1, len(c)
		for _, x := range c {
			e.counts[x.Row]++
		}
		e.work += len(c)
		if len(c) == 1 {
			e.queue = append(e.queue, at)
		}
	}
	e.index(columns)
	for k := 0; k < len(e.queue); k++ {
		at := e.queue[k]
		open := slices.IndexFunc(columns[at], func(x Entry) bool { return !e.done[x.Row] })
		if open < 0 {
			continue // another column took its row: singular
		}
		r := columns[at][open].Row
		e.take(columns, at, r)
		for _, c := range e.byRow[e.first[r]:e.first[r+1]] {
			if e.left[c]--; e.left[c] == 1 && e.row[c] < 0 {
				e.queue = append(e.queue, c)
			}
		}
	}
	e.rowSingletons(columns)
	for at := range columns {
		if e.row[at] < 0 {
			e.rest = append(e.rest, at)
		}
	}
	slices.SortStableFunc(e.rest, func(x, y int) int { return cmp.Compare(e.left[x], e.left[y]) })
}

func (e *elimination) index(columns [][]Entry) {
	sum := 0
	for r, n := range e.counts {
		e.first[r] = sum
		sum += n
	}
	e.first[len(e.counts)] = sum
	e.byRow = slices.Grow(e.byRow[:0], sum)[:sum]
	for at := len(columns) - 1; at >= 0; at-- { // from the last, so that first ends as it began
		for _, x := range columns[at] {
			e.first[x.Row+1]--
			e.byRow[e.first[x.Row+1]] = at
		}
	}
	copy(e.first, e.first[1:])
	e.first[len(e.counts)] = sum
	e.work += sum
}

func (e *elimination) take(columns [][]Entry, at, r int) {
	e.order, e.row[at], e.done[r] = append(e.order, at), r, true
	for _, x := range columns[at] {
		e.counts[x.Row]--
	}
	e.work += len(columns[at])
}

func (e *elimination) rowSingletons(columns [][]Entry) {
	queue := e.queue[:0]
	for r, n := range e.counts {
		if n == 1 && !e.done[r] {
			queue = append(queue, r)
		}
	}
	for k := 0; k < len(queue); k++ {
		r := queue[k]
		if e.done[r] || e.counts[r] != 1 {
			continue
		}
		list := e.byRow[e.first[r]:e.first[r+1]]
		at := list[slices.IndexFunc(list, func(c int) bool { return e.row[c] < 0 })]
		e.work += len(list)
		e.take(columns, at, r)
		for _, x := range columns[at] {
			if e.counts[x.Row] == 1 && !e.done[x.Row] {
				queue = append(queue, x.Row)
			}
		}
	}
	e.queue = queue
}

// simple adds a pivot whose column no earlier pivot changes: that of a row or column with
// nothing else left.
func (f *factors) simple(column []Entry, at int) {
	row, value := f.order.row[at], 0.0
	begin := len(f.entries)
	for _, x := range column {
		switch {
		case x.Row == row:
			value = x.Value
		case f.order.filled[x.Row]:
			f.entries = append(f.entries, x)
		}
	}
	middle := len(f.entries)
	for _, x := range column {
		if x.Row != row && !f.order.filled[x.Row] {
			f.entries = append(f.entries, Entry{x.Row, x.Value / value})
		}
	}
	f.add(row, at, value, begin, middle)
}

// add appends a pivot of the last entries; filled marks the rows of all pivots.
func (f *factors) add(row, at int, value float64, begin, middle int) {
	if begin < middle || value != 1 {
		f.upper = append(f.upper, len(f.pivots))
	}
	if middle < len(f.entries) {
		f.lower = append(f.lower, len(f.pivots))
	}
	f.order.filled[row], f.rows[at] = true, row
	f.pivots = append(f.pivots, pivot{value, int32(row), int32(at), int32(begin), int32(middle), int32(len(f.entries))})
}

// eliminate adds the pivot of a column that earlier ones of its kind change.
func (f *factors) eliminate(column []Entry, at int) bool {
	w, e := f.work, &f.order
	begin := len(f.entries)
	e.nonzero = e.nonzero[:0]
	for _, x := range column {
		if e.filled[x.Row] && e.done[x.Row] {
			f.entries = append(f.entries, x)
			continue
		}
		w[x.Row] = x.Value
		e.nonzero = append(e.nonzero, x.Row)
	}
	for i := len(e.order); i < len(f.pivots); i++ {
		q := &f.pivots[i]
		v := w[q.row]
		if v == 0 {
			continue
		}
		w[q.row] = 0
		f.entries = append(f.entries, Entry{int(q.row), v})
		lower := f.entries[q.middle:q.to]
		for _, x := range lower {
			if w[x.Row] == 0 {
				e.nonzero = append(e.nonzero, x.Row)
			}
			w[x.Row] -= mul(x.Value, v)
		}
		e.work += len(lower)
	}
	row, value, middle := e.choosePivot(w), 0.0, len(f.entries)
	if row >= 0 && math.Abs(w[row]) > leastTurn {
		value = w[row]
	}
	for _, r := range e.nonzero {
		if v := w[r]; r != row && value != 0 && math.Abs(v) > 1e-14 {
			f.entries = append(f.entries, Entry{r, v / value})
		}
		w[r] = 0
	}
	e.work += len(e.nonzero) + (len(f.pivots)-len(e.order))/2
	if value != 0 {
		f.add(row, at, value, begin, middle)
	}
	return value != 0
}

// choosePivot takes the row with the fewest columns left among those whose value is at least
// a tenth of the largest; -1: there is none.
func (e *elimination) choosePivot(w []float64) int {
	largest := 0.0
	for _, r := range e.nonzero {
		largest = max(largest, math.Abs(w[r]))
	}
	best := -1
	for _, r := range e.nonzero {
		if w[r] == 0 || math.Abs(w[r]) < mul(largest, 0.1) {
			continue
		}
		if best < 0 || e.counts[r] < e.counts[best] || e.counts[r] == e.counts[best] && r < best {
			best = r
		}
	}
	return best
}

// solve turns x, by row, into the solution of B·y = x, by position.
func (f *factors) solve(x []float64) (work int) {
	for _, i := range f.lower {
		p := &f.pivots[i]
		if v := x[p.row]; v != 0 {
			work += subtract(x, f.entries[p.middle:p.to], v)
		}
	}
	for k := len(f.upper) - 1; k >= 0; k-- {
		p := &f.pivots[f.upper[k]]
		if v := x[p.row]; v != 0 {
			v /= p.value
			work += subtract(x, f.entries[p.begin:p.middle], v)
			x[p.row] = v
		}
	}
	for at, r := range f.rows {
		f.work[at] = x[r]
	}
	copy(x, f.work)
	clear(f.work)
	for i := range f.etas {
		e := &f.etas[i]
		if v := x[e.at]; v != 0 {
			v /= e.value
			work += subtract(x, e.others, v)
			x[e.at] = v
		}
	}
	return work + 3*f.m/2 + 2*len(f.etas)
}

// subtract takes v times the entries from x, and returns how many they are.
func subtract(x []float64, entries []Entry, v float64) int {
	for _, e := range entries {
		x[e.Row] -= mul(e.Value, v)
	}
	return len(entries)
}

// rest is what is left of v once the entries' values times those of x are taken.
func rest(v float64, entries []Entry, x []float64) float64 {
	for _, e := range entries {
		v -= mul(e.Value, x[e.Row])
	}
	return v
}

// transposed turns x, by position, into the solution of y·B = x, by row.
func (f *factors) transposed(x []float64) (work int) {
	for i := len(f.etas) - 1; i >= 0; i-- {
		e := &f.etas[i]
		x[e.at] = rest(x[e.at], e.others, x) / e.value
		work += len(e.others)
	}
	w := f.work
	for at, r := range f.rows {
		w[r] = x[at]
	}
	for _, i := range f.upper {
		p := &f.pivots[i]
		w[p.row] = rest(w[p.row], f.entries[p.begin:p.middle], w) / p.value
		work += int(p.middle - p.begin)
	}
	for k := len(f.lower) - 1; k >= 0; k-- {
		p := &f.pivots[f.lower[k]]
		w[p.row] = rest(w[p.row], f.entries[p.middle:p.to], w)
		work += int(p.to - p.middle)
	}
	copy(x, w)
	clear(w)
	return work + 3*f.m/2 + 2*len(f.etas)
}

// replace puts the column whose solution is given at a position. It returns the other entries.
func (f *factors) replace(at int, column []float64) []Entry {
	begin := len(f.changes)
	for i, v := range column {
		if i != at && math.Abs(v) > 1e-14 {
			f.changes = append(f.changes, Entry{i, v})
		}
	}
	f.serial++
	others := f.changes[begin:len(f.changes):len(f.changes)]
	f.etas = append(f.etas, eta{at, column[at], others, f.serial})
	return others
}

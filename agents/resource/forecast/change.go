package forecast

import "math"

// memory maintains the lag-1 autocorrelation of log(1+x). It rounds logarithms to
// 1/1024 and sums integers, so that the sums do not depend on earlier additions and
// subtractions. 2·10⁴ values of at most 2¹⁵ cannot overflow.
type memory struct {
	n       int64
	sum     int64
	squares int64
	pairs   int64 // Σ of each times the next
	ends    [2]int64
}

// scaled is log(1+x) in units of 1/1024.
func scaled(x int64) int64 { return int64(math.Round(math.Log1p(float64(x)) * 1024)) }

func (m *memory) add(x int64) {
	y := scaled(x)
	if m.n == 0 {
		m.ends[0] = y
	}
	m.ends[1] = y
	m.n++
	m.sum += y
	m.squares += y * y
}

func (m *memory) subtract(x int64) {
	y := scaled(x)
	m.n--
	m.sum -= y
	m.squares -= y * y
}

// unfollow removes the oldest pair: next is the oldest now.
func (m *memory) unfollow(x, next int64) {
	m.pairs -= scaled(x) * scaled(next)
	m.ends[0] = scaled(next)
}

// correlation is between -1 and 1, and 0 where nothing varies.
func (m *memory) correlation() float64 {
	if m.n < 2 {
		return 0
	}
	n, sum := float64(m.n), float64(m.sum)
	mean := sum / n
	variance := float64(m.squares) - sum*mean
	if variance <= 0 {
		return 0
	}
	shared := float64(m.pairs) - mean*(2*sum-float64(m.ends[0]+m.ends[1])) + (n-1)*mean*mean
	return shared / variance
}

// leastRun is the shortest run of misses that can be a change.
const leastRun = 3

// patience is how many consecutive misses of the usual bound are not by chance, given
// the correlation of successive observations (specs §1.6). Between two rows of the table
// the lower counts: an early alarm is better than a late one.
func patience(correlation float64) int {
	runs := leastRun
	for _, row := range [...]struct {
		correlation float64
		run         int
	}{{.1, 4}, {.3, 5}, {.5, 6}, {.6, 7}, {.7, 9}, {.8, 12}, {.9, 23}, {.95, 42}} {
		if correlation >= row.correlation {
			runs = row.run
		}
	}
	return runs
}

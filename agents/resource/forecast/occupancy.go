package forecast

import (
	"math"
	"sort"
)

// Shortfall is the probability that running jobs occupy more than some cores at an
// instant. It treats their ends as independent and their sum as normal, which suits many
// jobs, but is at most the probability that any job is left, which suits few. It is 0 if
// all jobs together fit, and 1 if the certain ones do not.
func (f *Forecast) Shortfall(running []Claim, now, at int64, cores int, confidence float64) float64 {
	return f.holding(running, now, at, confidence).above(cores)
}

// Occupancy is the inverse of Shortfall: the fewest cores to leave to running jobs at an
// instant, so that they occupy more with a probability of at most risk.
func (f *Forecast) Occupancy(running []Claim, now, at int64, risk, confidence float64) int {
	h := f.holding(running, now, at, confidence)
	return sort.Search(h.most, func(cores int) bool { return h.above(cores) <= risk })
}

// holding describes the cores that running jobs occupy at an instant.
type holding struct {
	mean, variance float64 // of the cores
	left           float64 // expected number of jobs
	most           int     // cores
}

func (f *Forecast) holding(running []Claim, now, at int64, confidence float64) holding {
	var h holding
	for _, c := range running {
		p, cores := f.Holds(c, now, at, confidence), float64(c.Cores)
		if p > 0 {
			h.most += c.Cores
		}
		h.left += p
		h.mean += p * cores
		h.variance += p * (1 - p) * cores * cores
	}
	return h
}

// above is the probability that more than these cores are occupied. It falls as cores grows.
func (h holding) above(cores int) float64 {
	switch {
	case h.most <= cores:
		return 0
	case h.variance == 0:
		return 1
	}
	many := math.Erfc((float64(cores)+.5-h.mean)/math.Sqrt(2*h.variance)) / 2
	if cores < 0 {
		return many
	}
	return min(many, h.left)
}

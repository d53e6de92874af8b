package forecast

import (
	"math"
	"sort"
)

// Shortfall is the probability that running jobs hold more than room cores at an
// instant: as if each ended or not by itself and their sum were normal, which many
// jobs are, or the probability that any is left, which is sharper of few. It is 0
// if all that can be held is not more, and 1 if what surely is held is.
func (f *Forecast) Shortfall(running []Claim, now, at int64, room int, confidence float64) float64 {
	return f.holding(running, now, at, confidence).above(room)
}

// Room is the fewest cores that have to be left to running jobs at an instant for
// them to hold more with a probability of at most risk: the inverse of Shortfall.
func (f *Forecast) Room(running []Claim, now, at int64, risk, confidence float64) int {
	h := f.holding(running, now, at, confidence)
	return sort.Search(h.most, func(room int) bool { return h.above(room) <= risk })
}

// holding is what running jobs hold at an instant.
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

// above is the probability that more than room cores are held. It falls as room
// grows.
func (h holding) above(room int) float64 {
	switch {
	case h.most <= room:
		return 0
	case h.variance == 0:
		return 1
	}
	many := math.Erfc((float64(room)+.5-h.mean)/math.Sqrt(2*h.variance)) / 2
	if room < 0 {
		return many
	}
	return min(many, h.left)
}

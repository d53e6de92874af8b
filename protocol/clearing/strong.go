package clearing

import (
	"slices"

	"ramp/protocol/clearing/lp"
)

// rise adds up what a choice has added to the objective, per part of the offer.
type rise struct {
	sum   float64
	count int
}

// strong chooses the offer to branch on: the one whose branches raise the objective most. It
// tries the branches of those it knows too little of. A branch that leads nowhere is a
// choice made: then it reports a change, and -1 if neither branch leads anywhere.
func (t *tree) strong(split []int) (pick int, changed bool) {
	here := t.r.s.Objective()
	x := slices.Clone(t.r.x)
	var basis *lp.Basis
	tried := 0
	best, most := split[0], -1.0
	for _, b := range split {
		if t.rises[0][b].count == 0 || t.rises[1][b].count == 0 {
			if tried == strongTries || t.s.purse.empty() {
				continue
			}
			if basis == nil {
				basis = t.r.s.Mark()
			}
			tried++
			left, taken := t.try(b, false, here, x[b], basis), t.try(b, true, here, x[b], basis)
			if left || taken {
				t.r.s.Return(basis)
				return t.forced(b, left, taken), true
			}
		}
		score := max(t.mean(0, b)*x[b], leastRise) * max(t.mean(1, b)*(1-x[b]), leastRise)
		if score > most {
			best, most = b, score
		}
	}
	if basis != nil {
		t.r.s.Return(basis)
		t.r.sync()
	}
	return best, false
}

func (t *tree) mean(side, b int) float64 {
	r := t.rises[side][b]
	if r.count == 0 {
		return 0
	}
	return r.sum / float64(r.count)
}

// forced makes the remaining choice when a branch leads nowhere; -1: no choice remains.
func (t *tree) forced(b int, left, taken bool) int {
	if left && taken || !t.choose(b, left) {
		return -1
	}
	return b
}

// try solves a branch for a while and notes by how much it raises the objective. It reports
// whether nothing better can be below it.
func (t *tree) try(b int, take bool, here, x float64, basis *lp.Basis) bool {
	depth, mark := len(t.path), len(t.s.cover.trail)
	t.r.s.Return(basis)
	dead := !t.choose(b, take)
	if !dead {
		outcome, bound := t.r.solve(t.limit(), strongWork)
		if dead = bound > t.limit(); dead {
			t.cut(bound, t.path)
		}
		side, part := 0, x
		if take {
			side, part = 1, 1-x
		}
		if outcome == lp.Optimal || outcome == lp.Stopped {
			r := &t.rises[side][b]
			r.sum += max(t.r.s.Objective()-here, 0) / max(part, integral)
			r.count++
		}
	}
	t.rewind(depth)
	t.s.cover.undo(-1, mark)
	return dead
}

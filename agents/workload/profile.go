package workload

import (
	"iter"
	"math"
	"slices"
	"sort"
)

// Forever is the end of an open interval.
const Forever = math.MaxInt64

// Step is the number of free cores from At until the next step.
type Step struct {
	At   int64
	Free int
}

// Profile is the number of free cores over time, a step function. It may fall below
// zero, since real logs sometimes exceed their machine. The first step also holds before
// its instant, and the last step holds without end.
//
// Steps are stored in blocks of at most maxBlock with their least and most values, so that a query
// over n steps reads about maxBlock + n/maxBlock numbers, and a change costs no more.
type Profile struct {
	blocks []block // never empty
}

// block is a run of steps, never empty. Its own add is part of every value in it, so
// that changing a long interval touches few steps.
type block struct {
	steps       []Step
	add         int
	least, most int // of the steps, without add
}

// maxBlock bounds the steps of a block; a full block is split in halves.
const maxBlock = 512

// NewProfile has free cores from the given instant on.
func NewProfile(from int64, free int) *Profile {
	return &Profile{blocks: []block{{steps: []Step{{from, free}}, least: free, most: free}}}
}

// From is the first instant of the profile.
func (p *Profile) From() int64 { return p.blocks[0].steps[0].At }

// Clone is a copy that shares nothing with p.
func (p *Profile) Clone() *Profile {
	q := &Profile{blocks: slices.Clone(p.blocks)}
	for i := range q.blocks {
		q.blocks[i].steps = slices.Clone(q.blocks[i].steps)
	}
	return q
}

// Steps yields the steps that hold in [start, end), in order; the first is moved
// to start. Neighbours differ.
func (p *Profile) Steps(start, end int64) iter.Seq[Step] {
	return func(yield func(Step) bool) {
		i, j := p.locate(start)
		for first := true; i < len(p.blocks); i, j = i+1, 0 {
			for b := &p.blocks[i]; j < len(b.steps); j++ {
				at := b.steps[j].At
				if first {
					at, first = start, false
				}
				if at >= end || !yield(Step{at, b.steps[j].Free + b.add}) {
					return
				}
			}
		}
	}
}

// At is the number of free cores at t.
func (p *Profile) At(t int64) int {
	i, j := p.locate(t)
	return p.blocks[i].steps[j].Free + p.blocks[i].add
}

// Free is the least number of cores free at any instant of [start, end); if end
// is not after start, at start.
func (p *Profile) Free(start, end int64) int {
	i, j := p.locate(start)
	least := p.blocks[i].steps[j].Free + p.blocks[i].add
	for ; i < len(p.blocks); i, j = i+1, 0 {
		b := &p.blocks[i]
		if b.steps[j].At >= end {
			break
		}
		if j == 0 && b.last() < end {
			least = min(least, b.least+b.add)
			continue
		}
		for ; j < len(b.steps) && b.steps[j].At < end; j++ {
			least = min(least, b.steps[j].Free+b.add)
		}
	}
	return least
}

// Earliest is the first instant t ≥ from at which cores are free over [t, t+wall) and t+wall ≤
// until; Forever as until means no limit. A wall time below one second counts as one.
func (p *Profile) Earliest(from, until, wall int64, cores int) (int64, bool) {
	wall = max(wall, 1)
	for t, ok := from, true; ok && t <= until-wall; {
		busy, found := p.next(t, t+wall, func(free int) bool { return free < cores })
		if !found {
			return t, true
		}
		t, ok = p.next(busy, Forever, func(free int) bool { return free >= cores })
	}
	return 0, false
}

// next is the first instant of [start, end) with a wanted value. It skips a block if
// neither its least nor its most value is wanted: wanted is a half-line.
func (p *Profile) next(start, end int64, wanted func(free int) bool) (int64, bool) {
	i, j := p.locate(start)
	if wanted(p.blocks[i].steps[j].Free + p.blocks[i].add) {
		return start, start < end
	}
	for j++; i < len(p.blocks); i, j = i+1, 0 {
		b := &p.blocks[i]
		if b.steps[0].At >= end {
			break
		}
		if !wanted(b.least+b.add) && !wanted(b.most+b.add) {
			continue
		}
		for ; j < len(b.steps) && b.steps[j].At < end; j++ {
			if wanted(b.steps[j].Free + b.add) {
				return b.steps[j].At, true
			}
		}
	}
	return 0, false
}

// Add frees delta cores over [start, end), or takes them if delta is negative.
// It ignores the time before From.
func (p *Profile) Add(start, end int64, delta int) {
	start = max(start, p.From())
	if end <= start || delta == 0 {
		return
	}
	p.cut(start)
	if end != Forever {
		p.cut(end)
	}
	i, j := p.locate(start)
	for ; i < len(p.blocks) && p.blocks[i].steps[0].At < end; i, j = i+1, 0 {
		p.blocks[i].addFrom(j, end, delta)
	}
	if end != Forever {
		p.heal(end)
	}
	p.heal(start)
}

// Forget drops the time before t: t becomes the first instant.
func (p *Profile) Forget(t int64) {
	if t <= p.From() {
		return
	}
	i, j := p.locate(t)
	p.blocks = slices.Delete(p.blocks, 0, i)
	b := &p.blocks[0]
	b.steps = slices.Delete(b.steps, 0, j)
	b.steps[0].At = t
	b.recount()
}

func (p *Profile) locate(t int64) (i, j int) {
	i = sort.Search(len(p.blocks), func(i int) bool { return p.blocks[i].steps[0].At > t }) - 1
	if i < 0 {
		return 0, 0
	}
	steps := p.blocks[i].steps
	return i, sort.Search(len(steps), func(j int) bool { return steps[j].At > t }) - 1
}

// cut makes t the beginning of a step.
func (p *Profile) cut(t int64) {
	i, j := p.locate(t)
	b := &p.blocks[i]
	if b.steps[j].At == t {
		return
	}
	b.steps = slices.Insert(b.steps, j+1, Step{t, b.steps[j].Free})
	if len(b.steps) > maxBlock {
		p.split(i)
	}
}

func (p *Profile) split(i int) {
	b := p.blocks[i]
	half := len(b.steps) / 2
	right := block{steps: slices.Clone(b.steps[half:]), add: b.add}
	p.blocks[i].steps = b.steps[:half]
	p.blocks[i].recount()
	right.recount()
	p.blocks = slices.Insert(p.blocks, i+1, right)
}

// heal removes the step that begins at t if it equals the one before.
func (p *Profile) heal(t int64) {
	i, j := p.locate(t)
	b := &p.blocks[i]
	if t == p.From() || b.steps[j].At != t || p.At(t-1) != b.steps[j].Free+b.add {
		return
	}
	b.steps = slices.Delete(b.steps, j, j+1)
	if len(b.steps) == 0 {
		p.blocks = slices.Delete(p.blocks, i, i+1)
		return
	}
	b.recount()
}

func (b *block) last() int64 { return b.steps[len(b.steps)-1].At }

// addFrom adds delta to the steps from number j on that begin before end.
func (b *block) addFrom(j int, end int64, delta int) {
	if j == 0 && b.last() < end {
		b.add += delta
		return
	}
	for ; j < len(b.steps) && b.steps[j].At < end; j++ {
		b.steps[j].Free += delta
	}
	b.recount()
}

func (b *block) recount() {
	b.least, b.most = b.steps[0].Free, b.steps[0].Free
	for _, s := range b.steps[1:] {
		b.least, b.most = min(b.least, s.Free), max(b.most, s.Free)
	}
}

package workload

import (
	"fmt"
	"math/rand/v2"
)

// AddLine reads one line into the log.
func (l *Log) AddLine(line string) error { _, err := l.addLine([]byte(line)); return err }

// GammaDraw and GammaCDF open the distribution to its tests.
func GammaDraw(r *rand.Rand, shape, scale float64) float64 { return gamma{shape, scale}.draw(r) }
func GammaCDF(x, shape, scale float64) float64             { return gamma{shape, scale}.cdf(x) }

// DrawCores, DrawRun, DrawGap and Cycle open the model to its tests.
func (m Model) DrawCores(r *rand.Rand, capacity int) int { return m.on(capacity).cores(r, capacity) }
func (m Model) DrawRun(r *rand.Rand, cores int) int32    { return m.run(r, cores) }
func (m Model) DrawGap(r *rand.Rand) float64             { return m.gap(r) }
func (m Model) Cycle() [48]float64                       { return m.cycle() }

// Clock pays points from a start on.
func Clock(m Model, start int64, points float64) int64 {
	c := m.cycle()
	return clock(&c, start, points)
}

// Check says which promise of its form a profile breaks.
func (p *Profile) Check() error {
	last, seen := Step{}, false
	for i := range p.blocks {
		b := p.blocks[i]
		if len(b.steps) == 0 || len(b.steps) > maxBlock {
			return fmt.Errorf("block %d has %d steps", i, len(b.steps))
		}
		least, most := b.least, b.most
		if b.recount(); least != b.least || most != b.most {
			return fmt.Errorf("block %d: least %d most %d, want %d %d", i, least, most, b.least, b.most)
		}
		for _, s := range b.steps {
			s.Free += b.add
			if seen && (s.At <= last.At || s.Free == last.Free) {
				return fmt.Errorf("step %v follows %v", s, last)
			}
			last, seen = s, true
		}
	}
	return nil
}

// FillReservations makes the machine hold as many as it may.
func (m *Machine) FillReservations() { m.sold = make([]Reservation, MaxReservations) }

// Shift is a copy of p with d seconds added to every instant: the same machine
// on another clock.
func (p *Profile) Shift(d int64) *Profile {
	q := p.Clone()
	for i := range q.blocks {
		for j := range q.blocks[i].steps {
			q.blocks[i].steps[j].At += d
		}
	}
	return q
}

// Len is the number of steps.
func (p *Profile) Len() int {
	n := 0
	for i := range p.blocks {
		n += len(p.blocks[i].steps)
	}
	return n
}

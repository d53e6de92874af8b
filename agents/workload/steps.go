package workload

import "slices"

// ProfileOf is the profile of steps in order of time, at least one; the last holds
// without end. Of several steps at one instant the last counts.
func ProfileOf(steps []Step) *Profile {
	var kept []Step
	for _, s := range steps {
		if n := len(kept); n > 0 && kept[n-1].At == s.At {
			kept[n-1] = s
			continue
		}
		if n := len(kept); n == 0 || kept[n-1].Free != s.Free {
			kept = append(kept, s)
		}
	}
	p := &Profile{}
	for run := range slices.Chunk(kept, maxBlock/2) {
		b := block{steps: slices.Clone(run)}
		b.recount()
		p.blocks = append(p.blocks, b)
	}
	return p
}

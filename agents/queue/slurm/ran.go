package slurm

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"time"

	"ramp/protocol"
)

// stretch is one run of a job in a slot. A requeued job has several.
type stretch struct {
	ID    int64         `json:"id"`
	Start time.Time     `json:"start"`
	End   time.Time     `json:"end"`  // or when it was last seen
	Over  bool          `json:"over"` // it has ended
	Cores int           `json:"cores"`
	Idle  time.Duration `json:"idle,omitempty"` // suspended time

	cpu time.Duration // measured CPU time; 0: its cores count
}

func (s stretch) key() [2]int64 { return [2]int64{s.ID, s.Start.Unix()} }

// used sums up the runs in a slot (001): the core time; the wall time in which any job
// ran, without suspensions; and as the share all reserved cores. Only time within the
// slot counts, and at most the slot's cores.
func used(slot protocol.Slot, list []stretch) protocol.Usage {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b stretch) int { return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.ID, b.ID)) })
	u := protocol.Usage{Share: int64(slot.Cores) * protocol.Core}
	ran, reached := time.Duration(0), slot.Start
	for _, s := range list {
		from, to := protocol.Later(s.Start, slot.Start), protocol.Earlier(s.End, slot.End)
		had := max(max(to.Sub(from), 0)-max(s.Idle, 0), 0)
		ran = min(ran+had, slot.Wall())
		u.CPU = plus(u.CPU, s.core(slot.Cores, had))
		if from = protocol.Later(from, reached); to.After(from) {
			u.Wall, reached = u.Wall+to.Sub(from), to
		}
	}
	u.Wall = min(u.Wall, ran)
	u.CPU = min(u.CPU, times(slot.Cores, u.Wall))
	return u
}

// core is the core time of a stretch that had its cores for so long, in a slot of most cores.
func (s stretch) core(most int, had time.Duration) time.Duration {
	if s.cpu > 0 {
		return min(s.cpu, times(most, had))
	}
	return times(min(max(s.Cores, 0), most), had)
}

// plus and times calculate with values of 0 or more, up to the largest duration.
func plus(a, b time.Duration) time.Duration {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}

func times(n int, d time.Duration) time.Duration {
	hi, lo := bits.Mul64(uint64(n), uint64(d))
	if hi > 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(lo)
}

// joined merges the stretches that two sources know. Where both know one, the accounting's counts,
// unless it lacks the end. open reports whether the end of some stretch may be missing.
func joined(seen, told []stretch) (list []stretch, open bool) {
	of := make(map[[2]int64]stretch, len(seen))
	for _, s := range seen {
		of[s.key()] = s
	}
	for _, s := range told {
		was, both := of[s.key()]
		delete(of, s.key())
		open = open || !s.Over
		if !s.Over && both {
			s = was
		}
		list = append(list, s)
	}
	for _, s := range seen {
		if _, alone := of[s.key()]; alone {
			list, open = append(list, s), true
		}
	}
	return list, open
}

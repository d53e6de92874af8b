package forecast

// ring is a queue of at most MaxHistory numbers. It grows by doubling.
type ring struct {
	values []int64 // of a length that is a power of two, or empty
	start  int
	size   int
}

func (r *ring) get(i int) int64 { return r.values[(r.start+i)&(len(r.values)-1)] }

func (r *ring) first() (int64, bool) {
	if r.size == 0 {
		return 0, false
	}
	return r.get(0), true
}

func (r *ring) last() (int64, bool) {
	if r.size == 0 {
		return 0, false
	}
	return r.get(r.size - 1), true
}

func (r *ring) push(x int64) {
	if r.size == len(r.values) {
		grown := make([]int64, max(64, 2*r.size))
		for i := range r.size {
			grown[i] = r.get(i)
		}
		r.values, r.start = grown, 0
	}
	r.values[(r.start+r.size)&(len(r.values)-1)] = x
	r.size++
}

// pop removes the oldest; the ring must not be empty.
func (r *ring) pop() int64 {
	x := r.get(0)
	r.start = (r.start + 1) & (len(r.values) - 1)
	r.size--
	return x
}

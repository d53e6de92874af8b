package mesh

import "time"

// bucket holds what is left of an allowance. Its zero value is full.
type bucket struct {
	spent float64
	at    time.Time
}

// take spends n if the allowance has it, and reports whether it had.
func (b *bucket) take(now time.Time, n float64, r Rate) bool {
	if elapsed := now.Sub(b.at).Seconds(); elapsed > 0 {
		b.spent = max(0, b.spent-elapsed*r.PerSecond)
		b.at = now
	}
	if b.spent+n > r.Burst {
		return false
	}
	b.spent += n
	return true
}

package mesh

import "time"

// bucket owns how much of an allowance is spent. Its zero value is full.
type bucket struct {
	spent float64
	at    time.Time
}

// take spends n if that much is left, and reports whether it was.
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

// window owns which of an author's last replayWindow sequence numbers have been seen, so
// that gossip may arrive out of order but never twice. Its zero value has seen none.
type window struct {
	highest uint64
	bits    [replayWindow / 64]uint64 // of sequence number n, bit n mod replayWindow
}

// admit reports whether n is new, and remembers it. Numbers older than the window count
// as seen, and so does zero.
func (w *window) admit(n uint64) bool {
	if n == 0 || n+replayWindow <= w.highest {
		return false
	}
	for i := w.highest + 1; i <= n; i++ {
		if n-w.highest >= replayWindow { // everything remembered is too old
			w.bits, w.highest = [replayWindow / 64]uint64{}, n
			break
		}
		w.bits[i%replayWindow/64] &^= 1 << (i % 64)
	}
	w.highest = max(w.highest, n)
	word, bit := &w.bits[n%replayWindow/64], uint64(1)<<(n%64)
	fresh := *word&bit == 0
	*word |= bit
	return fresh
}

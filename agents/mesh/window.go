package mesh

// window remembers which of an author's last replayWindow sequence numbers have
// been seen, so that gossip may overtake but never comes twice. Its zero value
// has seen none.
type window struct {
	highest uint64
	bits    [replayWindow / 64]uint64 // of sequence number n, bit n mod replayWindow
}

// admit reports whether n is new, and remembers it. What is older than the
// window counts as seen; zero is no sequence number.
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

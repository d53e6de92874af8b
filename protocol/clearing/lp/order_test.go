package lp

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// However many are brought, they come in the order of a sort.
func TestCandidatesAreBroughtInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for n := range 40 {
		s := &Simplex{d: make([]float64, n), alpha: make([]float64, n)}
		list := r.Perm(n)
		for j := range n {
			s.d[j], s.alpha[j] = float64(r.IntN(n)), 1+float64(r.IntN(3))
		}
		want := slices.Clone(list)
		slices.SortFunc(want, s.order)
		for at := range list {
			s.bringNext(list, at)
			if list[at] != want[at] {
				t.Fatalf("of %d, number %d is %d, want %d", n, at, list[at], want[at])
			}
		}
	}
}

package forecast

import (
	"slices"
	"sort"
)

// sorted is an ordered multiset. It consists of chunks of at most maxChunk values, and joins small
// neighbours, so that any operation on n values touches about maxChunk + n/maxChunk numbers.
type sorted struct {
	chunks [][]int64 // without empty ones
	size   int
}

const maxChunk = 512

// find is the index of the first chunk whose last value is not below x, or len(chunks).
func (s *sorted) find(x int64) int {
	return sort.Search(len(s.chunks), func(i int) bool { return s.chunks[i][len(s.chunks[i])-1] >= x })
}

func (s *sorted) insert(x int64) {
	s.size++
	if len(s.chunks) == 0 {
		s.chunks = [][]int64{{x}}
		return
	}
	i := min(s.find(x), len(s.chunks)-1)
	at, _ := slices.BinarySearch(s.chunks[i], x)
	s.chunks[i] = slices.Insert(s.chunks[i], at, x)
	if c := s.chunks[i]; len(c) > maxChunk {
		half := len(c) / 2
		s.chunks = slices.Insert(s.chunks, i+1, slices.Clone(c[half:]))
		s.chunks[i] = c[:half]
	}
}

// remove removes one x, which must exist.
func (s *sorted) remove(x int64) {
	i := s.find(x)
	at, _ := slices.BinarySearch(s.chunks[i], x)
	s.chunks[i] = slices.Delete(s.chunks[i], at, at+1)
	s.size--
	if len(s.chunks[i]) == 0 {
		s.chunks = slices.Delete(s.chunks, i, i+1)
		return
	}
	if i+1 < len(s.chunks) && len(s.chunks[i])+len(s.chunks[i+1]) <= maxChunk/2 {
		s.chunks[i] = append(s.chunks[i], s.chunks[i+1]...)
		s.chunks = slices.Delete(s.chunks, i+1, i+2)
	}
}

// at is the k-th smallest, 1 ≤ k ≤ size.
func (s *sorted) at(k int) int64 {
	for _, c := range s.chunks {
		if k <= len(c) {
			return c[k-1]
		}
		k -= len(c)
	}
	panic("forecast: rank beyond the history")
}

// upTo counts the values of at most x.
func (s *sorted) upTo(x int64) int {
	n := 0
	for _, c := range s.chunks {
		if c[len(c)-1] > x {
			return n + sort.Search(len(c), func(i int) bool { return c[i] > x })
		}
		n += len(c)
	}
	return n
}

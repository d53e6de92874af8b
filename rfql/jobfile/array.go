package jobfile

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds of an array.
const (
	MaxTasks = 1000
	MaxIndex = 1_000_000
	MaxSlots = 256 // that run at once
)

// Array is the indexes of an array job, in order, each once.
type Array struct {
	Indexes []int
	Slots   int // that run at once; 0: as many as the market has cores for
}

const arrayWords = "want indexes such as 1-30, 1,5,9 or 1-30:2, and %8 for at most 8 at once"

// ParseArray reads 1-30%8, 1,5,9 or 1-30:2.
func ParseArray(s string) (Array, error) { return ParseIndexes(s, MaxTasks, MaxSlots) }

// ParseIndexes is ParseArray with other bounds: of the indexes, and of those that run at once.
func ParseIndexes(s string, indexes, atOnce int) (Array, error) {
	var a Array
	list, slots, bounded := strings.Cut(s, "%")
	if bounded {
		n, err := strconv.ParseUint(slots, 10, 16)
		if err != nil || n < 1 || n > uint64(atOnce) {
			return a, fmt.Errorf("%q: want 1 to %d after the %%", s, atOnce)
		}
		a.Slots = int(n)
	}
	for part := range strings.SplitSeq(list, ",") {
		first, last, step, ok := span(part)
		if !ok {
			return a, fmt.Errorf("%q: %s, from 0 to %d", s, arrayWords, MaxIndex)
		}
		for i := first; i <= last; i += step {
			if len(a.Indexes) == indexes {
				return a, fmt.Errorf("%q: more than %d indexes", s, indexes)
			}
			a.Indexes = append(a.Indexes, i)
		}
	}
	slices.Sort(a.Indexes)
	a.Indexes = slices.Compact(a.Indexes)
	return a, nil
}

// span reads 7, 1-30 or 1-30:2.
func span(s string) (first, last, step int, ok bool) {
	s, every, stepped := strings.Cut(s, ":")
	from, to, ranged := strings.Cut(s, "-")
	if step = 1; stepped {
		if step, ok = number(every); !ok || step == 0 || !ranged {
			return 0, 0, 0, false
		}
	}
	first, ok = number(from)
	if !ok || !ranged {
		return first, first, step, ok
	}
	last, ok = number(to)
	return first, last, step, ok && first <= last
}

func number(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 32)
	return int(n), err == nil && n <= MaxIndex
}

// Shares deals the indexes out to slots in turn, so that the shares differ by at most one.
func (a Array) Shares(slots int) [][]int {
	shares := make([][]int, min(slots, len(a.Indexes)))
	for i, index := range a.Indexes {
		shares[i%len(shares)] = append(shares[i%len(shares)], index)
	}
	return shares
}

// runner is the program of a slot. Nothing of a job is in it; its words are arguments.
//
//go:embed array.sh
var runner string

// Runner is the command that runs a command for each index of a share, one after the
// other and each for at most limit, in whole seconds.
func Runner(share []int, limit time.Duration, command []string) []string {
	numbers := make([]string, len(share))
	for i, n := range share {
		numbers[i] = strconv.Itoa(n)
	}
	return append([]string{"sh", "-c", runner, "ramp-array", strconv.Itoa(int(limit / time.Second)), strings.Join(numbers, " ")}, command...)
}

package jobfile

// A suggestion differs from what was typed in at most suggestWithin letters, and in a
// third of them.
const suggestWithin = 2

// Nearest is the known word that differs from a word in the fewest letters, if it is
// close. Ties go to the first in the alphabet.
func Nearest(word string, known []string) string {
	best, within := "", min(suggestWithin, (len(word)+1)/3)+1
	for _, k := range known {
		if d := Distance(k, word); d < within || d == within && best != "" && k < best {
			best, within = k, d
		}
	}
	return best
}

// maxDistance is the longest word that is compared, in letters.
const maxDistance = 64

// Distance counts the letters that must be changed, inserted, removed or swapped with a
// neighbour to turn one word into the other.
func Distance(a, b string) int {
	if len(a) > maxDistance || len(b) > maxDistance {
		return maxDistance
	}
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, row[j]+1, last[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

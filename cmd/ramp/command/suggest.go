package command

import (
	"strings"

	"github.com/spf13/cobra"
)

// flagHint says what to do about a wrong flag: the nearest one there is, or where
// they are listed.
func flagHint(c *cobra.Command, err error) string {
	if name, ok := strings.CutPrefix(err.Error(), "unknown flag: --"); ok {
		if near := nearestFlag(c, name); near != "" {
			return "did you mean '--" + near + "'? See '" + c.CommandPath() + " --help'"
		}
	}
	return "see '" + c.CommandPath() + " --help'"
}

// nearestFlag is the flag that differs from name in the fewest letters, at most
// suggestWithin; of several the first in the alphabet.
func nearestFlag(c *cobra.Command, name string) string {
	best, within := "", suggestWithin+1
	usage := c.Flags().FlagUsages() + c.InheritedFlags().FlagUsages()
	for _, word := range strings.Fields(usage) {
		flag, ok := strings.CutPrefix(word, "--")
		if !ok {
			continue
		}
		if d := distance(flag, name); d < within || d == within && best != "" && flag < best {
			best, within = flag, d
		}
	}
	return best
}

// maxDistance bounds the words that are compared, in letters.
const maxDistance = 64

// distance is how many letters must be changed, put in or taken out to make one
// word of another.
func distance(a, b string) int {
	if len(a) > maxDistance || len(b) > maxDistance {
		return maxDistance
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

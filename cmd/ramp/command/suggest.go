package command

import (
	"strings"

	"github.com/spf13/cobra"
)

// suggestWithin is how many letters a mistyped word may differ in, and suggestShort
// how many one of at most shortWord letters may: any two short words are near.
const (
	suggestWithin = 2
	suggestShort  = 1
	shortWord     = 3
)

// commandHint says what to do about a command that c has not: the nearest one below
// c, or one of that very name elsewhere, or where they are listed.
func commandHint(c *cobra.Command, name string) string {
	if near := nearestCommand(c, name); near != "" {
		return "did you mean '" + c.CommandPath() + " " + near + "'?"
	}
	if paths := sameName(c.Root(), name, c); len(paths) > 0 {
		return "did you mean '" + strings.Join(paths, "' or '") + "'?"
	}
	return "see '" + c.CommandPath() + " --help'"
}

// nearestCommand is the command below c that differs from name in the fewest letters,
// or else one that name begins; of several one that name begins, or the first in the
// alphabet.
func nearestCommand(c *cobra.Command, name string) string {
	best, within := "", suggestWithin+1
	if len(name) <= shortWord {
		within = suggestShort + 1
	}
	begun := ""
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		begins := len(name) > 1 && strings.HasPrefix(sub.Name(), strings.ToLower(name))
		if d := distance(sub.Name(), strings.ToLower(name)); d < within || d == within && best != "" && begins {
			best, within = sub.Name(), d
		}
		if begun == "" && begins {
			begun = sub.Name()
		}
	}
	if best == "" {
		return begun
	}
	return best
}

// maxSameName bounds how many places a command is looked for in.
const maxSameName = 3

// sameName are the commands below root of that very name, but for those below c.
func sameName(root *cobra.Command, name string, c *cobra.Command) (paths []string) {
	for _, sub := range root.Commands() {
		if sub.IsAvailableCommand() && sub.Name() == name && root != c {
			paths = append(paths, sub.CommandPath())
		}
		paths = append(paths, sameName(sub, name, c)...)
	}
	return paths[:min(len(paths), maxSameName)]
}

// flagHint says what to do about a wrong flag: the nearest one there is, or where
// they are listed.
func flagHint(c *cobra.Command, err error) string {
	if name, ok := strings.CutPrefix(err.Error(), "unknown flag: --"); ok {
		if near := nearestFlag(c, name); near != "" {
			return "did you mean '--" + near + "'? See '" + c.CommandPath() + " --help'"
		}
		if paths := sameName(c, name, nil); len(paths) > 0 {
			return "did you mean '" + paths[0] + "'?"
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

// distance is how many letters must be changed, put in, taken out or exchanged with
// their neighbour to make one word of another.
func distance(a, b string) int {
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

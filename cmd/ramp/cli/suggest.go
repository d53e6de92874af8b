package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ramp/rfql/jobfile"
)

// A suggestion differs from what was typed in at most suggestWithin letters, or
// suggestShort if that has at most shortWord letters: any two short words are close.
const (
	suggestWithin = 2
	suggestShort  = 1
	shortWord     = 3
)

// commandHint helps with an unknown command: it suggests the closest one below c, or one
// of the same name elsewhere, or else the help.
func commandHint(c *cobra.Command, name string) string {
	if near := nearestCommand(c, name); near != "" {
		return "did you mean '" + c.CommandPath() + " " + near + "'?"
	}
	if paths := sameName(c.Root(), name, c); len(paths) > 0 {
		return "did you mean '" + strings.Join(paths, "' or '") + "'?"
	}
	return "see '" + c.CommandPath() + " --help'"
}

// nearestCommand finds the command below c that differs from name in the fewest letters,
// or else one that begins with name. Ties go to one that begins with name, then to the
// first in the alphabet.
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
		if slices.Contains(sub.SuggestFor, name) {
			return sub.Name()
		}
		begins := len(name) > 1 && strings.HasPrefix(sub.Name(), strings.ToLower(name))
		if d := jobfile.Distance(sub.Name(), strings.ToLower(name)); d < within || d == within && best != "" && begins {
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

// maxSameName bounds how many commands of one name are suggested.
const maxSameName = 3

// sameName lists the commands of a name below root, except those directly below c.
func sameName(root *cobra.Command, name string, c *cobra.Command) (paths []string) {
	for _, sub := range root.Commands() {
		if sub.IsAvailableCommand() && sub.Name() == name && root != c {
			paths = append(paths, sub.CommandPath())
		}
		paths = append(paths, sameName(sub, name, c)...)
	}
	return paths[:min(len(paths), maxSameName)]
}

// flagHint helps with a wrong flag: it suggests the closest one, or else the help.
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

// nearestFlag finds the flag that differs from name in the fewest letters, at most
// suggestWithin. Ties go to the first in the alphabet.
func nearestFlag(c *cobra.Command, name string) string {
	best, within := "", suggestWithin+1
	usage := c.Flags().FlagUsages() + c.InheritedFlags().FlagUsages()
	for _, word := range strings.Fields(usage) {
		flag, ok := strings.CutPrefix(word, "--")
		if !ok {
			continue
		}
		if d := jobfile.Distance(flag, name); d < within || d == within && best != "" && flag < best {
			best, within = flag, d
		}
	}
	return best
}

package message

import (
	"path"
	"slices"
	"strings"

	"ramp/protocol"
)

// Files that an array job writes for each index.
const (
	IndexLog  = "log"  // what it printed
	IndexExit = "exit" // its exit code
)

// Wants reports whether the owner wants an output: its path, or a directory above it,
// matches a pattern. In an array, patterns begin below the directory of the index, whose
// number '{}' and '%a' stand for, and its log and exit code are always wanted.
func (p Program) Wants(output string) bool {
	if len(p.Outputs) == 0 {
		return true
	}
	index := ""
	if p.Array {
		index, output, _ = strings.Cut(output, "/")
		if output == IndexLog || output == IndexExit {
			return true
		}
	}
	return slices.ContainsFunc(p.Outputs, func(pattern string) bool {
		return matches(Indexed(pattern, index), output)
	})
}

// Wanted are the outputs of a unit that the owner wants.
func (p Program) Wanted(u RunUnit) []protocol.StagedFile {
	return slices.DeleteFunc(slices.Clone(u.Status.Outputs), func(f protocol.StagedFile) bool { return !p.Wants(f.Path) })
}

// Indexed puts the number of an index into a pattern or a word; without one it stays.
func Indexed(s, index string) string {
	if index == "" {
		return s
	}
	return strings.NewReplacer("{}", index, "%a", index).Replace(s)
}

// matches reports whether a pattern matches a path or a directory above it.
func matches(pattern, output string) bool {
	for ; output != "."; output = path.Dir(output) {
		if ok, err := path.Match(pattern, output); ok && err == nil {
			return true
		}
	}
	return false
}

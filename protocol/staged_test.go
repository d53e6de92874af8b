package protocol_test

import (
	"path"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ramp/protocol"
)

func TestPathsThatClimbOrHide(t *testing.T) {
	for name, p := range map[string]string{
		"nothing": "", "up": "../x", "up within": "a/../../x", "a dot": "./x", "absolute": "/etc/passwd", "twice": "a//b",
		"a directory": "a/", "a backslash": `..\x`, "a newline": "a\nb", "a zero": "a\x00b", "an escape": "a\x1b[2J", "no UTF-8": "a\xff",
		"a turned text": "a\u202etxt.exe", "too long": strings.Repeat("x", protocol.MaxPath+1), "a long name": strings.Repeat("y", 256),
		"too deep": strings.Repeat("d/", protocol.MaxPathDepth) + "x",
	} {
		if err := protocol.CheckPath(p); err == nil {
			t.Errorf("%s: %q is accepted", name, p)
		}
	}
	for _, p := range []string{"x", "a/b.txt", "with space", "-rf", "$(reboot)", "a;b", "…/ü", "~", ".hidden", "..."} {
		if err := protocol.CheckPath(p); err != nil {
			t.Errorf("%q: %v", p, err)
		}
	}
}

// What is accepted stays below its directory, as the library for paths has it.
func TestAcceptedPathsStayBelow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.SampledFrom([]string{"..", ".", "", "a", "b c", "~", "...", "a\x00", "x/..", "/"}), 1, 6).Draw(t, "names")
		p := strings.Join(names, "/")
		err := protocol.CheckPath(p)
		below := filepath.IsLocal(p) && path.Clean(p) == p && p != "." && !strings.Contains(p, "\x00")
		if (err == nil) != below {
			t.Fatalf("%q: %v, want it accepted: %v", p, err, below)
		}
	})
}

func FuzzCheckPath(f *testing.F) {
	for _, s := range []string{"a/b", "../a", "/", "a\\b", "a/./b", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if protocol.CheckPath(p) == nil && (!filepath.IsLocal(p) || path.Clean(p) != p) {
			t.Fatalf("%q is accepted", p)
		}
	})
}

func TestFilesThatCannotLieBesideEachOther(t *testing.T) {
	tree := func(paths ...string) (files []protocol.StagedFile) {
		for _, p := range paths {
			files = append(files, protocol.StagedFile{Path: p})
		}
		return files
	}
	for _, bad := range [][]string{{"a", "a"}, {"a", "a/b"}, {"a/b/c", "a"}, {"x", "a/b/c", "a/b"}} {
		if protocol.CheckTree(tree(bad...)) == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
	if err := protocol.CheckTree(tree("a/b", "a/c", "ab", "a.b")); err != nil {
		t.Error(err)
	}
}

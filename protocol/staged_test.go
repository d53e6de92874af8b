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

// According to the library for paths, accepted paths stay below their directory.
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

func TestHashesOfFilesAreHexOfOneLength(t *testing.T) {
	good := strings.Repeat("0a", 32)
	for _, c := range []struct{ name, sha, blake, want string }{
		{"both hashes", good, good, ""},
		{"no BLAKE3, as older agents announce", good, "", ""},
		{"no SHA-256", "", good, `SHA-256 ""`},
		{"a short SHA-256", good[1:], good, "SHA-256"},
		{"a short BLAKE3", good, good[1:], "BLAKE3"},
		{"a BLAKE3 in upper case", good, strings.ToUpper(good), "BLAKE3"},
		{"a BLAKE3 of 64 bytes", good, good + good, "BLAKE3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := protocol.StagedFile{Path: "a", SHA256: c.sha, BLAKE3: c.blake}.Validate()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestFilesAreTheSameIfAllThatBothGiveIs(t *testing.T) {
	f := protocol.StagedFile{Path: "a", Size: 1, SHA256: "s", BLAKE3: "b", Exec: true}
	for _, c := range []struct {
		name string
		bend func(g *protocol.StagedFile)
		want bool
	}{
		{"nothing else", func(*protocol.StagedFile) {}, true},
		{"one without BLAKE3", func(g *protocol.StagedFile) { g.BLAKE3 = "" }, true},
		{"another BLAKE3", func(g *protocol.StagedFile) { g.BLAKE3 = "c" }, false},
		{"another SHA-256", func(g *protocol.StagedFile) { g.SHA256 = "c" }, false},
		{"another SHA-256, and no BLAKE3", func(g *protocol.StagedFile) { g.SHA256, g.BLAKE3 = "c", "" }, false},
		{"another mode", func(g *protocol.StagedFile) { g.Exec = false }, false},
		{"another path", func(g *protocol.StagedFile) { g.Path = "b" }, false},
		{"another size", func(g *protocol.StagedFile) { g.Size = 2 }, false},
	} {
		g := f
		c.bend(&g)
		if f.Same(g) != c.want || g.Same(f) != c.want {
			t.Errorf("%s: want %v both ways", c.name, c.want)
		}
	}
}

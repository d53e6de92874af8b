package protocol

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of what is launched and staged.
const (
	MaxArgs      = 256      // of a command
	MaxArgBytes  = 64 << 10 // of a whole command, and of all parameters of an application
	MaxParams    = 64       // of an application
	MaxStaged    = 4096     // files into a job, and out of it
	MaxPath      = 512      // bytes of a staged file's path
	MaxPathDepth = 16       // names in it
	MaxPathName  = 255      // bytes of one name: what file systems take
	MaxFileSize  = 1 << 50  // bytes
)

// StagedFile is a file that travels with a job. Path is relative to where the job
// runs, see CheckPath; the hashes have 64 hex digits in lower case. Older
// agents give no BLAKE3.
type StagedFile struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	BLAKE3 string `json:"blake3,omitempty"` // of 32 bytes; empty if it was not announced
	Exec   bool   `json:"exec,omitempty"`   // it may be run
}

// Validate names what is wrong with a staged file.
func (f StagedFile) Validate() error {
	if err := CheckPath(f.Path); err != nil {
		return err
	}
	if f.Size < 0 || f.Size > MaxFileSize {
		return fmt.Errorf("file %q of %d bytes: want 0..%d", clip(f.Path), f.Size, int64(MaxFileSize))
	}
	if !hexDigest(f.SHA256) {
		return fmt.Errorf("file %q: SHA-256 %q: want 64 hex digits in lower case", clip(f.Path), clip(f.SHA256))
	}
	if f.BLAKE3 != "" && !hexDigest(f.BLAKE3) {
		return fmt.Errorf("file %q: BLAKE3 %q: want 64 hex digits in lower case, or none", clip(f.Path), clip(f.BLAKE3))
	}
	return nil
}

func hexDigest(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }

// Same reports whether two descriptions are of the same file. One of them may be
// of an agent that gives no BLAKE3.
func (f StagedFile) Same(g StagedFile) bool {
	if f.BLAKE3 == "" || g.BLAKE3 == "" {
		f.BLAKE3, g.BLAKE3 = "", ""
	}
	return f == g
}

// CheckPath refuses every path but a relative one that stays below where it
// starts on any system: names parted by '/', none of them empty, "." or "..", and
// without backslashes, control characters or bytes that are not UTF-8.
func CheckPath(path string) error {
	refuse := func(why string) error { return fmt.Errorf("path %q: %s", clip(path), why) }
	names := strings.Split(path, "/")
	switch {
	case path == "":
		return refuse("it is empty")
	case len(path) > MaxPath:
		return refuse(fmt.Sprintf("it has %d bytes, at most %d", len(path), MaxPath))
	case strings.HasPrefix(path, "/"):
		return refuse("it is absolute, want one below the job's directory")
	case len(names) > MaxPathDepth:
		return refuse(fmt.Sprintf("it is %d names deep, at most %d", len(names), MaxPathDepth))
	case !utf8.ValidString(path) || strings.ContainsFunc(path, odd):
		return refuse("it has a backslash, a control character, or bytes that are not UTF-8")
	}
	for _, name := range names {
		if name == "" || name == "." || name == ".." || len(name) > MaxPathName {
			return refuse(fmt.Sprintf("%q is no name of a file below it", clip(name)))
		}
	}
	return nil
}

// odd reports whether a character has no place in a path: those that a terminal
// obeys, that turn the direction of a text, or that part names elsewhere.
func odd(c rune) bool {
	return c < ' ' || c >= 0x7f && c < 0xa0 || c == '\\' ||
		c >= 0x200e && c <= 0x200f || c >= 0x2028 && c <= 0x202e || c >= 0x2066 && c <= 0x2069
}

// CheckTree refuses files that cannot lie beside each other: a path that comes
// twice, or one that has another file as its directory.
func CheckTree(files []StagedFile) error {
	there := make(map[string]bool, len(files))
	for _, f := range files {
		if there[f.Path] {
			return fmt.Errorf("path %q comes twice", clip(f.Path))
		}
		there[f.Path] = true
	}
	for _, f := range files {
		for i, c := range []byte(f.Path) {
			if c == '/' && there[f.Path[:i]] {
				return fmt.Errorf("path %q lies below %q, which is a file", clip(f.Path), clip(f.Path[:i]))
			}
		}
	}
	return nil
}

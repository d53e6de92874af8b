package protocol

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of launches and staged files.
const (
	MaxArgs      = 256      // of a command
	MaxArgBytes  = 64 << 10 // of a whole command, and of all parameters of an application
	MaxParams    = 64       // of an application
	MaxStaged    = 4096     // files into a job, and out of it
	MaxPath      = 512      // bytes of a staged file's path
	MaxPathDepth = 16       // names in a path
	MaxPathName  = 255      // bytes of one name: the limit of file systems
	MaxFileSize  = 1 << 50  // bytes
)

// StagedFile is an input or output of a job. Path is relative to the job's working directory, see
// CheckPath; the hashes have 64 hex digits in lower case. Older agents send no BLAKE3.
type StagedFile struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	BLAKE3 string `json:"blake3,omitempty"` // of 32 bytes; may be empty
	Exec   bool   `json:"exec,omitempty"`   // executable
}

// Validate reports an invalid path, size or hash.
func (f StagedFile) Validate() error {
	if err := CheckPath(f.Path); err != nil {
		return err
	}
	if f.Size < 0 || f.Size > MaxFileSize {
		return fmt.Errorf("file %q of %d bytes: want 0..%d", Clip(f.Path), f.Size, int64(MaxFileSize))
	}
	if !hexDigest(f.SHA256) {
		return fmt.Errorf("file %q: SHA-256 %q: want 64 hex digits in lower case", Clip(f.Path), Clip(f.SHA256))
	}
	if f.BLAKE3 != "" && !hexDigest(f.BLAKE3) {
		return fmt.Errorf("file %q: BLAKE3 %q: want 64 hex digits in lower case, or none", Clip(f.Path), Clip(f.BLAKE3))
	}
	return nil
}

func hexDigest(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }

// Same reports whether two descriptions are of the same file. Either may lack BLAKE3.
func (f StagedFile) Same(g StagedFile) bool {
	if f.BLAKE3 == "" || g.BLAKE3 == "" {
		f.BLAKE3, g.BLAKE3 = "", ""
	}
	return f == g
}

// CheckPath accepts only relative paths that stay below their starting directory on
// any system: names separated by '/', not empty, not "." or "..", and without
// backslashes, control characters or invalid UTF-8.
func CheckPath(path string) error {
	refuse := func(why string) error { return fmt.Errorf("path %q: %s", Clip(path), why) }
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
		return refuse("it has a backslash, a control character or invalid UTF-8")
	}
	for _, name := range names {
		if name == "" || name == "." || name == ".." || len(name) > MaxPathName {
			return refuse(fmt.Sprintf("%q is not allowed as a name", Clip(name)))
		}
	}
	return nil
}

// odd reports whether a path must not contain a character: it controls a terminal,
// changes the direction of text, or separates names on other systems.
func odd(c rune) bool { return controls(c) || c == '\\' }

// CheckTree refuses files that cannot exist together: a duplicate path, or one below another file.
func CheckTree(files []StagedFile) error {
	there := make(map[string]bool, len(files))
	for _, f := range files {
		if there[f.Path] {
			return fmt.Errorf("duplicate path %q", Clip(f.Path))
		}
		there[f.Path] = true
	}
	for _, f := range files {
		for i, c := range []byte(f.Path) {
			if c == '/' && there[f.Path[:i]] {
				return fmt.Errorf("path %q lies below %q, which is a file", Clip(f.Path), Clip(f.Path[:i]))
			}
		}
	}
	return nil
}

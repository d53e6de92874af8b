package protocol

import "strings"

// Words makes a text fit for people: control characters become spaces, and what is
// over MaxWords bytes is cut.
func Words(s string) string {
	if plain(s) && len(s) <= MaxWords {
		return s
	}
	clean := func(c rune) rune {
		if c < ' ' || c >= 0x7f && c < 0xa0 {
			return ' '
		}
		return c
	}
	if len(s) > MaxWords {
		s = s[:MaxWords]
	}
	return strings.Map(clean, strings.ToValidUTF8(s, ""))
}

// plain reports whether s is printable ASCII.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

package protocol

import "strings"

// Words is Harmless for a text from elsewhere, cut after MaxWords bytes.
func Words(s string) string {
	if plain(s) && len(s) <= MaxWords {
		return s
	}
	if len(s) > MaxWords {
		s = s[:MaxWords]
	}
	return Harmless(s)
}

// Harmless is a text that can be printed: every character that controls a terminal, ends
// a line or changes the direction of text becomes a space.
func Harmless(s string) string {
	if plain(s) {
		return s
	}
	clean := func(c rune) rune {
		if controls(c) {
			return ' '
		}
		return c
	}
	return strings.Map(clean, strings.ToValidUTF8(s, ""))
}

func controls(c rune) bool {
	return c < ' ' || c >= 0x7f && c < 0xa0 || c == 0x61c || c >= 0x200e && c <= 0x200f || c >= 0x2028 && c <= 0x202e || c >= 0x2066 && c <= 0x2069
}

// plain reports whether s is printable ASCII.
func plain(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c >= 0x7f })
}

package rfql

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"ramp/protocol"
)

// space is the white space of XML.
const space = " \t\r\n"

// collapse drops white space at both ends and turns every other run of it into one blank,
// like xs:token.
func collapse(b []byte) string {
	if collapsed(b) {
		return string(b)
	}
	white := func(r rune) bool { return r < utf8.RuneSelf && isSpace(byte(r)) }
	return strings.Join(strings.FieldsFunc(string(b), white), " ")
}

// collapsed reports whether the white space of b is only single blanks between words.
func collapsed[T []byte | string](b T) bool {
	before := byte(' ')
	for _, c := range []byte(b) {
		if isSpace(c) && (c != ' ' || before == ' ') {
			return false
		}
		before = c
	}
	return len(b) == 0 || before != ' '
}

const (
	priceAllowed = "a decimal number above 0 and at most 9223372036854.775807 with at most 6 decimal places (credits per core-hour)"
	wordAllowed  = "1 to 128 characters without control characters"
)

func numberAllowed(t Term) string {
	return fmt.Sprintf("a whole number of %s from 1 to %d", t.unit(), t.most())
}

func parseNumber(t Term, s string) (int, bool) {
	unsigned := strings.TrimPrefix(s, "+")
	if unsigned == "" || len(unsigned) > MaxDigits || !decimal(unsigned) {
		return 0, false
	}
	n, err := strconv.Atoi(zeroes(unsigned))
	return n, err == nil && n >= 1 && n <= t.most()
}

func decimal(s string) bool { return strings.Trim(s, "0123456789") == "" }

// zeroes drops leading zeros but keeps the last digit.
func zeroes(s string) string {
	if t := strings.TrimLeft(s, "0"); t != "" {
		return t
	}
	return "0"
}

// parsePrice reads credits above zero as xs:decimal, which allows "+5", "05", ".5", "5."
// and "5.000000000".
func parsePrice(s string) (protocol.Credits, bool) {
	unsigned := strings.TrimPrefix(s, "+")
	whole, frac, _ := strings.Cut(unsigned, ".")
	if len(unsigned) > MaxDigits || whole+frac == "" || !decimal(whole) || !decimal(frac) {
		return 0, false
	}
	plain := zeroes("0" + whole)
	if frac = strings.TrimRight(frac, "0"); frac != "" {
		plain += "." + frac
	}
	c, err := protocol.ParseCredits(plain)
	return c, err == nil && c > 0
}

// validWord reports whether s, which is collapsed, may be a word or label.
func validWord(s string) bool {
	if s == "" || utf8.RuneCountInString(s) > MaxWord || badChar([]byte(s)) >= 0 {
		return false
	}
	return protocol.Harmless(s) == s
}

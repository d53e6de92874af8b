package acl

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// parser reads src from pos on.
type parser struct {
	src []byte
	pos int
}

// space skips white space: every byte up to 0x20, which cannot be part of a word.
func (p *parser) space() {
	for p.pos < len(p.src) && p.src[p.pos] <= ' ' {
		p.pos++
	}
}

// peek is the next byte after white space, or 0 at the end.
func (p *parser) peek() byte {
	p.space()
	if p.pos == len(p.src) {
		return 0
	}
	return p.src[p.pos]
}

// expect takes one byte after white space.
func (p *parser) expect(c byte, what string) error {
	if got := p.peek(); got != c || p.pos == len(p.src) {
		return p.fail(p.pos, "found %s, want %q %s", p.found(), c, what)
	}
	p.pos++
	return nil
}

// found describes the next token for an error.
func (p *parser) found() string {
	p.space()
	if p.pos == len(p.src) {
		return "the end"
	}
	if c := p.src[p.pos]; c == '(' || c == ')' || c == '"' {
		return string('\'') + string(rune(c)) + "'"
	}
	return `"` + clip(strings.ToValidUTF8(p.token(), "?")) + `"`
}

// token is the bare token at pos; it does not move pos.
func (p *parser) token() string {
	end := p.pos
	for end < len(p.src) && !delimiter(p.src[end]) {
		end++
	}
	return string(p.src[p.pos:end])
}

func delimiter(c byte) bool { return c <= ' ' || c == '(' || c == ')' }

// word takes a bare token and returns it in lower case.
func (p *parser) word(what string) (string, error) {
	p.space()
	at, w := p.pos, p.token()
	if w == "" {
		return "", p.fail(at, "found %s, want %s", p.found(), what)
	}
	p.pos += len(w)
	return strings.ToLower(w), nil
}

// key takes the ":" and the name of a parameter.
func (p *parser) key() (string, error) {
	p.space()
	w := p.token()
	if len(w) < 2 || w[0] != ':' {
		return "", p.fail(p.pos, "found %s, want a parameter such as :sender, or ')'", p.found())
	}
	if !utf8.ValidString(w) {
		return "", p.fail(p.pos, "the name of a parameter is not UTF-8")
	}
	p.pos += len(w)
	return w[1:], nil
}

// form is how a value was written. It matters only for content: the quoted form is
// trimmed, the length-prefixed form is not.
type form int

const (
	bare form = iota
	quoted
	prefixed
)

// expr takes an expression and returns its text. The text of a list is its source.
func (p *parser) expr(depth int) (string, form, error) {
	switch c := p.peek(); {
	case p.pos == len(p.src) || c == ')':
		return "", bare, p.fail(p.pos, "found %s, want a value", p.found())
	case c == '(':
		s, err := p.list(depth + 1)
		return s, bare, err
	case c == '"':
		s, err := p.quoted()
		return s, quoted, err
	case c == '#':
		s, err := p.prefixed()
		return s, prefixed, err
	}
	s := p.token()
	p.pos += len(s)
	return s, bare, nil
}

// list takes "(" {expr} ")".
func (p *parser) list(depth int) (string, error) {
	start := p.pos
	if depth > MaxDepth {
		return "", p.fail(start, "nested deeper than %d", MaxDepth)
	}
	p.pos++
	for p.peek() != ')' {
		if p.pos == len(p.src) {
			return "", p.fail(start, "a parenthesis is not closed")
		}
		if _, _, err := p.expr(depth); err != nil {
			return "", err
		}
	}
	p.pos++
	return string(p.src[start:p.pos]), nil
}

// quoted takes a string in quotes, in which only \" is an escape.
func (p *parser) quoted() (string, error) {
	start := p.pos
	body := p.src[start+1:]
	end, escapes := 0, 0
	for ; end < len(body) && body[end] != '"'; end++ {
		if body[end] == '\\' && end+1 < len(body) && body[end+1] == '"' {
			end++
			escapes++
		}
	}
	if end >= len(body) {
		return "", p.fail(start, "a string is not closed")
	}
	p.pos = start + 1 + end + 1
	if escapes == 0 {
		return string(body[:end]), nil
	}
	return string(bytes.ReplaceAll(body[:end], []byte(`\"`), []byte(`"`))), nil
}

// maxDigits bounds the length prefix; it suffices for MaxText.
const maxDigits = 9

// prefixed takes #n" and n bytes, and a quote right behind them unless it begins a
// string: the grammar has no closing quote here, but some writers add one.
func (p *parser) prefixed() (string, error) {
	start := p.pos
	n, digits := 0, 0
	for p.pos++; p.pos < len(p.src) && isDigit(p.src[p.pos]) && digits < maxDigits; p.pos++ {
		n, digits = n*10+int(p.src[p.pos]-'0'), digits+1
	}
	if digits == 0 || p.pos == len(p.src) || p.src[p.pos] != '"' {
		return "", p.fail(start, `a string that begins with '#': want # with 1..%d digits and '"'`, maxDigits)
	}
	p.pos++
	if n > len(p.src)-p.pos {
		return "", p.fail(start, "a string of %d bytes, but only %d are left", n, len(p.src)-p.pos)
	}
	s := string(p.src[p.pos : p.pos+n])
	p.pos += n
	if p.pos < len(p.src) && p.src[p.pos] == '"' && p.ends(p.pos+1) {
		p.pos++
	}
	return s, nil
}

// ends reports whether a token ends at a place: there is white space, a parenthesis or the end.
func (p *parser) ends(at int) bool {
	return at >= len(p.src) || p.src[at] <= ' ' || p.src[at] == '(' || p.src[at] == ')'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// SyntaxError is a fault of a message in string form.
type SyntaxError struct {
	Offset int    // bytes before the fault
	Line   int    // from 1
	Reason string // what was found and what is allowed
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, byte %d: %s", e.Line, e.Offset, e.Reason)
}

func (p *parser) fail(at int, format string, args ...any) error {
	at = min(at, len(p.src))
	line := 1 + bytes.Count(p.src[:at], []byte{'\n'})
	return &SyntaxError{Offset: at, Line: line, Reason: fmt.Sprintf(format, args...)}
}

// clip shortens foreign input for an error message.
func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}

package rfql

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

func (l *lexer) startTag() (err error) {
	l.take("<")
	l.item.kind = startToken
	if l.item.name, err = l.name(); err != nil {
		return err
	}
	for {
		spaced := l.blank()
		switch {
		case l.take(">"):
			return nil
		case l.take("/>"):
			l.closing = true
			return nil
		case !spaced:
			return l.expected("a space, > or /> in a tag")
		case len(l.item.attributes) == MaxAttributes:
			return broken(l.line, "too many attributes", "at most "+strconv.Itoa(MaxAttributes), "")
		}
		if err := l.attribute(); err != nil {
			return err
		}
	}
}

func (l *lexer) endTag() (err error) {
	l.take("</")
	l.item.kind = endToken
	if l.item.name, err = l.name(); err != nil {
		return err
	}
	l.blank()
	if !l.take(">") {
		return l.expected("> at the end of a tag")
	}
	return nil
}

func (l *lexer) attribute() error {
	name, err := l.name()
	if err != nil {
		return err
	}
	l.blank()
	if !l.take("=") {
		return l.expected("= after the name of an attribute")
	}
	l.blank()
	quote := `"`
	if !l.take(quote) {
		if quote = `'`; !l.take(quote) {
			return l.expected("a quoted value")
		}
	}
	from := l.pos
	raw, ok := l.until(quote)
	if !ok {
		return l.expected(quote + " at the end of a value")
	}
	if i := bytes.IndexByte(raw, '<'); i >= 0 {
		l.pos = from + i
		return l.expected("&lt; in a value")
	}
	value, err := l.decode(raw)
	l.item.attributes = append(l.item.attributes, rawAttribute{name, value})
	return err
}

// name reads a name of XML 1.0, fifth edition, with at most one colon, and a valid name
// on both sides of it.
func (l *lexer) name() ([]byte, error) {
	from := l.pos
	l.plainName()
	if l.pos == from {
		return nil, l.expected("a name")
	}
	if l.pos < len(l.data) && l.data[l.pos] == ':' {
		l.pos++
		local := l.pos
		if l.plainName(); l.pos == local {
			return nil, l.expected("a name after a prefix")
		}
	}
	return l.data[from:l.pos], nil
}

// plainName reads a name without a colon, if one is at pos.
func (l *lexer) plainName() {
	for from := l.pos; l.pos < len(l.data); {
		c, size := rune(l.data[l.pos]), 1
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z': // the common case
			l.pos++
			continue
		case c >= utf8.RuneSelf:
			c, size = utf8.DecodeRune(l.data[l.pos:])
		}
		if !nameStart(c) && (l.pos == from || !nameChar(c)) {
			return
		}
		l.pos += size
	}
}

func nameStart(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_'
	case r < 0x2000:
		return r >= 0xC0 && r != 0xD7 && r != 0xF7 && r != 0x37E && (r < 0x300 || r > 0x36F)
	case r < 0x3000:
		return r == 0x200C || r == 0x200D || r >= 0x2070 && r <= 0x218F || r >= 0x2C00 && r <= 0x2FEF
	}
	return r >= 0x3001 && r <= 0xD7FF || r >= 0xF900 && r <= 0xFDCF || r >= 0xFDF0 && r <= 0xFFFD || r >= 0x10000 && r <= 0xEFFFF
}

func nameChar(r rune) bool {
	return nameStart(r) || r >= '0' && r <= '9' || r == '-' || r == '.' || r == 0xB7 || r >= 0x300 && r <= 0x36F || r == 0x203F || r == 0x2040
}

// decode replaces references and carriage returns. A value without any is returned
// unchanged; others are appended to l.scratch.
func (l *lexer) decode(b []byte) ([]byte, error) {
	b = l.lines(b)
	if bytes.IndexByte(b, '&') < 0 {
		return b, nil
	}
	from := len(l.scratch)
	for len(b) > 0 {
		i := bytes.IndexByte(b, '&')
		if i < 0 {
			i = len(b)
		}
		l.scratch = append(l.scratch, b[:i]...)
		if b = b[i:]; len(b) == 0 {
			break
		}
		end := bytes.IndexByte(b, ';')
		r, ok := reference(b[1:max(end, 1)])
		if !ok {
			return nil, broken(l.line, glimpse(b), "only the entities &amp; &lt; &gt; &quot; &apos; and numbers of XML characters", "")
		}
		l.scratch = utf8.AppendRune(l.scratch, r)
		b = b[end+1:]
	}
	return l.scratch[from:len(l.scratch):len(l.scratch)], nil
}

var entities = map[string]rune{"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\''}

// reference is the character of a reference between "&" and ";".
func reference(b []byte) (rune, bool) {
	if r, ok := entities[string(b)]; ok {
		return r, true
	}
	base, number := 10, bytes.TrimPrefix(b, []byte("#"))
	if len(number) == len(b) {
		return 0, false
	}
	if hex := bytes.TrimPrefix(number, []byte("x")); len(hex) < len(number) {
		base, number = 16, hex
	}
	n, err := strconv.ParseUint(string(number), base, 32)
	return rune(n), err == nil && isChar(rune(n))
}

// isChar reports whether r is a character of XML 1.0.
func isChar(r rune) bool {
	switch {
	case r < ' ':
		return r == '\t' || r == '\n' || r == '\r'
	case r >= 0xD800 && r < 0xE000, r == 0xFFFE, r == 0xFFFF:
		return false
	}
	return r <= utf8.MaxRune
}

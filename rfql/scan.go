package rfql

import (
	"bytes"
	"fmt"
	"slices"
	"unicode/utf8"

	"ramp/protocol"
)

type name struct{ space, local string }

type attribute struct {
	name
	value []byte
}

// token is an element's start or end, text, or the end of the document. Its text and
// attributes are valid until the next call of next.
type token struct {
	kind
	name
	attributes []attribute
	text       []byte
	section    bool // the text is a CDATA section
	line       int  // of its beginning
}

// scanner checks that the items of the lexer form a well-formed document: it matches ends
// with starts and resolves namespaces. Its errors are Faults.
type scanner struct {
	lexer
	open       []openElement
	bindings   []binding
	attributes []attribute
	rooted     bool // the root element has begun
}

type openElement struct {
	raw    []byte // its name with prefix
	bounds int    // number of bindings in scope outside
}

func newScanner(b []byte) (*scanner, error) {
	if len(b) > protocol.MaxDocument {
		return nil, broken(0, fmt.Sprintf("%d bytes", len(b)), fmt.Sprintf("at most %d bytes", protocol.MaxDocument), "")
	}
	if wide(b) {
		return nil, broken(1, "UTF-16 or UTF-32", "UTF-8", "convert the document, for example with iconv -f UTF-16 -t UTF-8")
	}
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	if at := badChar(b); at >= 0 {
		line := 1 + bytes.Count(b[:at], []byte("\n"))
		return nil, broken(line, fmt.Sprintf("byte 0x%02x", b[at]), "characters of XML 1.0 in UTF-8", "")
	}
	return &scanner{lexer: lexer{data: b, line: 1}, bindings: []binding{{"", ""}, {"xml", xmlNamespace}}}, nil
}

// wide reports whether b has 16 or 32 bits per character, like the output of some editors and
// shells. It looks for a byte order mark, or a first '<' next to a zero byte (XML 1.0 appendix F).
func wide(b []byte) bool {
	marks := []string{"\xff\xfe", "\xfe\xff", "<\x00", "\x00<", "\x00\x00\xfe\xff", "\x00\x00\x00<"}
	return slices.ContainsFunc(marks, func(mark string) bool { return bytes.HasPrefix(b, []byte(mark)) })
}

// broken is a fault below the language.
func broken(line int, found, allowed, hint string) Fault {
	return Fault{Class: Form, Line: line, Request: protocol.AllUnits, Term: document, Found: found, Allowed: allowed, Hint: hint}
}

// badChar is the index of the first byte that is not part of an XML character, or -1.
func badChar(b []byte) int {
	for i := 0; i < len(b); {
		if c := b[i]; c >= ' ' && c < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 || !isChar(r) {
			return i
		}
		i += n
	}
	return -1
}

// next returns the next token. It skips comments and processing instructions.
func (s *scanner) next() (token, error) {
	for {
		if err := s.cut(); err != nil {
			return token{}, err
		}
		switch s.item.kind {
		case startToken:
			return s.start()
		case endToken:
			return s.end()
		case fileEnd:
			return s.stop()
		case textToken:
			if len(s.open) > 0 {
				return token{kind: textToken, text: s.item.text, section: s.item.section, line: s.line}, nil
			}
			if len(bytes.Trim(s.raw(), space)) > 0 {
				return token{}, broken(beginning(s.line, s.raw()), "text "+quote(collapse(s.raw())), "nothing but the root element", "")
			}
		}
	}
}

// beginning is the line of the first character of b that is not white space.
func beginning(line int, b []byte) int {
	blank := len(b) - len(bytes.TrimLeft(b, space))
	return line + bytes.Count(b[:blank], []byte("\n"))
}

func (s *scanner) stop() (token, error) {
	switch {
	case len(s.open) > 0:
		last := s.open[len(s.open)-1]
		return token{}, broken(s.line, "the end of the text", "</"+clip(string(last.raw))+">", "an element is not closed")
	case !s.rooted:
		return token{}, broken(s.line, "no element", "one "+string(RequestForQuotation), "")
	}
	return token{kind: fileEnd, line: s.line}, nil
}

func (s *scanner) start() (token, error) {
	switch {
	case len(s.open) == 0 && s.rooted:
		return token{}, broken(s.line, "a second root element", "one "+string(RequestForQuotation), "")
	case len(s.open) == MaxDepth:
		return token{}, broken(s.line, fmt.Sprintf("an element inside %d others", MaxDepth), fmt.Sprintf("at most %d levels", MaxDepth), "")
	}
	s.rooted = true
	s.open = append(s.open, openElement{raw: s.item.name, bounds: len(s.bindings)})
	if err := s.bind(); err != nil {
		return token{}, err
	}
	prefix, local := split(s.item.name)
	n, ok := s.resolve(prefix, local)
	if !ok {
		return token{}, s.unbound(s.item.name)
	}
	if err := s.resolveAttributes(); err != nil {
		return token{}, err
	}
	return token{kind: startToken, name: n, attributes: s.attributes, line: s.line}, nil
}

func (s *scanner) end() (token, error) {
	if len(s.open) == 0 {
		return token{}, broken(s.line, clip(string(s.raw())), "a start before an end", "")
	}
	last := s.open[len(s.open)-1]
	if s.item.name != nil && !bytes.Equal(last.raw, s.item.name) {
		return token{}, broken(s.line, clip(string(s.raw())), "</"+clip(string(last.raw))+">", "an element is not closed, or closed twice")
	}
	s.open = s.open[:len(s.open)-1]
	s.bindings = s.bindings[:last.bounds]
	return token{kind: endToken, line: s.line}, nil
}

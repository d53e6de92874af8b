package rfql

import "bytes"

// lexer splits XML 1.0 into markup and text, in one pass and mostly without copying. It is stricter
// than encoding/xml, which accepts much that is not well-formed, and several times as fast; a test
// compares them. Its input consists of XML characters, as badChar has checked.
//
// It refuses document types, and so all entities but XML's own five.
type lexer struct {
	data    []byte
	from    int // start of the current item
	pos     int // next byte to read
	line    int // of from
	item    item
	closing bool   // the next item is the end of an empty-element tag
	scratch []byte // decoded text of the current item
}

// item is a piece of markup or text. Its slices are valid until the next call of cut.
type item struct {
	kind
	name       []byte // with its prefix; nil at the end of an empty-element tag
	text       []byte // decoded, of a textToken
	section    bool   // the text is a CDATA section
	attributes []rawAttribute
}

type rawAttribute struct{ name, value []byte }

type kind int

const (
	startToken kind = 1
	endToken   kind = 2
	textToken  kind = 3
	fileEnd    kind = 4
	passedOver kind = 5 // a comment or processing instruction
)

// cut reads the next item into l.item.
func (l *lexer) cut() error {
	l.line += bytes.Count(l.data[l.from:l.pos], []byte("\n"))
	l.from = l.pos
	l.item.name, l.item.attributes, l.item.section = nil, l.item.attributes[:0], false
	l.scratch = l.scratch[:0]
	rest := l.data[l.pos:]
	switch {
	case l.closing:
		l.closing, l.item.kind = false, endToken
		return nil
	case len(rest) == 0:
		l.item.kind = fileEnd
		return nil
	case rest[0] != '<':
		return l.text()
	case len(rest) > 1 && rest[1] == '!':
		return l.declaration()
	case len(rest) > 1 && rest[1] == '?':
		return l.instruction()
	case len(rest) > 1 && rest[1] == '/':
		return l.endTag()
	}
	return l.startTag()
}

func (l *lexer) raw() []byte { return l.data[l.from:l.pos] }

// expected is a fault at pos.
func (l *lexer) expected(allowed string) error {
	line := l.line + bytes.Count(l.data[l.from:l.pos], []byte("\n"))
	found := "the end of the text"
	if l.pos < len(l.data) {
		found = glimpse(l.data[l.pos:])
	}
	return broken(line, found, allowed, "")
}

// glimpse is the beginning of b, at most to the end of its line.
func glimpse(b []byte) string {
	const most = 24
	shown := b[:min(len(b), most)]
	if i := bytes.IndexByte(shown, '\n'); i > 0 {
		shown = shown[:i]
	}
	return quote(string(bytes.ToValidUTF8(shown, nil)))
}

func (l *lexer) take(s string) bool {
	ok := len(l.data)-l.pos >= len(s) && string(l.data[l.pos:l.pos+len(s)]) == s
	if ok {
		l.pos += len(s)
	}
	return ok
}

// until reads past the next s and returns the bytes before it.
func (l *lexer) until(s string) ([]byte, bool) {
	i := bytes.Index(l.data[l.pos:], []byte(s))
	if i < 0 {
		l.pos = len(l.data)
		return nil, false
	}
	before := l.data[l.pos : l.pos+i]
	l.pos += i + len(s)
	return before, true
}

// blank reads white space and reports whether there was any.
func (l *lexer) blank() bool {
	from := l.pos
	for l.pos < len(l.data) && isSpace(l.data[l.pos]) {
		l.pos++
	}
	return l.pos > from
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// declaration reads markup that begins with "<!": a comment or a CDATA section. It
// refuses all else.
func (l *lexer) declaration() error {
	switch {
	case l.take("<!--"):
		l.item.kind = passedOver
		if _, ok := l.until("--"); !ok || !l.take(">") {
			return l.expected("--> and no other -- in a comment")
		}
		return nil
	case l.take("<![CDATA["):
		text, ok := l.until("]]>")
		if !ok {
			return l.expected("]]>")
		}
		l.item.kind, l.item.text, l.item.section = textToken, l.lines(text), true
		return nil
	}
	return broken(l.line, glimpse(l.data[l.from:]), "no document type and no entities", "remove it")
}

// text reads to the next markup.
func (l *lexer) text() error {
	n := bytes.IndexByte(l.data[l.pos:], '<')
	if n < 0 {
		n = len(l.data) - l.pos
	}
	text := l.data[l.pos : l.pos+n]
	if i := bytes.Index(text, []byte("]]>")); i >= 0 {
		l.pos += i
		return l.expected("]]> only at the end of a CDATA section")
	}
	l.item.kind = textToken
	var err error
	l.item.text, err = l.decode(text)
	l.pos += n
	return err
}

// lines turns carriage returns into line ends (XML 1.0 §2.11).
func (l *lexer) lines(b []byte) []byte {
	if bytes.IndexByte(b, '\r') < 0 {
		return b
	}
	b = bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(b, []byte("\r"), []byte("\n"))
}

// instruction reads a processing instruction. An XML declaration has the same form but
// is allowed only at the beginning.
func (l *lexer) instruction() error {
	l.item.kind = passedOver
	l.take("<?")
	target, err := l.name()
	if err != nil {
		return err
	}
	if bytes.EqualFold(target, []byte("xml")) {
		return l.header(target)
	}
	spaced := l.blank()
	body, ok := l.until("?>")
	if !ok || len(body) > 0 && !spaced {
		return l.expected("?> at the end of a processing instruction")
	}
	return nil
}

// header reads the rest of an XML declaration: the version, then optionally the encoding,
// then optionally standalone.
func (l *lexer) header(target []byte) error {
	version, okV := l.pseudo("version")
	encoding, okE := l.pseudo("encoding")
	alone, okA := l.pseudo("standalone")
	l.blank()
	switch {
	case string(target) != "xml" || l.from != 0 || !okV || !okE || !okA || !l.take("?>"),
		version != "1.0", alone != "" && alone != "yes" && alone != "no":
		return broken(l.line, glimpse(l.data[l.from:]), `<?xml version="1.0" encoding="UTF-8"?> at the very beginning`, "")
	case encoding != "" && !bytes.EqualFold([]byte(encoding), []byte("utf-8")):
		return broken(l.line, "encoding "+quote(encoding), "UTF-8", "convert the document")
	}
	return nil
}

// pseudo reads key="value", if the key is there. It returns false after a fault.
func (l *lexer) pseudo(key string) (value string, ok bool) {
	from := l.pos
	if spaced := l.blank(); !l.take(key) || !spaced {
		l.pos = from
		return "", true
	}
	l.blank()
	equals := l.take("=")
	l.blank()
	for _, quote := range [...]string{`"`, `'`} {
		if equals && l.take(quote) {
			b, ok := l.until(quote)
			return string(b), ok && len(b) > 0
		}
	}
	return "", false
}

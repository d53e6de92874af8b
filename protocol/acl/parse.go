package acl

import (
	"strings"
	"unicode/utf8"

	"ramp/protocol"
)

func (p *parser) message() (m Message, err error) {
	if err = p.expect('(', "before the performative"); err != nil {
		return m, err
	}
	if m.Performative, err = p.performative(); err != nil {
		return m, err
	}
	contentAt := 0
	seen := map[string]bool{}
	for p.peek() != ')' {
		at := p.pos
		key, err := p.once(seen)
		if err != nil {
			return m, err
		}
		if strings.EqualFold(key, "content") {
			contentAt = at
		}
		if err := p.parameter(&m, key, at); err != nil {
			return m, err
		}
	}
	p.pos++
	if err := m.unwrap(); err != nil {
		return m, p.fail(contentAt, "%v", err)
	}
	return m, nil
}

func (p *parser) performative() (protocol.Performative, error) {
	p.space()
	at := p.pos
	w, err := p.word("a performative")
	if err != nil {
		return "", err
	}
	if act := protocol.Performative(w); Known(act) {
		return act, nil
	}
	p.pos = at
	return "", p.fail(at, "performative %s is not a FIPA performative", p.found())
}

// once takes a key that must not have been seen in any case.
func (p *parser) once(seen map[string]bool) (string, error) {
	p.space()
	at := p.pos
	key, err := p.key()
	if err != nil {
		return "", err
	}
	lower := strings.ToLower(key)
	if seen[lower] {
		return "", p.fail(at, "duplicate parameter :%s", clip(lower))
	}
	seen[lower] = true
	return key, nil
}

func (p *parser) parameter(m *Message, key string, at int) (err error) {
	lower := strings.ToLower(key)
	switch lower {
	case "sender":
		m.Sender, err = p.agent(1)
	case "receiver":
		m.Receivers, err = p.agents(1)
	case "reply-to":
		m.ReplyTo, err = p.agents(1)
	case "content":
		m.Content, err = p.content()
	case "reply-by":
		err = p.replyBy(m)
	default:
		if field, ok := m.text(lower); ok {
			*field, err = p.value()
			return err
		}
		m.User, err = p.user(m.User, key, at, MaxUser+1) // one for X-JADE-Encoding; unwrap counts again
	}
	return err
}

// value takes an expression that must be text of a bounded length.
func (p *parser) value() (string, error) {
	p.space()
	at := p.pos
	s, _, err := p.expr(0)
	switch {
	case err != nil:
		return "", err
	case len(s) > MaxValue:
		return "", p.fail(at, "a value of %d bytes, want at most %d", len(s), MaxValue)
	case !utf8.ValidString(s):
		return "", p.fail(at, "a value is not UTF-8")
	}
	return s, nil
}

// content takes the content, and trims it when it is quoted, like other platforms.
// Content that is not text becomes bytes.
func (p *parser) content() (Content, error) {
	s, how, err := p.expr(0)
	if err != nil {
		return Content{}, err
	}
	if how == quoted {
		s = trim(s)
	}
	if !utf8.ValidString(s) {
		return Content{Bytes: []byte(s)}, nil
	}
	return Content{Text: s}, nil
}

// trim removes the same characters from both ends as Java's String.trim.
func trim(s string) string { return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' }) }

func (p *parser) replyBy(m *Message) error {
	p.space()
	at := p.pos
	s, err := p.value()
	if err != nil {
		return err
	}
	if m.ReplyBy, m.ReplyIn, err = parseDate(s); err != nil {
		return p.fail(at, "parameter :reply-by: %v", err)
	}
	return nil
}

// user takes the value of a parameter that FIPA does not define into u, which holds
// at most that many.
func (p *parser) user(u map[string]string, key string, at, most int) (map[string]string, error) {
	name, ok := userKey(key)
	if !ok {
		return u, p.fail(at, "unknown parameter :%s: want one of FIPA's, or a name that begins with X-", clip(key))
	}
	if len(u) == most {
		return u, p.fail(at, "more than %d user parameters", MaxUser)
	}
	if len(name) > MaxValue {
		return u, p.fail(at, "the name of a user parameter has %d bytes, want at most %d", len(name), MaxValue)
	}
	s, err := p.value()
	return withUser(u, name, s), err
}

// withUser sets a user parameter unless its value is empty.
func withUser(u map[string]string, name, value string) map[string]string {
	if value == "" {
		return u
	}
	if u == nil {
		u = map[string]string{}
	}
	u[name] = value
	return u
}

// userKey is a user parameter's key with its prefix in upper case.
func userKey(key string) (string, bool) {
	if len(key) < 3 || !strings.EqualFold(key[:2], "x-") {
		return "", false
	}
	return "X-" + key[2:], true
}

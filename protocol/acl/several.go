package acl

import "time"

// ParseAll reads messages in string form that stand one after the other, at least one,
// and hands them on in this order. Between them white space means nothing, nor do
// comments, from a ';' to the end of its line: 'ramp user trace' says so when each was
// sent. Dates without Z are taken as UTC. Each message has at most MaxText bytes; b is
// bounded by the caller. It ends at the first fault, a *SyntaxError whose place counts
// from the beginning of b, or with what take returns.
func ParseAll(b []byte, take func(Message) error) error {
	p := parser{src: b}
	p.comments()
	for {
		start := p.pos
		m, err := p.message(time.UTC)
		if err != nil {
			return err
		}
		if p.pos-start > MaxText {
			return p.fail(start, "a message of %d bytes, want at most %d", p.pos-start, MaxText)
		}
		if err := take(m); err != nil {
			return err
		}
		if p.comments(); p.pos == len(p.src) {
			return nil
		}
	}
}

// comments skips white space and comments.
func (p *parser) comments() {
	for p.peek() == ';' {
		for p.pos < len(p.src) && p.src[p.pos] != '\n' {
			p.pos++
		}
	}
}
